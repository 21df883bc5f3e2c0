//! State that outlives an activation: what an actor keeps, and when it is loaded and saved.

mod error;
mod keeper;
mod migrate;
mod persistent;

pub use error::StateError;
pub use keeper::Saving;
pub(crate) use keeper::StateKeeper;
pub(crate) use migrate::NotCarried;
pub use migrate::{Migrate, Migration};
pub use persistent::{Persistence, Persistent};
