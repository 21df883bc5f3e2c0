//! What can be set about the TCP transport.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use archipelago_tls::Credentials;

/// The limits of an endpoint. The two sides of a connection may differ: windows are told in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// How long TLS and the preamble of somebody who dials may take. Bounds what a silent client occupies; 5 s is
    /// enough for a loaded node on another continent.
    pub handshake_limit: Duration,
    /// How long a dial may take, with name resolution, every address, TLS and preamble. After it the caller can do
    /// something better than wait.
    pub dial_limit: Duration,
    /// After how much silence a connection is lost. An idle peer answers a question asked after a third of it, so
    /// two answers may get lost; 10 s outlives a short pause of a process and of the network.
    pub silence_limit: Duration,
    /// How many bytes of one stream a receiver keeps for a reader that does not read. Also bounds a stream's speed to
    /// one window per round trip: 256 KiB give 5 MB/s over 50 ms. Far away, more is better; near by, small messages wait
    /// behind less of a large one.
    pub stream_window: NonZeroU32,
    /// How many bytes of the lane a receiver keeps for a reader that does not read. Large enough that a whole batch
    /// of the layer above fits and credit never limits the lane on a good network.
    pub lane_window: NonZeroU32,
    /// The largest piece in which stream data goes out. The lane waits at most for one such piece, which is half a
    /// millisecond at 1 Gbit/s.
    pub chunk: NonZeroU32,
    /// How many streams each side may have open at a time; `open` waits beyond. With `stream_window` it bounds the
    /// memory that one connection can fill.
    pub max_streams: NonZeroU32,
    /// How many diallers may be in their handshake at a time. If one more comes, the one that has been at it longest
    /// is dropped: an honest one needs milliseconds.
    pub handshakes: NonZeroUsize,
}

impl Default for TcpSettings {
    fn default() -> Self {
        Self {
            handshake_limit: Duration::from_secs(5),
            dial_limit: Duration::from_secs(5),
            silence_limit: Duration::from_secs(10),
            stream_window: const { NonZeroU32::new(256 << 10).unwrap() },
            lane_window: const { NonZeroU32::new(4 << 20).unwrap() },
            chunk: const { NonZeroU32::new(64 << 10).unwrap() },
            max_streams: const { NonZeroU32::new(64).unwrap() },
            handshakes: const { NonZeroUsize::new(256).unwrap() },
        }
    }
}

impl TcpSettings {
    /// The name of a time limit that leaves no time at all, if there is one.
    pub(crate) fn impossible(&self) -> Option<&'static str> {
        let limits = [
            ("handshake_limit", self.handshake_limit),
            ("dial_limit", self.dial_limit),
            ("silence_limit", self.silence_limit),
        ];
        limits.into_iter().find(|(_, limit)| limit.is_zero()).map(|(name, _)| name)
    }
}

/// Whether the two sides of a connection prove themselves.
#[derive(Clone, Debug)]
pub enum Security {
    /// TLS 1.3, with certificates on both sides.
    Tls(Credentials),
    /// Nothing is encrypted and anybody can be anybody. Only for a network that nobody else can reach.
    Insecure,
}
