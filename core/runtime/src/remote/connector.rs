//! A way to other nodes for parts that exist before the node does, such as a store that another node serves.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use archipelago_protocol::call::{CallError, Outcome};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;
use bytes::Bytes;

use crate::env::within;
use crate::node::NodeShared;

/// Asks services of other nodes. Usable once the node it was given to has opened its transport.
#[derive(Clone, Default)]
pub struct Connector {
    node: Arc<RwLock<Weak<NodeShared>>>,
}

/// Why a service was not asked, or did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The request certainly never arrived, and never will.
    #[error("not sent: {reason}")]
    NotSent {
        /// Why.
        reason: String,
    },
    /// It may have been carried out, or may still be.
    #[error("outcome unknown: {reason}")]
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Connector {
    /// A connector that belongs to no node yet; hand it to [`NodeBuilder::connector`](crate::NodeBuilder::connector).
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives it to a node, or to the next life of its node.
    pub(crate) fn belongs_to(&self, node: &Arc<NodeShared>) {
        *self.node.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(node);
    }

    /// The node it belongs to, while that runs.
    pub(crate) fn node(&self) -> Option<Arc<NodeShared>> {
        self.node.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Asks service `number` of the node at `address`, `timeout` at most.
    ///
    /// # Errors
    ///
    /// [`AskError`]; dropping the future leaves the outcome unknown.
    pub async fn ask(
        &self,
        address: NodeAddress,
        number: u16,
        request: Bytes,
        timeout: Millis,
    ) -> Result<Bytes, AskError> {
        let node = self.node().ok_or_else(|| not_sent("the node does not run"))?;
        let until = node.env().now() + timeout;
        let met = within(node.env(), timeout, node.remoting().meet(address)).await;
        let peer =
            met.ok_or_else(|| not_sent("nobody answers in time"))?.map_err(|error| not_sent(&error))?;
        let left = until.since(node.env().now());
        node.remoting().ask_service(peer, number, request, left).await.map_err(answer_error)
    }

    /// Makes the node stop serving at once: what its session stood on is gone.
    pub fn give_up(&self, reason: &str) {
        if let Some(node) = self.node() {
            node.give_up(reason);
        }
    }
}

fn not_sent(reason: &str) -> AskError {
    AskError::NotSent { reason: reason.to_owned() }
}

fn answer_error(error: CallError) -> AskError {
    match error.outcome() {
        Outcome::NotStarted => AskError::NotSent { reason: error.to_string() },
        Outcome::Unknown => AskError::Unknown { reason: error.to_string() },
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("belongs", &self.node().is_some()).finish()
    }
}
