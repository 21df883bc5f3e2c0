//! State that outlives an activation: what an actor keeps, and when it is loaded and saved.

mod error;
mod keeper;
mod persistent;

pub use error::StateError;
pub use keeper::Saving;
pub(crate) use keeper::StateKeeper;
pub use persistent::{Persistence, Persistent};
