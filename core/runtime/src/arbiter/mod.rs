//! A data arbiter of a node: the activations, the pending calls and the one way in from other threads.

mod main_loop;
mod room;
mod state;
mod thread;
mod timing;

pub(crate) use main_loop::{ArbiterShared, Drained, Entry, Presence, Survey, run};
pub(crate) use state::{ArbiterLocal, Expire, not_serving};
pub use thread::from_outside;
pub(crate) use thread::local;
