//! Datacenters as the control plane knows them: what they say about themselves, and which of them live.
//!
//! Each datacenter has one [`DataCenterRecord`], written only by its own leader. [`DataCenterState`] decides which
//! states may follow each other; [`DataCenterLiveness`] decides, on our own monotonic clock, whose lease has ended. Wall
//! time stands in the record for people; no decision reads it, so clock skew between datacenters is harmless.

mod attempt;
mod choice;
mod controller;
mod discovery;
mod distances;
mod id;
mod info;
mod liveness;
mod map;
mod record;
mod residence;
mod snapshot;
mod standings;
mod state;
mod target;
mod verdict;

pub use attempt::{AfterAttempt, EndpointSaid, PlacingAttempt, share_of};
pub use choice::{
    ChooseDataCenter, DataCenterCandidate, HomeByKey, NearestFirst, RegionFirst, WantedDataCenter, in_order,
};
pub use controller::{
    Controller, ControllerAction, ControllerEvent, ControllerReport, ControllerSettings, EMBEDDED_LEASE,
    JITTER_PERCENT, WriteAnswer,
};
pub use discovery::{
    AskId, Discovered, Discovery, DiscoveryAction, DiscoveryEvent, DiscoverySettings, FarAnswer, OnSilence,
    OnStale, SeekerId,
};
pub use distances::{DistanceAction, DistanceEvent, Distances};
pub use id::{DataCenterId, DataCenterIdError};
pub use info::{DataCenterInfo, DataCenterInfoError};
pub use liveness::{DataCenterLiveness, LivenessAction, LivenessEvent};
pub use map::{DataCenterMap, MapEntry};
pub use record::{DataCenterRecord, DataCenterVersion};
pub use residence::{Residence, ShardHold};
pub use snapshot::{MapChange, SharedMap, Snapshot};
pub use standings::{Keep, Standings, Whither};
pub use state::{DataCenterState, IllegalTransition, LifeEvent};
pub use target::{DataCenterTarget, NoCandidate, TargetError, endpoint_order};
pub use verdict::{HomeRecord, Verdict, verdict};
