//! The asks that find no room and wait for it, one behind the other.
//!
//! Their frames are written already, but not in the buffer of the lane. Each has a *place*, above all places of the buffer,
//! so that one number says where the frame of a call is.
//!
//! Invariant: places only rise; `bytes` is what the frames and the notes about them take up.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::scan::LEN_BYTES;
use super::waiting::NOTE;
use crate::identity::CorrelationId;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Line {
    asks: BTreeMap<u64, Standing>,
    /// How many have ever stood here.
    came: u64,
    bytes: usize,
}

/// An ask in line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Standing {
    pub(super) id: CorrelationId,
    /// Its frame, with its length.
    frame: Vec<u8>,
}

impl Line {
    /// Puts an ask behind all others; its place.
    pub(super) fn join(&mut self, id: CorrelationId, frame: Vec<u8>) -> u64 {
        let (standing, at) = (Standing { id, frame }, self.end());
        self.came += 1;
        self.bytes += standing.weight();
        self.asks.insert(at, standing);
        at
    }

    /// Takes the ask out that stands at `at`.
    pub(super) fn leave(&mut self, at: u64) -> Option<Standing> {
        let gone = self.asks.remove(&at)?;
        self.bytes -= gone.weight();
        Some(gone)
    }

    /// Takes the first one out if it `may` go.
    pub(super) fn next_if(&mut self, may: impl FnOnce(&Standing) -> bool) -> Option<Standing> {
        let (at, _) = self.asks.first_key_value().filter(|(_, first)| may(first))?;
        self.leave(*at)
    }

    /// Takes all out, in order.
    pub(super) fn drain(&mut self) -> Vec<Standing> {
        self.bytes = 0;
        core::mem::take(&mut self.asks).into_values().collect()
    }

    /// Changes the frames: their tags and bodies.
    pub(super) fn change(&mut self, mut each: impl FnMut(CorrelationId, &mut [u8])) {
        self.asks.values_mut().for_each(|standing| each(standing.id, standing.body_mut()));
    }

    /// The place of the next one.
    pub(super) const fn end(&self) -> u64 {
        FIRST + self.came
    }

    /// Whether nobody stands before `end` any more.
    pub(super) fn is_past(&self, end: u64) -> bool {
        self.asks.first_key_value().is_none_or(|(at, _)| *at >= end)
    }

    pub(super) fn len(&self) -> usize {
        self.asks.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// What the frames and the notes about them take up.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Standing {
    /// What it takes up, in line or in the buffer.
    pub(super) fn weight(&self) -> usize {
        self.frame.len() + NOTE
    }

    /// The frame, with its length.
    pub(super) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Tag and body.
    pub(super) fn body_mut(&mut self) -> &mut [u8] {
        &mut self.frame[LEN_BYTES..]
    }

    /// Tag and body.
    pub(super) fn into_body(mut self) -> Vec<u8> {
        self.frame.drain(..LEN_BYTES);
        self.frame
    }
}

/// Whether a place is one of the line.
pub(super) const fn is_in_line(at: u64) -> bool {
    at >= FIRST
}

/// Above every place of a buffer.
const FIRST: u64 = 1 << 63;
