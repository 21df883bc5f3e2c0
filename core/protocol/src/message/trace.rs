//! The trace that a message belongs to.

use core::fmt;
use core::num::{NonZeroU64, NonZeroU128};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::identity::text::parse_hex;

/// Which trace and which span a message was sent in.
///
/// Its text is the value of W3C's `traceparent` header, version 00. Zero ids mean "no trace" there, so they are
/// refused here: no trace is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TraceContext {
    trace_id: NonZeroU128,
    span_id: NonZeroU64,
    flags: u8,
}

impl TraceContext {
    /// The span `span_id` of the trace `trace_id`.
    ///
    /// # Errors
    ///
    /// An id is zero.
    pub const fn new(trace_id: u128, span_id: u64, flags: u8) -> Result<Self, TraceContextError> {
        match (NonZeroU128::new(trace_id), NonZeroU64::new(span_id)) {
            (Some(trace_id), Some(span_id)) => Ok(Self { trace_id, span_id, flags }),
            _ => Err(TraceContextError::ZeroId),
        }
    }

    /// The whole story.
    pub const fn trace_id(self) -> u128 {
        self.trace_id.get()
    }

    /// The sender's part of it.
    pub const fn span_id(self) -> u64 {
        self.span_id.get()
    }

    /// W3C's trace flags.
    pub const fn flags(self) -> u8 {
        self.flags
    }

    /// Whether the sender records this trace.
    pub const fn is_sampled(self) -> bool {
        self.flags & 1 != 0
    }

    /// The same trace with another span, for a message sent on behalf of this one.
    ///
    /// # Errors
    ///
    /// `span_id` is zero.
    pub const fn child(self, span_id: u64) -> Result<Self, TraceContextError> {
        Self::new(self.trace_id.get(), span_id, self.flags)
    }
}

/// Why a text is not a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TraceContextError {
    /// The text has another form.
    #[error("a traceparent is written 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, in lower case")]
    InvalidFormat,
    /// The trace id or the span id is zero, which means that there is none.
    #[error("the trace id or the span id is zero")]
    ZeroId,
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    /// Reads version 00, and of a later version the part that W3C promises to keep.
    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        let mut parts = text.split('-');
        let mut next = || parts.next().unwrap_or_default();
        let version = parse_hex::<2>(next());
        let (trace_id, span_id, flags) =
            (parse_hex::<32>(next()), parse_hex::<16>(next()), parse_hex::<2>(next()));
        let complete = parts.next().is_none();
        match (version, trace_id, span_id, flags) {
            (Some(0), ..) if !complete => Err(TraceContextError::InvalidFormat),
            (Some(0..=0xfe), Some(trace_id), Some(span_id), Some(flags)) => {
                Self::new(trace_id, span_id as u64, flags as u8)
            }
            _ => Err(TraceContextError::InvalidFormat),
        }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_example_of_the_w3c_is_read_and_written() {
        let trace: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(trace.trace_id(), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(trace.span_id(), 0xb7ad_6b71_6920_3331);
        assert!(trace.is_sampled());
        assert_eq!(trace.to_string(), EXAMPLE);
        assert_eq!(trace.child(7).unwrap().trace_id(), trace.trace_id());
    }

    #[test]
    fn later_versions_may_be_longer_and_version_00_may_not() {
        let later = EXAMPLE.replace("00-0a", "01-0a") + "-more";
        assert_eq!(later.parse::<TraceContext>(), EXAMPLE.parse());
        let refused = [
            EXAMPLE.to_string() + "-more",
            EXAMPLE.to_uppercase(),
            EXAMPLE.replace("00-0a", "ff-0a"),
            EXAMPLE.replace("-01", ""),
            EXAMPLE.replace("-01", "-1"),
            EXAMPLE.replace("-01", "-011"),
            EXAMPLE.replace("0af", "+af"),
        ];
        for text in refused {
            assert_eq!(text.parse::<TraceContext>(), Err(TraceContextError::InvalidFormat), "{text}");
        }
    }

    #[test]
    fn zero_ids_are_no_trace() {
        assert_eq!(TraceContext::new(0, 1, 0), Err(TraceContextError::ZeroId));
        assert_eq!(TraceContext::new(1, 0, 0), Err(TraceContextError::ZeroId));
    }

    proptest! {
        #[test]
        fn a_trace_survives_text_and_serde(trace_id in 1_u128.., span_id in 1_u64.., flags: u8) {
            let trace = TraceContext::new(trace_id, span_id, flags).unwrap();
            prop_assert_eq!(trace.to_string().parse(), Ok(trace));
            let bytes = postcard::to_allocvec(&trace).unwrap();
            prop_assert_eq!(postcard::from_bytes::<TraceContext>(&bytes).unwrap(), trace);
        }

        #[test]
        fn parsing_any_text_as_trace_never_panics(text in any::<String>()) {
            let _ = text.parse::<TraceContext>();
        }
    }
}
