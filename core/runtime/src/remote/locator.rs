//! Where the actors of a shard live.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipelago_protocol::contract::{Directory, DirectoryError};
use archipelago_protocol::identity::{Generation, Kind, NodeAddress, NodeId, OwnedKey};
use async_trait::async_trait;

/// Answers where a key is owned. Its answers are advice: the owner itself decides whether it takes a message, and returns
/// what is not for it.
///
/// # Every implementation
///
/// - *fixed_place_stays*: `fixed_place` answers the same for a kind as long as the node lives.
/// - *look_up_may_be_wrong*: nothing unsafe follows from a wrong answer, only a detour.
#[async_trait]
pub trait Locator: Send + Sync + 'static {
    /// The one address where actors of the kind live, if that is settled beforehand: no other node tries to own it.
    fn fixed_place(&self, kind: &Kind) -> Option<&NodeAddress>;

    /// Finds out where `key` is owned; `None` if nobody owns it.
    ///
    /// # Errors
    ///
    /// Nobody could be asked; try again later.
    async fn look_up(&self, key: &OwnedKey) -> Result<Option<Location>, DirectoryError>;

    /// Where a node that was looked up listens; `None` if it has not announced itself.
    ///
    /// # Errors
    ///
    /// As [`look_up`](Self::look_up).
    async fn address_of(&self, node: NodeId) -> Result<Option<NodeAddress>, DirectoryError>;
}

/// Where a key is owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The node.
    pub at: Place,
    /// The generation of its ownership; zero if nobody counts.
    pub generation: Generation,
}

/// A node, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The node with this id.
    Node(NodeId),
    /// Whoever is at this address.
    Address(NodeAddress),
}

/// Reads owners from the directory.
pub struct DirectoryLocator {
    directory: Arc<dyn Directory>,
}

impl DirectoryLocator {
    /// A locator that asks `directory`.
    pub fn new(directory: Arc<dyn Directory>) -> Self {
        Self { directory }
    }
}

#[async_trait]
impl Locator for DirectoryLocator {
    fn fixed_place(&self, _kind: &Kind) -> Option<&NodeAddress> {
        None
    }

    async fn look_up(&self, key: &OwnedKey) -> Result<Option<Location>, DirectoryError> {
        let Some(record) = self.directory.lookup(key).await? else { return Ok(None) };
        let at = Place::Node(record.placement.node);
        Ok(Some(Location { at, generation: record.placement.generation }))
    }

    async fn address_of(&self, node: NodeId) -> Result<Option<NodeAddress>, DirectoryError> {
        let sessions = self.directory.sessions().await?;
        Ok(sessions.records.into_iter().find(|info| info.id == node).map(|info| info.address))
    }
}

/// Kinds that live at fixed addresses; all others are asked for elsewhere.
pub struct StaticLocator {
    placed: BTreeMap<String, NodeAddress>,
    others: Box<dyn Locator>,
}

impl StaticLocator {
    /// A locator that knows where the kinds in `placed` live and asks `others` for the rest.
    pub fn new(placed: BTreeMap<String, NodeAddress>, others: Box<dyn Locator>) -> Self {
        Self { placed, others }
    }
}

#[async_trait]
impl Locator for StaticLocator {
    fn fixed_place(&self, kind: &Kind) -> Option<&NodeAddress> {
        self.placed.get(kind.as_str()).or_else(|| self.others.fixed_place(kind))
    }

    async fn look_up(&self, key: &OwnedKey) -> Result<Option<Location>, DirectoryError> {
        match key.kind().and_then(|kind| self.placed.get(kind.as_str())) {
            Some(address) => {
                let at = Place::Address(address.clone());
                Ok(Some(Location { at, generation: Generation::new(0) }))
            }
            None => self.others.look_up(key).await,
        }
    }

    async fn address_of(&self, node: NodeId) -> Result<Option<NodeAddress>, DirectoryError> {
        self.others.address_of(node).await
    }
}

impl std::fmt::Debug for DirectoryLocator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirectoryLocator")
    }
}

impl std::fmt::Debug for StaticLocator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaticLocator").field("placed", &self.placed).finish_non_exhaustive()
    }
}
