//! What a failed TLS handshake means, in words for the person who runs the node.

use rustls::{AlertDescription, CertificateError, Error};

/// Says what `error` means: whose certificate is at fault, and why.
///
/// An alert that was received is about this node's own certificate, since the peer is the one who complained.
pub fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => format!("the peer's certificate {}", certificate(why)),
        Error::AlertReceived(alert) => received(*alert),
        Error::NoCertificatesPresented => "the peer has shown no certificate".into(),
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerSentOversizedRecord => format!("the peer does not speak TLS as it should ({error})"),
        Error::PeerIncompatible(_) => format!("the peer's TLS does not fit, TLS 1.3 is needed ({error})"),
        Error::NoApplicationProtocol => "the peer speaks another protocol over TLS".into(),
        other => format!("the TLS handshake failed ({other})"),
    }
}

/// The end of a sentence that begins with "the certificate".
pub(crate) fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet (is one of the clocks wrong?)".into()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "was issued by another authority".into()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("is not for the name {} but for {}", expected.to_str(), presented.join(", "))
        }
        CertificateError::NotValidForName => "is not for the expected name".into(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "may not be used for this (it needs both server and client authentication)".into()
        }
        CertificateError::Revoked => "was revoked".into(),
        CertificateError::BadEncoding => "cannot be read".into(),
        other => format!("is not acceptable ({other})"),
    }
}

fn received(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::CertificateExpired => "it has expired",
        AlertDescription::UnknownCA => "it was issued by another authority",
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => "none was shown",
        AlertDescription::CertificateRevoked => "it was revoked",
        AlertDescription::BadCertificate | AlertDescription::DecryptError => "it cannot be verified",
        AlertDescription::UnsupportedCertificate => "it may not be used for this",
        AlertDescription::CertificateUnknown | AlertDescription::AccessDenied => "it is not acceptable",
        AlertDescription::ProtocolVersion => return "the peer does not speak TLS 1.3".into(),
        AlertDescription::NoApplicationProtocol => {
            return "the peer speaks another protocol over TLS".into();
        }
        other => return format!("the peer ended the TLS handshake ({other:?})"),
    };
    format!("the peer refused this node's certificate: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_certificate_of_the_peer_is_told_apart_from_a_bad_one_of_this_node() {
        let expired = explain(&Error::InvalidCertificate(CertificateError::Expired));
        assert_eq!(expired, "the peer's certificate has expired");
        let refused = explain(&Error::AlertReceived(AlertDescription::CertificateExpired));
        assert_eq!(refused, "the peer refused this node's certificate: it has expired");
    }

    #[test]
    fn an_unknown_issuer_is_another_authority_on_both_sides() {
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert_eq!(explain(&unknown), "the peer's certificate was issued by another authority");
        let alert = explain(&Error::AlertReceived(AlertDescription::UnknownCA));
        assert!(alert.ends_with("it was issued by another authority"), "{alert}");
    }

    #[test]
    fn every_other_error_still_becomes_a_sentence() {
        assert_eq!(explain(&Error::NoCertificatesPresented), "the peer has shown no certificate");
        assert!(explain(&Error::General("odd".into())).contains("odd"));
        assert!(explain(&Error::AlertReceived(AlertDescription::InternalError)).contains("InternalError"));
    }
}
