//! What FoundationDB takes at most, and what it says to more.
//!
//! A write of a key or value that is too long is answered by the next read, or by the commit, as the client does it; a
//! transaction that is too large, by its commit. Nothing of either is applied.

use super::database::{Commit, Mutation};
use crate::code::Code;

impl Commit {
    /// Takes in a write, or remembers why it cannot.
    pub(super) fn write(&mut self, mutation: Mutation) {
        match mutation.refused() {
            Some(code) => drop(self.refused.get_or_insert(code)),
            None => self.writes.push(mutation),
        }
    }

    /// Every byte that counts: keys and values as they are written, and the ranges of keys that are written and that must not
    /// have changed.
    pub(super) fn size(&self) -> usize {
        let reads = self.reads.iter().map(|(begin, end)| begin.len() + end.len());
        reads.chain(self.writes.iter().map(Mutation::size)).sum()
    }
}

impl Mutation {
    fn refused(&self) -> Option<Code> {
        let (key, value) = match self {
            // A key that is too long stands nowhere, so there is nothing to clear.
            Self::Clear(_) => return None,
            Self::Set(key, value)
            | Self::Max(key, value)
            | Self::StampedKey(key, value)
            | Self::StampedValue(key, value) => (key.len(), value.len()),
        };
        if key > LONGEST_KEY {
            return Some(Code::KEY_TOO_LARGE);
        }
        (value > LONGEST_VALUE).then_some(Code::VALUE_TOO_LARGE)
    }

    fn size(&self) -> usize {
        match self {
            Self::Clear((begin, end)) => 2 * (begin.len() + end.len()),
            Self::Set(key, value)
            | Self::Max(key, value)
            | Self::StampedKey(key, value)
            | Self::StampedValue(key, value) => 3 * key.len() + 1 + value.len(),
        }
    }
}

pub(super) const LONGEST_KEY: usize = 10_000;
pub(super) const LONGEST_VALUE: usize = 100_000;
pub(super) const LARGEST_TRANSACTION: usize = 10_000_000;
