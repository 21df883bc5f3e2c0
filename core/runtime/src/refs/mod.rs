//! Refs: what user code holds instead of an address.

mod actor_ref;
mod binding;
mod message_ref;
mod recipient;
mod submit;
mod untyped;

pub use actor_ref::ActorRef;
pub(crate) use binding::{decoding, decoding_node};
pub use message_ref::MessageRef;
pub(crate) use message_ref::submit_here;
pub(crate) use recipient::{Addressee, forwarder};
pub(crate) use submit::{ask_head, backstop, tell_head};
pub use untyped::UntypedRef;
