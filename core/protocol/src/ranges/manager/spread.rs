//! Who should own which partition.
//!
//! Partitions of nodes that have gone or leave go to whoever has the fewest; then a few at a time move from the node with the
//! most to the one with the fewest, until no two differ by more than one. Ties are broken by the lower node id, so every
//! manager that sees the same makes the same table.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::RangeHost;
use super::changes::route_owner;
use crate::identity::NodeId;
use crate::ranges::{OwnerStatus, RangeTable, RouteEntry, RouteOwner};

/// The same table with successors for all who are gone or leave; `None` if nobody is.
pub(super) fn inherited(table: &RangeTable, hosts: &BTreeMap<NodeId, RangeHost>) -> Option<RangeTable> {
    changed(table, |entries| replace_the_gone(entries, hosts))
}

/// The same table, spread more evenly by so many moves at most; `None` if it is even.
pub(super) fn balanced(
    table: &RangeTable,
    hosts: &BTreeMap<NodeId, RangeHost>,
    moves: usize,
) -> Option<RangeTable> {
    changed(table, |entries| balance(entries, hosts, moves))
}

fn changed(table: &RangeTable, change: impl FnOnce(&mut [RouteEntry])) -> Option<RangeTable> {
    let mut entries: Vec<RouteEntry> = table.entries().to_vec();
    change(&mut entries);
    if entries == table.entries() {
        return None;
    }
    RangeTable::new(entries).ok()
}

/// The node to give something to, given what is owned already; `None` if nobody is up.
pub(super) fn least<'a>(
    hosts: &BTreeMap<NodeId, RangeHost>,
    owned: impl Iterator<Item = &'a RouteEntry>,
) -> Option<RouteOwner> {
    let counts = counts(hosts, owned);
    let (_, node) = counts.iter().map(|(node, count)| (*count, *node)).min()?;
    Some(route_owner(node, hosts.get(&node)?))
}

/// Gives everybody who is gone or leaves a successor. As long as there is none, the table says how its owner is.
fn replace_the_gone(entries: &mut [RouteEntry], hosts: &BTreeMap<NodeId, RangeHost>) {
    for place in 0..entries.len() {
        let node = entries[place].owner.node;
        let known = hosts.get(&node);
        if let Some(host) = known.filter(|host| host.status == OwnerStatus::Up) {
            entries[place].owner = route_owner(node, host);
        } else if let Some(owner) = least(hosts, entries.iter()) {
            entries[place].owner = owner;
        } else {
            entries[place].owner.status = known.map_or(OwnerStatus::Down, |host| host.status);
        }
    }
}

fn balance(entries: &mut [RouteEntry], hosts: &BTreeMap<NodeId, RangeHost>, moves: usize) {
    for _ in 0..moves {
        let counts = counts(hosts, entries.iter());
        let most = counts.iter().map(|(node, count)| (*count, core::cmp::Reverse(*node))).max();
        let fewest = counts.iter().map(|(node, count)| (*count, *node)).min();
        let (Some((most, from)), Some((fewest, to))) = (most, fewest) else { return };
        if most < fewest + 2 {
            return;
        }
        // The last one: neighbours stay together.
        let place = entries.iter().rposition(|entry| entry.owner.node == from.0);
        let (Some(place), Some(host)) = (place, hosts.get(&to)) else { return };
        entries[place].owner = route_owner(to, host);
    }
}

/// How many partitions each node has that is up.
fn counts<'a>(
    hosts: &BTreeMap<NodeId, RangeHost>,
    owned: impl Iterator<Item = &'a RouteEntry>,
) -> BTreeMap<NodeId, usize> {
    let up = hosts.iter().filter(|(_, host)| host.status == OwnerStatus::Up);
    let mut counts: BTreeMap<NodeId, usize> = up.map(|(node, _)| (*node, 0)).collect();
    for entry in owned {
        if let Some(count) = counts.get_mut(&entry.owner.node) {
            *count += 1;
        }
    }
    counts
}
