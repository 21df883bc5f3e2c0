//! How a connection has ended.

use archipelago_protocol::contract::{CloseReason, TransportError};

/// How a connection has ended. It stays so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// This side closed it: nothing that has come is handed out any more.
    ByUs(CloseReason),
    /// The other side closed it: what came before is handed out first.
    ByPeer(CloseReason),
    /// It broke: what came before is handed out first.
    Lost(String),
}

impl End {
    /// The answer of every operation from now on.
    pub(crate) fn error(&self) -> TransportError {
        match self {
            Self::ByUs(reason) | Self::ByPeer(reason) => TransportError::Closed(reason.clone()),
            Self::Lost(reason) => TransportError::Lost { reason: reason.clone() },
        }
    }

    /// True if data that has come already is not handed out any more.
    pub(crate) const fn discards(&self) -> bool {
        matches!(self, Self::ByUs(_))
    }
}
