//! Kinds that are divided by ranges of keys: the table that divides them, and the ranges that this node owns.
//!
//! One node has the duty to decide the tables ([`manager`]); every node follows them, and claims, empties and gives up its
//! ranges as they say ([`keeper`]). The owner record of a range grants its actors: an actor of a range is hosted and routed
//! like a single actor, only that [`Ranges`] is asked where a single actor would ask the directory. So a table that changes
//! changes nobody's number, and messages keep their order while ranges are divided, merged and given to other nodes.

mod emptying;
mod holdings;
mod keeper;
mod manager;
mod requests;

use std::sync::Arc;

pub(crate) use holdings::{Grant, Ranges};
pub use requests::RangeError;
pub(crate) use requests::answer;
#[cfg(feature = "corpus")]
pub(crate) use requests::readers;

use crate::node::NodeShared;

/// Starts what a node with such kinds needs. Call it on the control arbiter.
pub(crate) fn start(node: &Arc<NodeShared>) {
    if node.kinds().iter().any(|kind| kind.layout().is_by_range()) {
        keeper::start(node);
        manager::start(node);
    }
}

pub(crate) use keeper::leave;
