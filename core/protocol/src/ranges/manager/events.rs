//! What reaches the manager of a kind, and what is to be done about it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::changes::{ChangeOutcome, RangeChange, RequestId};
use crate::contract::{Epoch, RoutingTableError, SavedTable};
use crate::identity::{NodeAddress, NodeId, PartitionName};
use crate::ranges::{OwnerStatus, RangeTable};
use crate::time::Millis;

/// How much the manager asks for, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ManagerLimits {
    /// Partitions that one table gives to other nodes only for the sake of balance.
    pub moves: usize,
    /// Changes that may wait.
    pub requests: usize,
    /// After how long something that failed is tried again.
    pub retry: Millis,
}

impl ManagerLimits {
    /// What a manager has that says nothing.
    pub const DEFAULT: Self = Self { moves: 16, requests: 256, retry: Millis(1_000) };
}

/// A node that may own partitions of the kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeHost {
    /// Where it is reached.
    pub address: NodeAddress,
    /// How it is. Only nodes that are up are given something; one that leaves loses what it has.
    pub status: OwnerStatus,
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ManagerEvent {
    /// The answer to [`ManagerAction::Seal`].
    Sealed(Result<SavedTable, SaveFailure>),
    /// The answer to [`ManagerAction::Save`]. No answer in time counts as [`SaveFailure::Unknown`].
    Saved(Result<SavedTable, SaveFailure>),
    /// The answer to [`ManagerAction::Load`].
    Loaded(Result<Option<SavedTable>, SaveFailure>),
    /// The members that host the kind, all of them. Who is missing has gone.
    Hosts(BTreeMap<NodeId, RangeHost>),
    /// Somebody asks for a change; [`ManagerAction::Answer`] comes by `until`.
    Asked {
        /// Whoever asks.
        id: RequestId,
        /// What it wants.
        change: RangeChange,
        /// How long it waits.
        until: Millis,
    },
    /// A partition is said to be retired, or to have no owner.
    Retired(PartitionName),
    /// The time asked for by [`ManagerAction::WakeAt`] has come.
    WokeUp,
}

/// How a request to the store fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SaveFailure {
    /// Another table stands there.
    Conflict {
        /// Which one, if the store said it.
        current: Option<Box<SavedTable>>,
    },
    /// A later manager has written.
    Superseded {
        /// Its epoch.
        by: Epoch,
    },
    /// A parent has not been retired.
    NotRetired {
        /// Which one.
        partition: PartitionName,
    },
    /// Certainly not applied.
    Unavailable,
    /// May be applied now or later.
    Unknown,
    /// Repeating it will not help.
    Invalid,
}

impl From<RoutingTableError> for SaveFailure {
    fn from(error: RoutingTableError) -> Self {
        match error {
            RoutingTableError::Conflict { current } => Self::Conflict { current },
            RoutingTableError::Superseded { by } => Self::Superseded { by },
            RoutingTableError::NotRetired { partition } => Self::NotRetired { partition },
            RoutingTableError::Unavailable { .. } => Self::Unavailable,
            RoutingTableError::Unknown { .. } => Self::Unknown,
            RoutingTableError::Invalid { .. } => Self::Invalid,
        }
    }
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ManagerAction {
    /// Seal the table of the kind under the manager's epoch.
    Seal,
    /// Save this table over the one that stood there.
    Save {
        /// The new table.
        table: RangeTable,
        /// What it replaces.
        expected: SavedTable,
    },
    /// Read the table as it stands.
    Load,
    /// Have the owner of a partition retire it; answer with [`ManagerEvent::Retired`] once it has, or nobody owns it.
    Retire {
        /// Which one.
        partition: PartitionName,
        /// Who should own it; `None` if only the directory knows.
        owner: Option<NodeId>,
    },
    /// Have a node that is there give a partition to another. The new one follows the table by itself.
    HandOver {
        /// Which one.
        partition: PartitionName,
        /// Who should own it no longer.
        from: NodeId,
        /// Who should.
        to: NodeId,
    },
    /// Tell whoever asked for a change what came of it.
    Answer {
        /// Who asked.
        id: RequestId,
        /// What came of it.
        outcome: ChangeOutcome,
    },
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
    /// Another manager is in office: give the role up.
    StepDown {
        /// Its epoch.
        by: Epoch,
    },
}
