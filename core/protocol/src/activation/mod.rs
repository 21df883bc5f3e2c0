//! The life of one activation: which states follow which, when a job may start, when idleness or
//! a crowd ends it, and in which order its states are saved.

mod crowd;
mod drain;
mod idle;
mod life;
mod saves;
mod state;

pub use crowd::Crowd;
pub use drain::{Drain, DrainStep};
pub use idle::TimeQueue;
pub use life::{DeactivateReason, Interleave, Life, RoomLook};
pub use saves::{AfterFailure, LastSave, SaveOrder, SaveStep, SaveTicket};
pub use state::{ActivationState, IllegalTransition};
