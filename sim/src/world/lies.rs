//! A locator that is sometimes wrong: whoever trusts it must survive that.

use std::sync::{Arc, Mutex, PoisonError};

use archipelago_backend_conformance::Rng;
use archipelago_protocol::contract::{Directory, DirectoryError};
use archipelago_protocol::identity::{Generation, Kind, NodeAddress, NodeId, OwnedKey};
use archipelago_runtime::{DirectoryLocator, Location, Locator, Place};
use async_trait::async_trait;

use super::network::host_of;

/// Reads owners from the directory, and now and then names another node instead, never the one that asks.
pub(crate) struct WrongLocator {
    truth: DirectoryLocator,
    directory: Arc<dyn Directory>,
    asker: String,
    per_mille: u32,
    rng: Mutex<Rng>,
}

impl WrongLocator {
    /// A locator of node `index` that is wrong `per_mille` times in a thousand.
    pub(crate) fn new(directory: Arc<dyn Directory>, index: usize, per_mille: u32, seed: u64) -> Self {
        let truth = DirectoryLocator::new(Arc::clone(&directory));
        Self { truth, directory, asker: host_of(index), per_mille, rng: Mutex::new(Rng::new(seed)) }
    }

    /// Some node that is not `owner`.
    async fn somebody_else(&self, owner: Option<NodeId>) -> Option<NodeId> {
        let all = self.directory.sessions().await.ok()?.records;
        let others: Vec<NodeId> = all
            .into_iter()
            .filter(|info| info.address.host() != self.asker && Some(info.id) != owner)
            .map(|info| info.id)
            .collect();
        if others.is_empty() {
            return None;
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        Some(others[rng.index(others.len())])
    }

    fn lies(&self) -> bool {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).chance(self.per_mille)
    }
}

#[async_trait]
impl Locator for WrongLocator {
    fn fixed_place(&self, kind: &Kind) -> Option<&NodeAddress> {
        self.truth.fixed_place(kind)
    }

    async fn look_up(&self, key: &OwnedKey) -> Result<Option<Location>, DirectoryError> {
        let found = self.truth.look_up(key).await?;
        if !self.lies() {
            return Ok(found);
        }
        let owner = found.as_ref().and_then(|location| match location.at {
            Place::Node(node) => Some(node),
            Place::Address(_) => None,
        });
        let generation = found.as_ref().map_or(Generation::new(0), |location| location.generation);
        let wrong = self.somebody_else(owner).await;
        Ok(wrong.map(|node| Location { at: Place::Node(node), generation }).or(found))
    }

    async fn address_of(&self, node: NodeId) -> Result<Option<NodeAddress>, DirectoryError> {
        self.truth.address_of(node).await
    }
}
