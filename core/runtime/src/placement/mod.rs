//! Who serves a shard: finding its owner, finding it one, and handing it over.

mod carrying;
mod coordinator;
mod following;
mod handover;
mod hosting;
mod leaving;
mod moving;
mod rebalance;
mod seek;
mod singles;
mod writes;

pub(crate) use coordinator::{ShardCoordinator, start as start_coordinator};
pub(crate) use following::start as start_following;
pub(crate) use hosting::Hosting;
pub(crate) use leaving::hand_everything_over;
pub(crate) use moving::answer_handoff;
pub use rebalance::Rebalance;
pub(crate) use seek::{Found, address_of, meet, place_here, seek};
pub(crate) use writes::session_of;
