//! `[lanes]`: the way of messages to other nodes, and how many of them may wait on it.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use archipelago_protocol::link;
use serde::{Deserialize, Serialize};

use super::settings::count;
use super::size::Size;
use super::span;

/// `[lanes]`: messages to other nodes. A lane connects one arbiter with one arbiter of another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LaneSettings {
    /// Bytes of messages that one lane may hold until the transport has taken them.
    pub bytes: Size,
    /// Calls of one lane that may await their answer.
    pub calls: NonZeroU32,
    /// How many of these may wait for room, if `overflow` is [`Wait`](Overflow::Wait); half of them at most.
    pub waiting: NonZeroU32,
    /// Bytes of messages from one lane that may wait for their actors; beyond it the lane is not read.
    pub window: Size,
    /// Bytes of answers that may wait for an arbiter of another node that does not read them; beyond it the connection is
    /// closed.
    pub answers: Size,
    /// The longest frame on a lane, at least 4 KiB; what is longer takes a stream of its own.
    pub frame: Size,
    /// The largest message at all, at least a frame.
    pub largest: Size,
    /// Bytes of one stream that may be on the way and unread: of a large message, and over QUIC of a lane. Small messages
    /// wait behind so many at most, and each stream carries so many per round trip. 64 KiB to 64 MiB.
    pub stream_window: Size,
    /// How long a tell may wait for a connection.
    #[serde(with = "span")]
    pub tell_ttl: Duration,
    /// What happens to a message that finds its lane full.
    pub overflow: Overflow,
    /// Messages per shard that may wait until it is known where the shard is.
    pub parked: NonZeroU32,
    /// Bytes of messages per shard that may wait so.
    pub parked_bytes: Size,
    /// Messages that may wait so on the node.
    pub parked_total: NonZeroU32,
    /// Bytes of messages that may wait so on the node.
    pub parked_total_bytes: Size,
    /// How long two nodes may take to connect and to prove themselves.
    #[serde(with = "span")]
    pub handshake_limit: Duration,
}

impl Default for LaneSettings {
    fn default() -> Self {
        Self {
            bytes: Size::from_bytes(8 << 20),
            calls: count::<65_536>(),
            waiting: count::<1_024>(),
            window: Size::from_bytes(8 << 20),
            answers: Size::from_bytes(256 << 20),
            frame: Size::from_bytes(1 << 20),
            largest: Size::from_bytes(64 << 20),
            stream_window: Size::from_bytes(256 << 10),
            tell_ttl: Duration::from_secs(5),
            overflow: Overflow::Fail,
            parked: count::<1_000>(),
            parked_bytes: Size::from_bytes(4 << 20),
            parked_total: count::<10_000>(),
            parked_total_bytes: Size::from_bytes(64 << 20),
            handshake_limit: Duration::from_secs(5),
        }
    }
}

/// What happens to a message that finds its lane full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Overflow {
    /// It is refused.
    Fail,
    /// A call waits for room until its deadline, behind those before it; beyond `waiting` of them, and beyond as many bytes as
    /// the lane holds, it is refused. A tell is refused while calls wait.
    Wait,
    /// The oldest calls and tells that were not sent yet are thrown out for it. They take up half of `bytes` at most: the
    /// other half is for what the transport has.
    DropOldest,
}

impl From<Overflow> for link::Overflow {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Fail => Self::Fail,
            Overflow::Wait => Self::Wait,
            Overflow::DropOldest => Self::DropOldest,
        }
    }
}

/// Below this, the frame of an ordinary message would not fit.
pub(super) const SMALLEST_FRAME: Size = Size::from_bytes(4 << 10);

/// What `stream_window` may be: some packets at least, and so little that the windows of all streams can be counted.
pub(super) const STREAM_WINDOWS: RangeInclusive<Size> =
    Size::from_bytes(64 << 10)..=Size::from_bytes(64 << 20);

impl LaneSettings {
    /// The window of a stream, within its bounds.
    #[cfg(any(feature = "quic", feature = "tcp"))]
    pub(crate) fn stream_window(&self) -> NonZeroU32 {
        let within = self.stream_window.clamp(*STREAM_WINDOWS.start(), *STREAM_WINDOWS.end());
        u32::try_from(within.bytes()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX)
    }
}
