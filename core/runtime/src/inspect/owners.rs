//! Who owns the shards of a kind, and which of them this node is giving away or taking.

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::PlacementScope;
use archipelago_protocol::identity::{Generation, Kind, NodeId, OwnedKey};

use super::{Gathered, look_at_all};
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::Node;

/// A shard that has an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerView {
    /// Its number.
    pub shard: u32,
    /// Who owns it.
    pub node: NodeId,
    /// At which generation.
    pub generation: Generation,
    /// Whether the owner is among the members that this node sees. One that has just begun may not be yet.
    pub known: bool,
}

/// A shard that this node hands to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MoveView {
    /// The kind of its actors.
    pub kind: String,
    /// Its number.
    pub shard: u64,
    /// Who is to get it.
    pub to: NodeId,
    /// How far it is: `offered`, `draining` or `transferring`.
    pub step: &'static str,
}

impl Node {
    /// Who owns the shards of a kind, as the directory has it, in the order of their numbers. Shards that nobody owns are not
    /// among them.
    ///
    /// # Errors
    ///
    /// [`CallError`] if there is no such kind, it is not divided into shards, or the directory does not answer.
    pub async fn shard_owners(&self, kind: &str) -> Result<Vec<OwnerView>, CallError> {
        let node = self.shared();
        let known = Kind::new(kind).ok().filter(|kind| node.kind_index(kind).is_some());
        let kind = known.ok_or_else(|| CallError::UnknownKind { kind: kind.into() })?;
        let limit = node.settings().call_timeout;
        let listing =
            within(node.env(), limit, node.directory().placements(PlacementScope::Kind(kind))).await;
        let listing = listing.ok_or(CallError::Timeout { started: false })?;
        let listing = listing.map_err(|error| not_serving(&error.to_string()))?;
        let view = node.members().view();
        let owners = listing.records.into_iter().filter_map(|record| match record.placement.key {
            OwnedKey::Shard { shard, .. } => {
                let (node, generation) = (record.placement.node, record.placement.generation);
                Some(OwnerView { shard, node, generation, known: view.members.contains_key(&node) })
            }
            _ => None,
        });
        let mut owners: Vec<OwnerView> = owners.collect();
        owners.sort_by_key(|owner| owner.shard);
        Ok(owners)
    }

    /// The shards that this node is handing to others.
    pub async fn moves_under_way(&self) -> Gathered<MoveView> {
        look_at_all(self.shared(), |local| local.hosting().moves(local.node())).await
    }
}
