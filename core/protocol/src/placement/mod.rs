//! Which node is to own a shard, and how one node comes to own it.
//!
//! [`ChooseNode`] is advice: it names the nodes to ask, in order. [`Tenure`] is one shard at one node: it claims the shard
//! when it is asked to and serves it once its own claim was answered. Two nodes that choose differently are harmless,
//! because the directory grants a shard to one of them. [`KindLayout`] says how a kind is divided: that must be the same
//! everywhere.

mod choice;
mod layout;
mod tenure;

pub use choice::{Candidate, ChooseNode, LeastLoaded, Local, Random, Spread, Wanted};
pub use layout::{KindLayout, ShardCount, ShardCountError};
pub use tenure::{ClaimOutcome, Tenure, TenureAction, TenureEvent, TenureState};
