//! A data arbiter of a node: the activations, the pending calls and the one way in from other threads.

mod local;
mod main_loop;
mod thread;

pub(crate) use local::{ArbiterLocal, not_serving};
pub(crate) use main_loop::{ArbiterShared, Drained, Entry, run};
pub(crate) use thread::with_local;
