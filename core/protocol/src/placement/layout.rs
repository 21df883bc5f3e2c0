//! How the actors of a kind are divided among the nodes.
//!
//! Two nodes that divide a kind differently would both own the same actor under different keys, and no claim would
//! notice. So the layout of a kind is written down in the directory by the first node that has it, and every other node
//! is held to that: see [`Directory::settle_layout`](crate::contract::Directory::settle_layout).

use core::fmt;
use core::num::NonZeroU16;

use serde::{Deserialize, Serialize};

/// How a kind is divided: the same on all nodes of a cluster, for as long as its directory lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
#[non_exhaustive]
pub enum KindLayout {
    /// By the hash of the actor's id.
    Shard {
        /// Into so many parts.
        shards: ShardCount,
    },
    /// Into single actors: each has a record of its own for as long as it is active.
    Actor,
    /// Into ranges of keys, as a [`RangeTable`](crate::ranges::RangeTable) says: whoever owns a range runs its actors.
    Range,
}

impl KindLayout {
    /// As many shards as `shards`.
    pub const fn sharded(shards: ShardCount) -> Self {
        Self::Shard { shards }
    }

    /// The number of shards; none if the kind is not divided into shards.
    pub const fn shards(self) -> Option<ShardCount> {
        match self {
            Self::Shard { shards } => Some(shards),
            Self::Actor | Self::Range => None,
        }
    }

    /// The number of the part that the actor with this hash belongs to. The part of a single actor has its hash: two actors
    /// with one hash are told apart by their ids. So has an actor of a range: ranges come and go, and its messages keep their
    /// order all the while.
    #[inline]
    pub const fn part_of(self, hash: u64) -> u64 {
        match self {
            Self::Shard { shards } => shards.shard_of(hash),
            Self::Actor | Self::Range => hash,
        }
    }

    /// Whether each part is a single actor, with a route of its own. Where it has no record of its own, that of its range
    /// grants.
    pub const fn is_by_actor(self) -> bool {
        matches!(self, Self::Actor | Self::Range)
    }

    /// Whether ranges of keys are owned.
    pub const fn is_by_range(self) -> bool {
        matches!(self, Self::Range)
    }

    /// Whether the kind has a part of this number.
    pub const fn has(self, number: u64) -> bool {
        match self {
            Self::Shard { shards } => number < shards.get() as u64,
            Self::Actor | Self::Range => true,
        }
    }
}

impl Default for KindLayout {
    fn default() -> Self {
        Self::sharded(ShardCount::DEFAULT)
    }
}

impl fmt::Display for KindLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard { shards } => write!(f, "{shards} shards"),
            Self::Actor => f.write_str("single actors"),
            Self::Range => f.write_str("ranges of keys"),
        }
    }
}

/// Into how many shards a kind is divided, from 1 to [`MAX`](Self::MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct ShardCount(NonZeroU16);

/// A number of shards that no kind can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a kind has 1 to {max} shards, not {0}", max = ShardCount::MAX)]
pub struct ShardCountError(pub u16);

impl ShardCount {
    /// What a kind has that says nothing.
    pub const DEFAULT: Self = Self(NonZeroU16::new(256).expect("256 is not zero"));

    /// Everything in one shard: one actor, or few that must live together.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// Each node keeps a few words per shard, and the directory a record.
    pub const MAX: u16 = 16_384;

    /// So many shards.
    ///
    /// # Errors
    ///
    /// [`ShardCountError`] if there are none, or too many.
    pub const fn new(count: u16) -> Result<Self, ShardCountError> {
        match NonZeroU16::new(count) {
            Some(some) if count <= Self::MAX => Ok(Self(some)),
            _ => Err(ShardCountError(count)),
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// The shard of the actors with this hash: the hash modulo the number of shards, on every node.
    #[inline]
    pub const fn shard_of(self, hash: u64) -> u64 {
        let count = self.0.get() as u64;
        // Nearly every kind has a power of two, and this is asked for each message.
        if count.is_power_of_two() { hash & (count - 1) } else { hash % count }
    }
}

impl Default for ShardCount {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<u16> for ShardCount {
    type Error = ShardCountError;

    fn try_from(count: u16) -> Result<Self, Self::Error> {
        Self::new(count)
    }
}

impl From<ShardCount> for u16 {
    fn from(count: ShardCount) -> Self {
        count.get()
    }
}

impl fmt::Display for ShardCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Proves: R290
        #[test]
        fn every_hash_has_the_shard_that_the_modulo_names(hash in any::<u64>(), count in 1..=ShardCount::MAX) {
            let shards = ShardCount::new(count).unwrap();
            prop_assert_eq!(shards.shard_of(hash), hash % u64::from(count));
        }
    }

    #[test]
    fn a_kind_has_the_shards_below_their_count() {
        let layout = KindLayout::default();
        assert!(layout.has(0) && layout.has(255));
        assert!(!layout.has(256) && !layout.has(1 << 16) && !layout.has(u64::MAX));
    }

    #[test]
    fn a_single_actor_is_a_part_of_its_own() {
        assert_eq!(KindLayout::Actor.part_of(u64::MAX), u64::MAX);
        assert!(KindLayout::Actor.has(u64::MAX));
        assert_eq!(KindLayout::default().part_of(u64::MAX), 255);
    }

    #[test]
    fn no_shards_and_too_many_are_refused() {
        assert_eq!(ShardCount::new(0), Err(ShardCountError(0)));
        assert_eq!(ShardCount::new(ShardCount::MAX + 1), Err(ShardCountError(16_385)));
        assert_eq!(ShardCount::new(0).unwrap_err().to_string(), "a kind has 1 to 16384 shards, not 0");
        assert!(ShardCount::new(ShardCount::MAX).is_ok());
    }

    #[test]
    fn a_layout_is_readable_in_the_store() {
        let json = serde_json::to_string(&KindLayout::default()).unwrap();
        assert_eq!(json, r#"{"by":"shard","shards":256}"#);
        assert_eq!(serde_json::from_str::<KindLayout>(&json).unwrap(), KindLayout::default());
        assert!(serde_json::from_str::<KindLayout>(r#"{"by":"shard","shards":0}"#).is_err());
        assert!(serde_json::from_str::<KindLayout>(r#"{"by":"moon"}"#).is_err());
        assert_eq!(serde_json::to_string(&KindLayout::Actor).unwrap(), r#"{"by":"actor"}"#);
        assert_eq!(serde_json::from_str::<KindLayout>(r#"{"by":"actor"}"#).unwrap(), KindLayout::Actor);
        assert_eq!(serde_json::to_string(&KindLayout::Range).unwrap(), r#"{"by":"range"}"#);
    }
}
