//! How much a lane may hold, and what happens above that.

use super::super::FrameError;
use crate::time::Millis;

/// The bounds of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutboxSettings {
    /// How many bytes asks and tells may take up: what waits, 24 bytes for each, and what was given to the transport last.
    /// Answers are not counted.
    pub bytes: usize,
    /// How many calls wait for an answer at most, sent or not.
    pub calls: usize,
    /// How many of these may be asks that wait for room, of `bytes` at most: never more than half. Of no meaning but with
    /// [`Overflow::Wait`].
    pub waiting: usize,
    /// The longest frame, without its length.
    pub frame: usize,
    /// How long a tell waits for a connection.
    pub tell_ttl: Millis,
    /// What becomes of an ask or tell above the bounds.
    pub overflow: Overflow,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            calls: 1 << 16,
            waiting: 1 << 10,
            frame: 1 << 20,
            tell_ttl: Millis(5_000),
            overflow: Overflow::default(),
        }
    }
}

/// What becomes of an ask or tell that finds no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// An ask waits for room, of bytes and of calls, behind everything before it and until its deadline; how many may do
    /// so is bounded, and so are their bytes. A tell is refused while asks wait, or it would overtake them; it does not wait
    /// itself, since nobody would notice how long.
    Wait,
    /// It is refused.
    #[default]
    Fail,
    /// The oldest asks and tells not yet sent are thrown out for it. These take up half the bound of bytes at most: the other
    /// half is for what the transport was given last, which cannot be thrown out any more.
    DropOldest,
}

impl OutboxSettings {
    /// How many asks may wait for room.
    pub(super) fn line(&self) -> usize {
        if self.overflow == Overflow::Wait { self.waiting.min(self.calls / 2) } else { 0 }
    }
}

/// Why a frame was not taken. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The lane holds as much as it may. Try again later, with less.
    #[error("the lane is full (bound {bound} {of})")]
    Overloaded {
        /// Which bound.
        of: LaneBound,
        /// The bound.
        bound: usize,
    },
    /// It is no frame, or too long for one.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// The bounds of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneBound {
    /// Bytes that wait.
    Bytes,
    /// Calls that wait for an answer.
    Calls,
    /// Asks that wait for room.
    Waiting,
}

impl core::fmt::Display for LaneBound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Calls => "calls",
            Self::Waiting => "waiting asks",
        })
    }
}
