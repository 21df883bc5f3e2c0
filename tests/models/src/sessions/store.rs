//! The store of the model: two kinds of records, and writes that are on their way.
//!
//! A write is applied at any time after it was sent, also long after its sender gave up waiting, or never; its answer may
//! get lost. A record remembers its last state but one, for reads that are stale.

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::{Lease, LeaseOutcome, LeaseSeen, LeaseVersion};

/// A record and how often it was written. The count grows across deletes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell<V> {
    pub(crate) version: u64,
    pub(crate) value: Option<V>,
    /// What stood here before, if stale reads are part of the run.
    pub(crate) before: Option<Box<(u64, Option<V>)>>,
}

/// What a write expects to replace. All but the first two exist for mutants only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Expect {
    Absent,
    At(u64),
    Anything,
    OwnedBy(NodeId),
}

/// A write and the record that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    /// Of the lease of the session with this index. A mutant deletes leases.
    Lease(usize, Option<Lease>),
    Owner(Option<NodeId>),
}

/// A write on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) expect: Expect,
    pub(crate) write: Write,
    pub(crate) state: FlightState,
    /// Who waits for the answer; nobody once the sender gave up or died.
    pub(crate) waiter: Option<Waiter>,
    /// When it was sent; zero unless a mutant wants to know.
    pub(crate) sent: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlightState {
    Sent,
    Applied(u64),
    FoundLease(Option<LeaseSeen>),
    FoundOwner(Option<(NodeId, u64)>),
}

/// Who sent a write, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waiter {
    Open,
    Beat(u64),
    End { session: usize, version: u64 },
    Claim(Who),
    ClaimPin(Who),
    ObserverPin(usize),
    Leave(Who),
}

/// The two nodes: A lives and dies with its sessions, B's session never runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    A,
    B,
}

impl<V: Clone> Cell<V> {
    pub(crate) fn empty() -> Self {
        Self { version: 0, value: None, before: None }
    }

    pub(crate) fn set(&mut self, value: Option<V>, remember: bool) {
        let last = (self.version, core::mem::replace(&mut self.value, value));
        self.before = remember.then(|| Box::new(last));
        if self.value.is_some() {
            self.version += 1;
        }
    }

    /// The version and value that a read shows.
    pub(crate) fn read(&self, stale: bool) -> (u64, Option<V>) {
        match &self.before {
            Some(before) if stale => (**before).clone(),
            _ => (self.version, self.value.clone()),
        }
    }
}

impl Expect {
    pub(crate) fn allows<V>(self, cell: &Cell<V>, owner: Option<NodeId>) -> bool {
        match self {
            Self::Absent => cell.value.is_none(),
            Self::At(version) => cell.value.is_some() && cell.version == version,
            Self::Anything => true,
            Self::OwnedBy(node) => owner == Some(node),
        }
    }
}

impl Waiter {
    pub(crate) fn node(self) -> Who {
        match self {
            Self::Open | Self::Beat(_) => Who::A,
            Self::End { .. } | Self::ObserverPin(_) => Who::B,
            Self::Claim(who) | Self::ClaimPin(who) | Self::Leave(who) => who,
        }
    }
}

impl FlightState {
    pub(crate) fn lease_outcome(&self) -> LeaseOutcome {
        match self {
            Self::Applied(version) => LeaseOutcome::Applied(LeaseVersion(*version)),
            Self::FoundLease(found) => LeaseOutcome::Found(found.clone()),
            Self::Sent | Self::FoundOwner(_) => LeaseOutcome::Unknown,
        }
    }
}
