//! Refs: what user code holds instead of an address.

mod actor_ref;
mod binding;
mod message_ref;
mod recipient;
mod submit;
mod untyped;

pub use actor_ref::ActorRef;
pub(crate) use binding::decoding;
pub use message_ref::MessageRef;
pub(crate) use message_ref::submit_here;
pub use untyped::UntypedRef;
