//! Changes of a table that somebody asks for.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{RangeHost, RangeManager, spread};
use crate::contract::{SavedTable, TableVersion};
use crate::identity::{ActorKey, NodeId, PartitionName};
use crate::ranges::{KeyRange, OwnerStatus, RangeTable, RouteEntry, RouteOwner, TableError};
use crate::time::Millis;

/// Names a request; never given twice to one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RangeChange {
    /// Divide a partition.
    Split {
        /// Which one.
        partition: PartitionName,
        /// The first key of its upper part.
        at: ActorKey,
    },
    /// Make a partition and the one after it one.
    Merge {
        /// The lower one.
        partition: PartitionName,
    },
    /// Give a partition to a node.
    Assign {
        /// Which one.
        partition: PartitionName,
        /// To whom.
        to: NodeId,
    },
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ChangeOutcome {
    /// It is in the table of this version.
    Done(TableVersion),
    /// It makes no sense; nothing was changed.
    Refused(ChangeRefusal),
    /// What it waits for did not come in time; nothing was changed.
    NotYet,
    /// It may be in force now, or later. Look at the table before you ask again.
    Unknown,
    /// Another manager has taken over. It may be in force; ask that one.
    SteppedDown {
        /// Its epoch.
        by: crate::contract::Epoch,
    },
}

/// Why a request makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeRefusal {
    /// There is no such partition.
    #[error("there is no such range")]
    UnknownPartition,
    /// The key is not inside the partition, or there is none after it.
    #[error("the key is not inside a range, or no range follows")]
    NotInside,
    /// No such node that is up hosts the kind.
    #[error("no such node that is up hosts the kind")]
    UnknownNode,
    /// The table would be larger than the store or the protocol takes.
    #[error("there are as many ranges as there may be")]
    TooLarge,
    /// Too many requests wait.
    #[error("too many changes wait")]
    TooMany,
}

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) change: RangeChange,
    pub(super) until: Millis,
    /// The names of the new partitions, once they were given out: a write that is late brings the same ones.
    pub(super) names: Option<Vec<PartitionName>>,
}

/// A table to be written, and the request that it carries out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Plan {
    pub(super) table: RangeTable,
    pub(super) request: Option<RequestId>,
}

/// Why there is no plan for a request.
pub(super) enum NoPlan {
    /// It is in force already.
    Done,
    Refused(ChangeRefusal),
}

impl NoPlan {
    pub(super) fn at(self, saved: &SavedTable) -> ChangeOutcome {
        match self {
            Self::Done => ChangeOutcome::Done(saved.version),
            Self::Refused(why) => ChangeOutcome::Refused(why),
        }
    }
}

impl Plan {
    /// Whether this very table was saved.
    pub(super) fn is_in(&self, saved: &SavedTable) -> bool {
        saved.table.as_ref() == Some(&self.table)
    }
}

impl RangeManager {
    /// The table of a kind that has none.
    pub(super) fn first_table(&mut self) -> Option<Plan> {
        let ends: Vec<Option<ActorKey>> = self.cuts.iter().cloned().map(Some).chain([None]).collect();
        let (mut entries, mut start) = (Vec::new(), None);
        for end in ends {
            let range = KeyRange::new(start, end.clone())?;
            let owner = spread::least(&self.hosts, entries.iter())?;
            entries.push(RouteEntry { partition: self.new_name()?, range, owner, parents: Vec::new() });
            start = end;
        }
        Some(Plan { table: RangeTable::new(entries).ok()?, request: None })
    }

    /// The first request that need not wait for parents to be retired.
    pub(super) fn next_request(&self, table: &RangeTable) -> Option<usize> {
        self.requests.iter().position(|asked| !waits_for_parents(&asked.change, table))
    }

    /// What a request makes of the table.
    pub(super) fn plan_for(&mut self, place: usize, table: &RangeTable) -> Result<Plan, NoPlan> {
        let Some(Asked { id, change, names, .. }) = self.requests.get(place).cloned() else {
            return Err(NoPlan::Refused(ChangeRefusal::UnknownPartition));
        };
        // A write whose answer was lost has brought it into force, and the table has moved on since.
        if names.is_some_and(|names| names.iter().all(|name| table.partition(name).is_some())) {
            return Err(NoPlan::Done);
        }
        let table = match change {
            RangeChange::Split { partition, at } => self.split(place, table, &partition, &at),
            RangeChange::Merge { partition } => self.merge(place, table, &partition),
            RangeChange::Assign { partition, to } => self.assign(table, &partition, to),
        };
        Ok(Plan { table: table?, request: Some(id) })
    }

    fn split(
        &mut self,
        place: usize,
        table: &RangeTable,
        partition: &PartitionName,
        at: &ActorKey,
    ) -> Result<RangeTable, NoPlan> {
        let owner = table.partition(partition).map(|entry| entry.owner.clone()).ok_or_else(unknown)?;
        let names = self.names_for(place, 2).ok_or_else(too_large)?;
        let [lower, upper] = [names[0].clone(), names[1].clone()].map(|name| (name, owner.clone()));
        table.split(partition, at, lower, upper).map_err(refusal)
    }

    fn merge(
        &mut self,
        place: usize,
        table: &RangeTable,
        partition: &PartitionName,
    ) -> Result<RangeTable, NoPlan> {
        let owner = table.partition(partition).map(|entry| entry.owner.clone()).ok_or_else(unknown)?;
        let names = self.names_for(place, 1).ok_or_else(too_large)?;
        table.merge(partition, names[0].clone(), owner).map_err(refusal)
    }

    fn assign(
        &self,
        table: &RangeTable,
        partition: &PartitionName,
        to: NodeId,
    ) -> Result<RangeTable, NoPlan> {
        let host = self.hosts.get(&to).filter(|host| host.status == OwnerStatus::Up);
        let host = host.ok_or(NoPlan::Refused(ChangeRefusal::UnknownNode))?;
        let entry = table.partition(partition).ok_or_else(unknown)?;
        let owner = route_owner(to, host);
        if entry.owner == owner {
            return Err(NoPlan::Done);
        }
        table.assign(partition, owner).map_err(refusal)
    }

    /// The names of the partitions that a request makes: the same ones each time it is tried.
    fn names_for(&mut self, place: usize, count: usize) -> Option<Vec<PartitionName>> {
        if let Some(names) = self.requests.get(place).and_then(|asked| asked.names.clone()) {
            return Some(names);
        }
        let names: Option<Vec<PartitionName>> = (0..count).map(|_| self.new_name()).collect();
        if let Some(asked) = self.requests.get_mut(place) {
            asked.names.clone_from(&names);
        }
        names
    }

    /// A name that no manager has ever given: no two have the same epoch.
    fn new_name(&mut self) -> Option<PartitionName> {
        self.named += 1;
        PartitionName::new(&format!("{}-{}", self.epoch, self.named)).ok()
    }
}

pub(super) fn route_owner(node: NodeId, host: &RangeHost) -> RouteOwner {
    RouteOwner { node, address: host.address.clone(), status: host.status }
}

/// The same table without the parents that are retired, where an entry has no others; `None` if there is none.
pub(super) fn without_retired_parents(
    table: &RangeTable,
    retired: &BTreeSet<PartitionName>,
) -> Option<RangeTable> {
    let is_free = |entry: &RouteEntry| {
        !entry.parents.is_empty() && entry.parents.iter().all(|parent| retired.contains(parent))
    };
    if !table.entries().iter().any(is_free) {
        return None;
    }
    let freed = |entry: &RouteEntry| {
        let mut entry = entry.clone();
        if is_free(&entry) {
            entry.parents.clear();
        }
        entry
    };
    RangeTable::new(table.entries().iter().map(freed).collect()).ok()
}

/// Whether a partition that is to be divided or merged has parents that stand in the way.
fn waits_for_parents(change: &RangeChange, table: &RangeTable) -> bool {
    let has_parents = |entry: &RouteEntry| !entry.parents.is_empty();
    match change {
        RangeChange::Split { partition, .. } => table.partition(partition).is_some_and(has_parents),
        RangeChange::Merge { partition } => {
            let place = table.entries().iter().position(|entry| entry.partition == *partition);
            place.is_some_and(|place| table.entries()[place..].iter().take(2).any(has_parents))
        }
        RangeChange::Assign { .. } => false,
    }
}

const fn unknown() -> NoPlan {
    NoPlan::Refused(ChangeRefusal::UnknownPartition)
}

const fn too_large() -> NoPlan {
    NoPlan::Refused(ChangeRefusal::TooLarge)
}

fn refusal(error: TableError) -> NoPlan {
    NoPlan::Refused(match error {
        TableError::Unknown { .. } => ChangeRefusal::UnknownPartition,
        TableError::Count { .. } => ChangeRefusal::TooLarge,
        _ => ChangeRefusal::NotInside,
    })
}
