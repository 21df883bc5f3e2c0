//! How many messages, and how many bytes of them, may wait for places that are not known.
//!
//! [`RouteEntry`](super::RouteEntry) bounds the messages of one shard. [`WaitingRoom`] bounds their bytes, and all shards
//! together. It holds no messages: whoever does says when one comes and when it goes.
//!
//! Invariant: what comes is refused if it would not fit, unless nothing else waits: a message may be larger than a bound.

use alloc::collections::BTreeMap;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoomLimits {
    /// Bytes of messages to one shard.
    pub bytes_each: usize,
    /// Messages to all shards together.
    pub messages: usize,
    /// Bytes of messages to all shards together.
    pub bytes: usize,
}

impl RoomLimits {
    /// What one of `count` takes of this when they share it; each has room for one full shard of `messages`.
    #[must_use]
    pub fn share(self, count: usize, messages: usize) -> Self {
        let each = |all: usize, one: usize| (all / count.max(1)).max(one.min(all));
        let (messages, bytes) = (each(self.messages, messages), each(self.bytes, self.bytes_each));
        Self { messages, bytes, ..self }
    }
}

/// The bound that a message does not fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoomFull {
    /// The bound, in messages or bytes.
    pub bound: usize,
}

/// Counts what waits, for shards that are known as `K`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitingRoom<K> {
    limits: RoomLimits,
    messages: usize,
    bytes: usize,
    bytes_each: BTreeMap<K, usize>,
}

impl<K: Ord + Copy> WaitingRoom<K> {
    /// An empty room.
    pub const fn new(limits: RoomLimits) -> Self {
        Self { limits, messages: 0, bytes: 0, bytes_each: BTreeMap::new() }
    }

    /// A message of so many bytes is to wait for a shard.
    ///
    /// # Errors
    ///
    /// There is no room for it; nothing changed.
    pub fn enter(&mut self, shard: K, bytes: usize) -> Result<(), RoomFull> {
        let here = self.bytes_each.get(&shard).copied().unwrap_or_default();
        let fits = |waits: usize, bound: usize| {
            if waits == 0 || waits.saturating_add(bytes) <= bound { Ok(()) } else { Err(RoomFull { bound }) }
        };
        if self.messages >= self.limits.messages {
            return Err(RoomFull { bound: self.limits.messages });
        }
        fits(here, self.limits.bytes_each)?;
        fits(self.bytes, self.limits.bytes)?;
        self.enter_anyway(shard, bytes);
        Ok(())
    }

    /// A message that was under way already has to wait: it is not refused for lack of room.
    pub fn enter_anyway(&mut self, shard: K, bytes: usize) {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let here = self.bytes_each.entry(shard).or_default();
        *here = here.saturating_add(bytes);
    }

    /// A message of so many bytes waits no longer.
    pub fn leave(&mut self, shard: K, bytes: usize) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(here) = self.bytes_each.get_mut(&shard) {
            *here = here.saturating_sub(bytes);
            if *here == 0 {
                self.bytes_each.remove(&shard);
            }
        }
    }

    /// How many bytes wait.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RoomLimits = RoomLimits { bytes_each: 100, messages: 4, bytes: 150 };

    #[test]
    fn messages_are_refused_when_too_many_wait_in_all() {
        let mut room = WaitingRoom::new(LIMITS);
        (0..4).for_each(|shard| room.enter(shard, 1).unwrap());
        assert_eq!(room.enter(9, 1), Err(RoomFull { bound: 4 }));
        room.leave(0, 1);
        assert_eq!(room.enter(9, 1), Ok(()));
    }

    #[test]
    fn bytes_are_bounded_for_each_shard_and_for_all() {
        let mut room = WaitingRoom::new(LIMITS);
        room.enter(1, 60).unwrap();
        assert_eq!(room.enter(1, 60), Err(RoomFull { bound: 100 }));
        assert_eq!(room.enter(2, 95), Err(RoomFull { bound: 150 }));
        assert_eq!(room.enter(2, 90), Ok(()));
        assert_eq!(room.bytes(), 150);
    }

    #[test]
    fn one_message_may_be_larger_than_the_room_and_what_was_under_way_always_enters() {
        let mut room = WaitingRoom::new(LIMITS);
        assert_eq!(room.enter(1, 1_000), Ok(()));
        assert!(room.enter(2, 1).is_err());
        room.enter_anyway(2, 1);
        room.leave(1, 1_000);
        room.leave(2, 1);
        assert_eq!(room, WaitingRoom::new(LIMITS));
    }

    #[test]
    fn shares_add_up_to_the_whole_unless_one_shard_needs_more() {
        let whole = RoomLimits { bytes_each: 4, messages: 10_000, bytes: 64 };
        assert_eq!(whole.share(4, 1_000), RoomLimits { bytes_each: 4, messages: 2_500, bytes: 16 });
        assert_eq!(whole.share(100, 1_000), RoomLimits { bytes_each: 4, messages: 1_000, bytes: 4 });
        assert_eq!(whole.share(2, 20_000).messages, 10_000);
    }
}
