//! What travels: the envelope, and everything in its header.
//!
//! An [`Envelope`] says who sends which message to whom, until when and on whose behalf; its payload is bytes that a
//! [`Codec`] wrote. Header and payload are written by hand-made code so that a decoder never trusts a length.
//! Routing, pending calls and deadlines are decided elsewhere.
//!
//! Invariant: what decodes is valid. A request has a time to live, a one-way message has no correlation id, flags are
//! known and complete, ids are checked.

mod call_chain;
mod codec;
mod envelope;
mod error;
mod extensions;
mod flags;
mod leg;
mod trace;
mod wire;
mod wire_id;

pub use call_chain::CallChain;
pub use codec::{Codec, CodecError, CodecId, Json, PayloadCodec, Postcard};
pub use envelope::Envelope;
pub use error::{EnvelopeError, EnvelopePart};
pub use extensions::Extensions;
pub use flags::{MessageFlags, UnknownFlags};
pub use leg::{Direction, Leg, Target};
pub use trace::{TraceContext, TraceContextError};
pub use wire_id::{MessageName, TypeHint, TypeHintError, WireId, assert_distinct, wire_id};
