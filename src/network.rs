//! From `[transport]` to a network: which transport, and with which certificates.
//!
//! Everything that can be wrong with them is found here, before anything runs, and said with the key to mend.

use std::sync::Arc;

use archipelago_protocol::contract::Transport;

use crate::config::{ConfigError, Conflict, Fault, Origins, Settings, TransportKind};

/// The transport that `settings` ask for, `given` if that is one of the user's own; none for a node that reaches no other.
pub(crate) fn transport(
    settings: &Settings,
    origins: &Origins,
    given: Option<Arc<dyn Transport>>,
) -> Result<Option<Arc<dyn Transport>>, ConfigError> {
    match settings.transport.kind {
        TransportKind::None => Ok(None),
        TransportKind::Own if given.is_some() => Ok(given),
        TransportKind::Own => {
            Err(origins.refuse(&["transport.kind"], Fault::Conflict(Conflict::TransportNotGiven)))
        }
        TransportKind::Quic => quic::transport(settings, origins).map(Some),
        TransportKind::Tcp => tcp::transport(settings, origins).map(Some),
    }
}

#[cfg(feature = "quic")]
mod quic {
    use archipelago_quic::{QuicSettings, QuicTransport};

    use super::certificates::credentials;
    use super::{Arc, ConfigError, Conflict, Fault, Origins, Settings, Transport};
    use crate::config::Security;

    pub(super) fn transport(
        settings: &Settings,
        origins: &Origins,
    ) -> Result<Arc<dyn Transport>, ConfigError> {
        let refuse = |rule: Conflict| origins.refuse(&["transport.kind"], Fault::Conflict(rule));
        let Some(Security::Proven(proof)) = settings.transport.security().map_err(refuse)? else {
            return Err(refuse(Conflict::InsecureQuic));
        };
        let limit = settings.lanes.handshake_limit;
        let limits = QuicSettings {
            handshake_limit: limit,
            dial_limit: limit,
            stream_window: settings.lanes.stream_window().get(),
            ..QuicSettings::default()
        };
        let credentials = credentials(proof, &settings.transport.server_name, origins)?;
        Ok(Arc::new(QuicTransport::new(limits, credentials)))
    }
}

#[cfg(feature = "tcp")]
mod tcp {
    use archipelago_tcp::{Security as TcpSecurity, TcpSettings, TcpTransport};

    use super::certificates::credentials;
    use super::{Arc, ConfigError, Conflict, Fault, Origins, Settings, Transport, TransportKind};
    use crate::config::Security;

    pub(super) fn transport(
        settings: &Settings,
        origins: &Origins,
    ) -> Result<Arc<dyn Transport>, ConfigError> {
        let refuse = |rule: Conflict| origins.refuse(&["transport.kind"], Fault::Conflict(rule));
        let security = match settings.transport.security().map_err(refuse)? {
            Some(Security::Proven(proof)) => {
                TcpSecurity::Tls(credentials(proof, &settings.transport.server_name, origins)?)
            }
            None => return Err(refuse(Conflict::NoCertificates { kind: TransportKind::Tcp })),
            Some(Security::Plain) => {
                tracing::warn!(
                    bind = %settings.transport.bind,
                    "transport.insecure is set: whoever reaches this node can read everything and be any node; \
                     never use it in production"
                );
                TcpSecurity::Insecure
            }
        };
        let limit = settings.lanes.handshake_limit;
        let limits = TcpSettings {
            handshake_limit: limit,
            dial_limit: limit,
            stream_window: settings.lanes.stream_window(),
            ..TcpSettings::default()
        };
        Ok(Arc::new(TcpTransport::new(limits, security)))
    }
}

#[cfg(any(feature = "quic", feature = "tcp"))]
mod certificates {
    use archipelago_tls::{Credentials, DevelopmentAuthority, PemFile, TlsError, TlsFiles};

    use super::{ConfigError, Origins};
    use crate::config::{Fault, Proof};

    /// Loads what the node proves itself with, and makes it first if it is for development.
    pub(super) fn credentials(
        proof: Proof<'_>,
        name: &str,
        origins: &Origins,
    ) -> Result<Credentials, ConfigError> {
        let loaded = match proof {
            Proof::Files { ca, certificate, key } => {
                let files = TlsFiles { ca: ca.into(), certificate: certificate.into(), key: key.into() };
                Credentials::from_files(&files, name)
            }
            Proof::Development(directory) => DevelopmentAuthority::open_or_create(directory, name)
                .and_then(|authority| authority.credentials(name)),
        };
        loaded.map_err(|error| {
            let key = key_of(&error, proof);
            origins.refuse(&[key], Fault::Certificates { source: error.into() })
        })
    }

    /// The key whose value is to blame.
    fn key_of(error: &TlsError, proof: Proof<'_>) -> &'static str {
        match (error, proof) {
            (TlsError::BadServerName { .. }, _) => "transport.server_name",
            (_, Proof::Development(_)) => "transport.development",
            (TlsError::Unreadable { file, .. } | TlsError::NoCertificate { file, .. }, _) => match file {
                PemFile::Authority => "transport.ca",
                PemFile::Certificate => "transport.certificate",
                PemFile::Key => "transport.key",
            },
            (TlsError::BadKey { .. } | TlsError::KeyMismatch { .. }, _) => "transport.key",
            _ => "transport.certificate",
        }
    }
}

#[cfg(not(feature = "quic"))]
mod quic {
    pub(super) use super::not_built::transport;
}

#[cfg(not(feature = "tcp"))]
mod tcp {
    pub(super) use super::not_built::transport;
}

#[cfg(not(all(feature = "quic", feature = "tcp")))]
mod not_built {
    use super::{Arc, ConfigError, Origins, Settings, Transport};
    use crate::config::{Conflict, Fault};

    pub(super) fn transport(
        settings: &Settings,
        origins: &Origins,
    ) -> Result<Arc<dyn Transport>, ConfigError> {
        let rule = Conflict::NotBuilt { kind: settings.transport.kind };
        Err(origins.refuse(&["transport.kind"], Fault::Conflict(rule)))
    }
}

#[cfg(test)]
mod tests;
