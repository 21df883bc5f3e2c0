//! Where messages for a shard go, while the shard may move: the sender's side and the receiver's side of a lane.
//!
//! [`RouteEntry`] is the sender's: it knows the owner of one shard, keeps messages while there is none, and leaves an
//! owner only after that one has settled. [`WaitingRoom`] bounds what all routes of
//! a sender keep. [`Refusals`] is the receiver's: it returns everything after the first
//! message it returned, until the sender has settled. Together they keep the order of one sender across moves. Who owns a
//! shard is decided elsewhere.
//!
//! Invariant: messages of one sender to one shard start in the order in which they were sent, each at most once.

mod entry;
mod events;
mod patience;
mod refusals;
mod room;

pub use entry::RouteEntry;
pub use events::{RouteAction, RouteEvent, RouteRefusal, RouteState};
pub use patience::Patience;
pub use refusals::{LaneId, Place, Refusals, Verdict};
pub use room::{RoomFull, RoomLimits, WaitingRoom};
