//! Knowing when somebody else's actor is gone: what there is to be told, and who is to be told.
//!
//! [`WatchBook`] keeps the watches of one life of a node, its own and those of other nodes. It decides who is told what and
//! when a watch is one too many; it does no I/O. Waiting, asking and telling are left to its shell.

mod book;

pub use book::{OwnWatch, TooManyWatches, WatchBook, WatchId};

use serde::{Deserialize, Serialize};

use crate::activation::DeactivateReason;
use crate::identity::{Generation, NodeId};

/// How what was watched came to its end. Each watch is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Termination {
    /// There was nothing to watch: the virtual actor was not active, or nobody was registered at the path. Told at once.
    NotActive,
    /// The activation has ended, its last handler included. The next message begins another.
    Ended {
        /// Where it was.
        node: NodeId,
        /// The generation under which that node owned it.
        generation: Generation,
        /// Why it ended.
        reason: DeactivateReason,
    },
    /// The named actor has stopped.
    Stopped,
    /// The path of the named actor was given back, or to another. The actor itself may go on.
    Unregistered,
    /// The node it was on has left, or its session has ended: nothing of it serves any more under this id.
    NodeGone {
        /// That node.
        node: NodeId,
    },
}
