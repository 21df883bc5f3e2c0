//! Certificates of archipelago nodes: loading and checking them, saying what is wrong in words, and a development
//! authority.
//!
//! [`Credentials`] is what a node proves itself with and whom it believes: TLS 1.3 only, both sides show a
//! certificate of the same authority. Transports take a [`rustls::ServerConfig`] and a [`rustls::ClientConfig`] from
//! it and turn what rustls says into words with [`explain`].
//!
//! Invariant: nothing here touches a process-wide default of rustls; the provider (ring) is always given.

mod credentials;
pub use credentials::{Credentials, TlsFiles};
mod development;
pub use development::{DevelopmentAuthority, IssuedPem, Validity};
mod error;
pub use error::{PemFile, PemOrigin, TlsError};
mod explain;
pub use explain::explain;
mod identity;
pub use identity::identity_of;
mod install;
mod times;
pub use times::CertificateTimes;
