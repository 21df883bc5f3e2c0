//! Why nothing was measured.

use archipelago_protocol::contract::TransportError;
use archipelago_tls::TlsError;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// The system failed.
    #[error("the system failed")]
    Io(#[from] std::io::Error),
    /// The QUIC transport failed.
    #[error("the transport failed")]
    Transport(#[from] TransportError),
    /// The certificates cannot be used.
    #[error("the certificates cannot be used")]
    Tls(#[from] TlsError),
    /// quinn failed.
    #[error("the QUIC connection failed: {0}")]
    Quic(String),
    /// The child process did not say where it listens: does the binary begin with `child_role`?
    #[error("the child process did not say where it listens")]
    ChildSilent,
    /// The child's environment is not what its parent sets.
    #[error("the environment of the child lacks {0}")]
    Environment(&'static str),
    /// The other side ended early.
    #[error("the other side ended early")]
    EndedEarly,
    /// An answer was not the one that had to come next.
    #[error("an answer came out of order")]
    OutOfOrder,
    /// It took longer than two minutes.
    #[error("the measurement took too long")]
    TooSlow,
    /// The measuring thread panicked.
    #[error("the measuring thread panicked")]
    Panicked,
}
