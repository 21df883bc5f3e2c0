//! How the bytes of a served store travel: the one thing that a [`ServedStore`](crate::ServedStore) needs of its node.

use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Carries a request to the node that serves the store, and brings its answer back.
///
/// # Every implementation
///
/// - *tells_unsent_from_unanswered*: `NotSent` only if the request has not reached the server and never will; whatever is
///   less certain is `Unknown`.
/// - *delivers_once*: a request reaches [`StoreServer::serve`](crate::StoreServer::serve) at most once.
/// - *keeps_to_its_timeout*: the future ends within `timeout`; a request that was sent by then is `Unknown`.
///
/// It need not keep requests in order. It carries messages of up to [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes both ways.
pub trait Courier: Send + Sync + 'static {
    /// Carries `request`. A dropped future may or may not have carried it, now or later.
    fn carry(&self, request: Bytes, timeout: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>>;
}

/// Why a [`Courier`] brought no answer back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// The request was not sent and will not be: certainly not applied. Try again later.
    #[error("the request was not sent: {reason}")]
    NotSent {
        /// What the transport said.
        reason: String,
    },
    /// No answer came: the request may be carried out now or later.
    #[error("no answer came: {reason}")]
    Unknown {
        /// What the transport said.
        reason: String,
    },
}
