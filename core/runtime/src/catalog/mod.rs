//! The actors of a node: which are active here, how they come to life, get their messages, and go.

mod activate;
mod any_kind;
mod arrive;
mod carry;
mod inbox;
mod job;
mod kind;
mod listing;
mod luggage;
mod messages;
mod replies;
mod retire;
mod room;
mod seal;
mod shards;
mod slot;
mod slots;
mod summons;
mod tally;
mod tokens;

pub(crate) use any_kind::{AnyKind, Encoded};
pub(crate) use job::{Job, JobHead, Queued, Reply, ReplyTo, TypedJob, WayBack};
pub use kind::Factory;
pub(crate) use kind::{KindCatalog, Target};
pub use messages::MessageTable;
pub(crate) use seal::{Leaving, Left};
pub(crate) use shards::Noted;
pub(crate) use tally::{Tallied, Times};
