//! What reaches a controller, and what it asks for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::contract::{DataCenterEvent, Epoch, Revision};
use crate::datacenter::{DataCenterInfo, DataCenterRecord, DataCenterState};
use crate::time::Millis;

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControllerEvent {
    /// The time that [`ControllerAction::WakeAt`] named has come.
    Woke,
    /// Somebody looked whether this node leads its datacenter.
    Leads(bool),
    /// The claim of the duty was answered: under which epoch it was granted, or that it was not.
    Duty(Option<Epoch>),
    /// A write was answered, or was not.
    Written {
        /// Under which epoch it was sent.
        epoch: Epoch,
        /// What came of it.
        answer: WriteAnswer,
    },
    /// A listing was answered with everything there is, or was not.
    Listed {
        /// Under which epoch it was asked for.
        epoch: Epoch,
        /// The point in history that it shows, and all records.
        listing: Option<(Revision, Vec<DataCenterRecord>)>,
    },
    /// A watch told something.
    Watched(DataCenterEvent),
    /// The watch broke.
    WatchBroken,
    /// What this datacenter says about itself.
    Describe(DataCenterInfo),
    /// The datacenter takes no new placements from now on.
    Drain,
    /// It is shut down.
    Disable,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WriteAnswer {
    /// It is applied; the record as it stands.
    Done(Box<DataCenterRecord>),
    /// Not applied: this stands there.
    Conflict(Option<Box<DataCenterRecord>>),
    /// Not applied: a later leader has written.
    Superseded(Epoch),
    /// Perhaps applied, perhaps not.
    Unanswered,
    /// Not applied: the record does not allow it.
    Refused,
}

/// What the shell does about it. Requests are answered by the event of their kind, within the request timeout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControllerAction {
    /// Claim the duty of this datacenter.
    ClaimDuty,
    /// Give the duty back: somebody else has it.
    ReleaseDuty,
    /// Put the record up, or take it over.
    Register {
        /// What it says.
        info: Box<DataCenterInfo>,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Extend the lease.
    Heartbeat {
        /// The record as it was seen last.
        seen: Box<DataCenterRecord>,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Change the state.
    SetState {
        /// The record as it was seen last.
        seen: Box<DataCenterRecord>,
        /// The state wanted.
        state: DataCenterState,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Read all records.
    List {
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Watch all records, from a snapshot on.
    Watch,
    /// Watch no longer.
    StopWatching,
    /// Tell everybody in this datacenter how things stand: [`Controller::snapshot`](super::Controller::snapshot).
    Show,
    /// Something happened that people want to know.
    Report(ControllerReport),
    /// Hand in [`ControllerEvent::Woke`] then; replaces the wake-up before.
    WakeAt(Millis),
}

/// Something that people want to know about a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControllerReport {
    /// It has the duty now.
    Taken(Epoch),
    /// It has the duty no longer: a leader of this epoch has taken over.
    Superseded(Epoch),
    /// The state of its own record has changed.
    State(DataCenterState),
    /// A write to its own record was not answered.
    WriteFailed,
    /// A listing was not answered.
    ListFailed,
}
