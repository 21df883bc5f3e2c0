//! Registering a kind with settings of its own, regions that take envelopes, and actors of which a cluster has one.

mod kind;
mod region;
mod singleton;

pub use kind::Sharding;
pub use region::{ShardEnvelope, ShardRegion};
pub(crate) use singleton::keep_alive;
