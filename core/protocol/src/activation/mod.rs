//! The life of one activation: which states follow which, when a job may start, when idleness ends it.

mod drain;
mod idle;
mod life;
mod state;

pub use drain::{Drain, DrainStep};
pub use idle::IdleQueue;
pub use life::{DeactivateReason, Interleave, Life};
pub use state::{ActivationState, IllegalTransition};
