//! Actors that the user started and registered under a path, on this node or on another.
//!
//! A message to a named actor goes through the [`Door`] of its registration: into the mailbox if that has room, else into
//! a line before it, so that order is kept and the mailbox is never flooded. What comes from other nodes is found by its
//! number in the door's [`NamedTable`]; what goes to other nodes leaves through `remote::roads`.

mod answer;
mod door;
mod job;
mod named_ref;
mod registry;
mod table;
mod ticket;

pub(crate) use answer::{Begun, NamedAnswer};
pub(crate) use door::{AnyDoor, Arrival, Door};
pub use job::NamedJob;
pub(crate) use job::{NamedHead, TypedBody};
pub use named_ref::NamedRef;
pub use registry::NameError;
pub(crate) use registry::NamedActors;
pub use table::NamedTable;
pub(crate) use table::name_of;
pub(crate) use ticket::{NamedCalls, Ticket};
