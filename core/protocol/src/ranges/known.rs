//! The bytes of a table on its way from one node to another.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{KeyRange, KnownTable, OwnerStatus, RangeTable, RouteEntry, RouteOwner};
use crate::contract::{Epoch, TableVersion};
use crate::identity::{ActorKey, NodeAddress, NodeId, PartitionName};

/// Bytes that are no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table cannot be read: {reason}")]
pub struct KnownTableError {
    reason: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    version: u64,
    epoch: Epoch,
    entries: Vec<WireEntry>,
}

/// Where a range begins is where the one before it ends.
#[derive(Serialize, Deserialize)]
struct WireEntry {
    partition: PartitionName,
    end: Option<ActorKey>,
    node: NodeId,
    address: NodeAddress,
    status: u8,
    parents: Vec<PartitionName>,
}

impl KnownTable {
    /// Its bytes.
    ///
    /// # Errors
    ///
    /// A part of it has no form on the wire.
    pub fn encode(&self) -> Result<Vec<u8>, KnownTableError> {
        let entries = self.table.entries().iter().map(WireEntry::of).collect();
        let wire = Wire { version: self.version.0, epoch: self.epoch, entries };
        postcard::to_allocvec(&wire).map_err(unreadable)
    }

    /// The table that these are the bytes of.
    ///
    /// # Errors
    ///
    /// They are no table, or one that could not be.
    pub fn decode(bytes: &[u8]) -> Result<Self, KnownTableError> {
        let wire: Wire = postcard::from_bytes(bytes).map_err(unreadable)?;
        let mut start = None;
        let mut entries = Vec::new();
        for entry in wire.entries {
            let end = entry.end.clone();
            entries.push(entry.after(start)?);
            start = end;
        }
        let table = RangeTable::new(entries).map_err(unreadable)?;
        Ok(Self { version: TableVersion(wire.version), epoch: wire.epoch, table })
    }
}

impl WireEntry {
    fn of(entry: &RouteEntry) -> Self {
        Self {
            partition: entry.partition.clone(),
            end: entry.range.end().cloned(),
            node: entry.owner.node,
            address: entry.owner.address.clone(),
            status: match entry.owner.status {
                OwnerStatus::Up => 0,
                OwnerStatus::Leaving => 1,
                OwnerStatus::Down => 2,
            },
            parents: entry.parents.clone(),
        }
    }

    fn after(self, start: Option<ActorKey>) -> Result<RouteEntry, KnownTableError> {
        let range = KeyRange::new(start, self.end).ok_or_else(|| unreadable("a range is empty"))?;
        let status = match self.status {
            0 => OwnerStatus::Up,
            1 => OwnerStatus::Leaving,
            2 => OwnerStatus::Down,
            _ => return Err(unreadable("not the status of a node")),
        };
        let owner = RouteOwner { node: self.node, address: self.address, status };
        Ok(RouteEntry { partition: self.partition, range, owner, parents: self.parents })
    }
}

fn unreadable(error: impl alloc::string::ToString) -> KnownTableError {
    KnownTableError { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::tests::{at, name, owner};
    use super::*;

    fn known(cuts: &[&str]) -> KnownTable {
        let mut table = RangeTable::whole(name("p"), owner(1));
        for (n, cut) in cuts.iter().enumerate() {
            let whole = table.find(cut).partition.clone();
            let children = (name(&alloc::format!("l{n}")), name(&alloc::format!("u{n}")));
            table = table.split(&whole, &at(cut), (children.0, owner(2)), (children.1, owner(3))).unwrap();
        }
        KnownTable { version: TableVersion(7), epoch: Epoch(3), table }
    }

    #[test]
    fn a_table_comes_out_as_it_went_in() {
        for cuts in [&[][..], &["m"], &["c", "b", "m", "é"]] {
            let known = known(cuts);
            assert_eq!(KnownTable::decode(&known.encode().unwrap()), Ok(known));
        }
    }

    proptest! {
        #[test]
        fn bytes_of_anything_are_a_table_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..60_usize) {
            drop(KnownTable::decode(&bytes));
            let whole = known(&["c", "m"]).encode().unwrap();
            drop(KnownTable::decode(&whole[..cut.min(whole.len())]));
        }
    }
}
