//! The joint between the traces that messages carry and whatever keeps the traces of the program.
//!
//! Every message carries which trace and which span it was sent in, from node to node and from datacenter to datacenter. What the
//! spans of a program are and where they go is the business of its `tracing` subscriber, of which there are many; the library is
//! built upon none. `examples/traces.rs` has a bridge to OpenTelemetry.

use archipelago_protocol::message::TraceContext;
use tracing::Span;

/// Joins the spans of a program with the traces that messages carry.
///
/// Without one a message carries the trace that its sender names ([`CallOptions::trace`](super::CallOptions::trace)) or was
/// itself handled in. Both methods are called on the hot path, on any thread, and must neither block nor send.
pub trait TraceBridge: Send + Sync + 'static {
    /// The span that runs now on this thread, if it belongs to a trace. What is sent now says that it was sent in it, unless its
    /// sender names another.
    fn current(&self) -> Option<TraceContext>;

    /// A handler is about to begin in `span`, for a message that was sent in `sender`: makes `sender` its parent. Only called if
    /// the subscriber takes spans of level `DEBUG`.
    fn adopt(&self, span: &Span, sender: TraceContext);
}
