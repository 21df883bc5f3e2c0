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
            frame: 1 << 20,
            tell_ttl: Millis(5_000),
            overflow: Overflow::default(),
        }
    }
}

/// What becomes of an ask or tell that finds no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// An ask waits: asks may fill the bound of bytes once more, behind everything before them. A tell is refused until
    /// that has drained, since nobody would notice how long it waits. The bound of calls refuses as with `Fail`.
    Wait,
    /// It is refused.
    #[default]
    Fail,
    /// The oldest asks and tells not yet sent are thrown out for it.
    DropOldest,
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
}

impl core::fmt::Display for LaneBound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Calls => "calls",
        })
    }
}
