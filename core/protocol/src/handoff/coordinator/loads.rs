//! What the loads of the nodes come to, with the shards that have moved since they were measured.
//!
//! Nodes measure their loads every few seconds, and plans are made much more often. [`Loads`] puts the last measurement of a
//! node right by what was ordered and what has moved since: a plan does not ask once more for what an earlier one has asked
//! for. How heavy one shard is nobody knows; it counts as an equal part of what its owner has.
//!
//! Invariant: nothing that has moved counts longer than to the next measurement of its node.

use alloc::collections::BTreeMap;

use crate::handoff::allocate::{Allocations, Host};
use crate::identity::NodeId;

/// What has moved since the nodes were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Loads {
    /// What came to a node, less what went from it.
    since: BTreeMap<NodeId, i64>,
}

impl Loads {
    /// A shard has gone from one node, unless that one has ended, to another.
    pub(super) fn moved(&mut self, from: Option<NodeId>, to: NodeId, share: u64) {
        shift(&mut self.since, from, to, share);
    }

    /// Whoever has been measured anew, or has gone, needs no correction.
    pub(super) fn measured(&mut self, before: &BTreeMap<NodeId, Host>, now: &BTreeMap<NodeId, Host>) {
        let is_old = |node: &NodeId| {
            let measured = now.get(node).map(|host| host.measured);
            measured.is_some() && measured == before.get(node).map(|host| host.measured)
        };
        self.since.retain(|node, _| is_old(node));
    }

    /// The hosts with their loads put right, also by the moves that are `open`: from whom, to whom, and how much.
    pub(super) fn put_right(
        &self,
        hosts: &BTreeMap<NodeId, Host>,
        open: impl IntoIterator<Item = (Option<NodeId>, NodeId, u64)>,
    ) -> BTreeMap<NodeId, Host> {
        let mut since = self.since.clone();
        open.into_iter().for_each(|(from, to, share)| shift(&mut since, from, to, share));
        let mut hosts = hosts.clone();
        for (node, host) in &mut hosts {
            host.load = host.load.saturating_add_signed(since.get(node).copied().unwrap_or(0));
        }
        hosts
    }
}

fn shift(since: &mut BTreeMap<NodeId, i64>, from: Option<NodeId>, to: NodeId, share: u64) {
    let share = i64::try_from(share).unwrap_or(i64::MAX);
    if let Some(from) = from {
        let left = since.entry(from).or_default();
        *left = left.saturating_sub(share);
    }
    let came = since.entry(to).or_default();
    *came = came.saturating_add(share);
}

/// How much goes along with one shard of a node; without a node, with one of anybody's.
pub(super) fn share_of(node: Option<NodeId>, now: &Allocations) -> u64 {
    let load = |node: NodeId| now.hosts.get(&node).map_or(0, |host| host.load);
    let (load, shards) = match node {
        Some(node) => (load(node), now.count(node)),
        None => {
            let all = now.hosts.values().map(|host| host.load);
            (all.fold(0, u64::saturating_add), now.owners.len())
        }
    };
    (load / shards.max(1) as u64).max(1)
}
