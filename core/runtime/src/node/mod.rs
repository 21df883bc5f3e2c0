//! A node: one process that hosts actors.

mod attached;
mod builder;
mod error;
mod gate;
mod guard;
mod handle;
mod keeper;
mod kinds;
mod layouts;
mod lives;
mod shared;
mod signals;
mod spec;
mod stop;

pub use builder::NodeBuilder;
pub use error::{StartError, StopError};
pub(crate) use gate::Gate;
pub use handle::Node;
pub(crate) use kinds::{KindShared, KindSpec, MessageEntry, TypedKind};
pub(crate) use lives::Lives;
pub(crate) use shared::{NodeShared, arbiter_of_shard};
