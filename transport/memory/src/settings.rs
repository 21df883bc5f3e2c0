//! How a network behaves as long as nobody switches a fault on.

use archipelago_protocol::time::Millis;

/// How a network behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Every way from one host to another that has no settings of its own.
    pub link: Link,
    /// After which time without a word a side gives its connection up.
    pub silence_limit: Millis,
    /// After which time a dial gives up, and a client that says nothing is dropped.
    pub dial_limit: Millis,
    /// How many bytes a lane takes that the other side has not read.
    pub lane_window: usize,
    /// How many bytes a stream takes that the other side has not read.
    pub stream_window: usize,
    /// How many streams one side may have open; the next one waits.
    pub max_streams: usize,
    /// How many connections may wait to be accepted; beyond them dials get no answer.
    pub backlog: usize,
    /// True if hosts prove who they are.
    pub secured: bool,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            link: Link::default(),
            silence_limit: Millis(5_000),
            dial_limit: Millis(3_000),
            lane_window: 256 << 10,
            stream_window: 256 << 10,
            max_streams: 64,
            backlog: 128,
            secured: false,
        }
    }
}

/// The way from one host to another, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// How long everything takes at least.
    pub latency: Millis,
    /// How much longer it may take; drawn for every batch.
    pub jitter: Millis,
    /// How often a batch is lost and sent again later. Above 999 nothing passes: that is a partition.
    pub loss_per_mille: u32,
    /// How often an attempt to connect arrives twice.
    pub duplicate_per_mille: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self { latency: Millis(1), jitter: Millis(2), loss_per_mille: 0, duplicate_per_mille: 0 }
    }
}

/// How a host answers those who dial it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialAnswer {
    /// As it should.
    #[default]
    Normal,
    /// As if nobody listened.
    Unavailable,
    /// As if the dialler were not trusted.
    Refused,
    /// Not at all.
    Hang,
}
