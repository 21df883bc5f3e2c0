//! Datacenters as the control plane knows them: what they say about themselves, and which of them live.
//!
//! Each datacenter has one [`DataCenterRecord`], written only by its own leader. [`DataCenterState`] decides which
//! states may follow each other; [`DataCenterLiveness`] decides, on our own monotonic clock, whose lease has ended. Wall
//! time stands in the record for people; no decision reads it, so clock skew between datacenters is harmless.

mod id;
mod info;
mod liveness;
mod record;
mod state;

pub use id::{DataCenterId, DataCenterIdError};
pub use info::{DataCenterInfo, DataCenterInfoError};
pub use liveness::{DataCenterLiveness, LivenessAction, LivenessEvent};
pub use record::{DataCenterRecord, DataCenterVersion};
pub use state::{DataCenterState, IllegalTransition, LifeEvent};
