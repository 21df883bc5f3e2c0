//! The record of a datacenter, as the control plane holds it.

use super::{DataCenterId, DataCenterInfo, DataCenterState};
use crate::contract::Epoch;
use crate::time::Millis;

/// The record of a datacenter, as somebody received it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataCenterRecord {
    /// What it says about itself.
    pub info: DataCenterInfo,
    /// What it is ready for, as its leader wrote.
    pub state: DataCenterState,
    /// The epoch of the leader that wrote the record last.
    pub epoch: Epoch,
    /// The length of its lease. Whoever judges the lease counts with this, on a clock of its own.
    pub lease_ttl: Millis,
    /// When the lease ends unless it is renewed: wall time of its leader in milliseconds since 1970, for people.
    pub lease_expiry_ms: u64,
    /// Grows with every write to the record, also across deletes; a write names the one that it replaces.
    pub version: DataCenterVersion,
}

impl DataCenterRecord {
    /// The identity of the datacenter.
    pub const fn id(&self) -> &DataCenterId {
        self.info.id()
    }
}

/// The revision of a datacenter's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataCenterVersion(pub u64);
