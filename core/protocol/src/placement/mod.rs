//! Which node is to own a shard that nobody owns.
//!
//! [`ChooseNode`] is advice: it names the nodes to ask, in order. How the node that is asked comes to own the shard, and
//! how it gives it away, is [`HostedShard`](crate::handoff::HostedShard)'s. Two nodes that choose differently are harmless,
//! because the directory grants a shard to one of them. [`KindLayout`] says how a kind is divided: that must be the same
//! everywhere.

mod cache;
mod choice;
mod layout;

pub use cache::{CacheLimits, Cached, GiveUp, PlacementCache};
pub use choice::{Candidate, ChooseNode, LeastLoaded, Local, Random, Spread, Wanted};
pub use layout::{KindLayout, ShardCount, ShardCountError};

use crate::identity::Generation;
use crate::link::Hint;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimOutcome {
    /// The shard is this node's.
    Placed(Generation),
    /// Another node has it.
    Taken(Hint),
    /// No answer, or none that says anything: it may still be applied.
    Unanswered,
    /// This node's session is over.
    SessionLost,
    /// This node is not the one that may have it: whoever wants it looks elsewhere.
    NotHere,
}
