//! What quinn's errors mean to the caller.
//!
//! A connection that has been handed out ends as `Closed` or `Lost` ([`ended`]). One that is still shaking hands is
//! `Refused`, or `Unavailable` if trying again may help ([`Failure`]).

use archipelago_protocol::contract::{CloseCode, CloseReason, TransportError};
use archipelago_protocol::identity::NodeAddress;
use quinn::{ApplicationClose, ConnectionError, TransportErrorCode, VarInt};
use rustls::{AlertDescription, CertificateError};

use crate::transport::unavailable;

/// Why a connection has ended; `here` is the reason that this side gave, if it closed.
pub(crate) fn ended(error: &ConnectionError, here: Option<&CloseReason>) -> TransportError {
    match (error, here) {
        (_, Some(reason)) => TransportError::Closed(reason.clone()),
        (ConnectionError::ApplicationClosed(close), None) => TransportError::Closed(reason_of(close)),
        (ConnectionError::LocallyClosed, None) => {
            TransportError::Closed(CloseReason::new(CloseCode::Done, "closed on this side"))
        }
        (ConnectionError::TimedOut, None) => lost("nothing was heard of the other side for too long"),
        (ConnectionError::Reset, None) => lost("the other side does not know the connection any more"),
        (other, None) => lost(other.to_string()),
    }
}

/// An error of a connection that broke.
pub(crate) fn lost(reason: impl Into<String>) -> TransportError {
    TransportError::Lost { reason: reason.into() }
}

/// An error of two sides that do not fit.
pub(crate) fn refused(reason: impl Into<String>) -> TransportError {
    TransportError::Refused { reason: reason.into() }
}

/// The number that stands for `reason` in a QUIC close.
pub(crate) fn close_code(reason: &CloseReason) -> VarInt {
    VarInt::from_u32(u32::from(reason.code.as_u16()))
}

/// The reason that the other side gave.
fn reason_of(close: &ApplicationClose) -> CloseReason {
    let code = u16::try_from(close.error_code.into_inner()).unwrap_or(u16::MAX);
    CloseReason::new(CloseCode::from_u16(code), String::from_utf8_lossy(&close.reason))
}

/// Why a handshake did not come to an end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The two do not fit, as this says.
    Refused(String),
    /// The other side takes nobody now, or is not there (any more).
    Absent(String),
}

impl Failure {
    /// The error for the side that dialled `address`.
    pub(crate) fn of_dial(self, address: &NodeAddress) -> TransportError {
        match self {
            Self::Refused(reason) => refused(reason),
            Self::Absent(reason) => unavailable(address, reason),
        }
    }

    /// The error for the side that was dialled.
    pub(crate) fn of_accept(self) -> TransportError {
        match self {
            Self::Refused(reason) => refused(reason),
            Self::Absent(reason) => lost(reason),
        }
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TransportError(error) => match alert(error.code) {
                Some(alert) => Self::Refused(found_here(alert, &error.reason)),
                None => Self::Refused(format!("the peer does not speak QUIC as it should ({error})")),
            },
            ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
                Some(alert) => Self::Refused(told_by_peer(alert, &close.reason)),
                None if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
                    Self::Absent("the other side takes no more connections now".into())
                }
                None => Self::Absent(close.to_string()),
            },
            ConnectionError::ApplicationClosed(close) => {
                let reason = reason_of(&close);
                match reason.code {
                    CloseCode::Mismatch | CloseCode::Protocol => Self::Refused(reason.text),
                    _ => Self::Absent(format!("the other side closed: {reason}")),
                }
            }
            ConnectionError::VersionMismatch => {
                Self::Refused("the other side speaks no QUIC version 1".into())
            }
            other => Self::Absent(other.to_string()),
        }
    }
}

/// The TLS alert in a QUIC error code.
fn alert(code: TransportErrorCode) -> Option<AlertDescription> {
    let code = u64::from(code);
    (code >> 8 == 1).then(|| AlertDescription::from(code.to_le_bytes()[0]))
}

/// In words: what this side found wrong. quinn keeps only the alert and the text of what rustls said.
fn found_here(alert: AlertDescription, text: &str) -> String {
    let error = match alert {
        AlertDescription::UnknownCA => CertificateError::UnknownIssuer.into(),
        AlertDescription::CertificateExpired if text.contains("not valid yet") => {
            CertificateError::NotValidYet.into()
        }
        AlertDescription::CertificateExpired => CertificateError::Expired.into(),
        AlertDescription::CertificateRequired => rustls::Error::NoCertificatesPresented,
        AlertDescription::NoApplicationProtocol => rustls::Error::NoApplicationProtocol,
        _ => return format!("the TLS handshake failed ({text})"),
    };
    archipelago_tls::explain(&error)
}

/// In words: what the other side found wrong with this one.
fn told_by_peer(alert: AlertDescription, text: &[u8]) -> String {
    let said = archipelago_tls::explain(&rustls::Error::AlertReceived(alert));
    if text.is_empty() { said } else { format!("{said} ({})", String::from_utf8_lossy(text)) }
}
