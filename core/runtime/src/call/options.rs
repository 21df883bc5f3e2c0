//! What a caller may say about one call.

use std::time::Duration;

use archipelago_protocol::message::{MessageFlags, TraceContext};

/// The options of one `send_with` or `tell_with`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) flags: MessageFlags,
    pub(crate) trace: Option<TraceContext>,
}

impl CallOptions {
    /// No options: the node's deadline, the message's own flags, the inherited trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up after `timeout`. An inherited deadline that is earlier still holds.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds flags to those of the message.
    #[must_use]
    pub fn flags(mut self, flags: MessageFlags) -> Self {
        self.flags |= flags;
        self
    }

    /// Makes the call part of a trace.
    #[must_use]
    pub const fn trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }
}
