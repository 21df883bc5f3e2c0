//! The registry of datacenters.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;

use super::{BoxError, Epoch, Listing, Revision};
use crate::datacenter::{DataCenterId, DataCenterInfo, DataCenterRecord, DataCenterState};

/// Holds one record per datacenter, written only by that datacenter's leader, and tells the others.
///
/// One control plane serves all datacenters. It is needed for changes only: whoever cannot reach it goes on with what
/// was told last.
///
/// # Every implementation
///
/// Writing:
/// - *register_creates_or_takes_over*: a new record, or an inactive one, becomes registered; that of a living datacenter
///   keeps its state and gets the caller's epoch and metadata (SEAL); repeating a registration writes nothing.
/// - *heartbeat_names_its_version*: a heartbeat replaces exactly the version that the caller saw, or finds what stands
///   there; the first makes a registered datacenter active.
/// - *record_version_grows*: every write to a record has a greater version than all before, also across a delete.
/// - *set_state_follows_the_lifecycle*: only what [`DataCenterState::after`] allows is written.
/// - *set_state_is_idempotent*: asking again for a state already reached succeeds and writes nothing.
/// - *stale_leader_is_refused*: a writer whose epoch is smaller than the record's changes nothing, whatever it saw.
/// - *record_cas_is_exclusive*: of concurrent writes over one version one is applied.
/// - *registrations_race_to_the_greatest_epoch*: leaders that register at once leave one record, of the greatest epoch.
///
/// Reading:
/// - *list_active_holds_the_active_only*: registered, draining and inactive datacenters are not listed.
/// - *list_active_excludes_ended_leases*: nor those whose record has stood still for its lease, as counted by the caller's
///   own clock while the control plane answered; the wall time in the record decides nothing.
/// - *an_outage_ends_no_lease*: while the control plane does not answer, nobody's lease runs.
/// - *list_active_is_sorted_by_version*.
/// - *control_plane_watch_starts_with_a_snapshot*, *control_plane_watch_misses_nothing*,
///   *control_plane_watch_resumes*, *control_plane_watch_survives_compaction*: a snapshot at revision r, then every change
///   after r, in order, at least once.
/// - *control_plane_watch_survives_a_restart*: where a server underneath restarts, a watch goes on by itself, and no epoch
///   goes back.
/// - *datacenter_record_is_json*: people can read what the store holds.
///
/// Dropping a future may or may not have written, now or later; it corrupts nothing (*control_plane_is_cancel_safe*). An
/// engine may delete the record of a datacenter that has been silent for several leases; whoever comes back registers
/// again.
#[async_trait]
pub trait ControlPlane: Send + Sync + 'static {
    /// Puts the record of the caller's datacenter up, or takes it over from an earlier leader. `wall_ms` is the caller's
    /// wall time in milliseconds since 1970, for people.
    ///
    /// A record that an earlier life of the datacenter left draining stays so: disable it with
    /// [`set_state`](Self::set_state), then register again.
    async fn register(
        &self,
        info: &DataCenterInfo,
        epoch: Epoch,
        wall_ms: u64,
    ) -> Result<DataCenterRecord, ControlPlaneError>;

    /// Extends the lease of the record that the caller last saw; answers the record as it stands now.
    ///
    /// # Errors
    ///
    /// - `Invalid`: the record is inactive; register again.
    async fn heartbeat(
        &self,
        seen: &DataCenterRecord,
        epoch: Epoch,
        wall_ms: u64,
    ) -> Result<DataCenterRecord, ControlPlaneError>;

    /// Changes the state of the record that the caller last saw: to `Draining` when the datacenter begins to shut down,
    /// to `Inactive` when it has.
    ///
    /// # Errors
    ///
    /// - `Invalid`: that state cannot follow, or is never asked for.
    async fn set_state(
        &self,
        seen: &DataCenterRecord,
        state: DataCenterState,
        epoch: Epoch,
    ) -> Result<DataCenterRecord, ControlPlaneError>;

    /// The datacenters that are active and whose lease has not ended, in the order of their versions. One request; may be
    /// old.
    async fn list_active(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError>;

    /// Every record as it stands, of whatever state, also those whose lease has ended: what to judge leases by.
    async fn list_all(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError>;

    /// Watches all records: from a snapshot on if `from` is `None`, else every change after that revision. Breaks of the
    /// store's own watch are mended inside.
    async fn watch(&self, from: Option<Revision>) -> Result<DataCenterWatch, ControlPlaneError>;
}

/// One change of the control plane. Delivered at least once and in order, so it may repeat what is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataCenterEvent {
    /// Everything there is at `revision`; replaces all that was known.
    Snapshot {
        /// The point in history that the snapshot shows.
        revision: Revision,
        /// All records.
        records: Vec<DataCenterRecord>,
    },
    /// A record is new or has changed.
    Put {
        /// The point in history of the change.
        revision: Revision,
        /// The record as it stands.
        record: DataCenterRecord,
    },
    /// A record is gone.
    Gone {
        /// The point in history of the change.
        revision: Revision,
        /// Whose.
        id: DataCenterId,
    },
}

impl DataCenterEvent {
    /// The point in history up to which the watcher knows everything, once it has taken this event in.
    pub const fn revision(&self) -> Revision {
        match self {
            Self::Snapshot { revision, .. } | Self::Put { revision, .. } | Self::Gone { revision, .. } => {
                *revision
            }
        }
    }
}

/// The changes of the control plane; ends only when dropped, or after an error that no retry can mend.
pub type DataCenterWatch = Pin<Box<dyn Stream<Item = Result<DataCenterEvent, ControlPlaneError>> + Send>>;

/// Why an operation of the [`ControlPlane`] did not come to its result, sorted by what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlPlaneError {
    /// The record is not the one the caller saw; nothing was written. Go on from `current`, if its epoch allows.
    #[error("the record has changed")]
    Conflict {
        /// What stands there now; `None`: register again.
        current: Option<Box<DataCenterRecord>>,
    },
    /// Another leader has written since; nothing was written. Step down.
    #[error("a leader of epoch {by} has taken over")]
    Superseded {
        /// The epoch in the record.
        by: Epoch,
    },
    /// The control plane did not take the request: certainly not applied. Try again later.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// No answer came: may be applied now or later. Repeat the same request, or read.
    #[error("the outcome of a write to {backend} is unknown")]
    Unknown {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// The request cannot be granted as it is, or a stored record cannot be read; nothing was written. Repeating it will
    /// not help.
    #[error("invalid: {what}")]
    Invalid {
        /// What is wrong.
        what: &'static str,
        /// The underlying error, if there is one.
        source: Option<BoxError>,
    },
}
