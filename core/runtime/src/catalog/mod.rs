//! The actors of a node: which are active here, how they come to life, get their messages, and go.

mod activate;
mod arrive;
mod inbox;
mod job;
mod kind;
mod messages;
mod retire;
mod room;
mod seal;
mod shards;
mod slot;
mod summons;
mod tokens;

pub(crate) use job::{Job, JobHead, Queued, Reply, ReplyTo, TypedJob, WayBack};
pub use kind::Factory;
pub(crate) use kind::{AnyKind, Encoded, KindCatalog, Target};
pub use messages::MessageTable;
pub(crate) use seal::{Leaving, Left};
