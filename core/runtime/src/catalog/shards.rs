//! Which shards of a kind this node serves, and to which of them its own messages go straight.

use std::cell::Cell;

use archipelago_protocol::identity::Generation;
use archipelago_protocol::placement::ShardCount;

/// The shards of one kind, as one arbiter sees them.
pub(crate) struct Shards {
    /// At which generation each is served; zero if it is not.
    served: Box<[Cell<u64>]>,
    /// Whether nothing of this node waits for it that a message could overtake.
    open: Box<[Cell<bool>]>,
    count: ShardCount,
}

impl Shards {
    pub(super) fn new(count: ShardCount) -> Self {
        let served = (0..count.get()).map(|_| Cell::new(0)).collect();
        Self { served, open: (0..count.get()).map(|_| Cell::new(false)).collect(), count }
    }

    /// The shard of the actor with this hash.
    #[inline]
    pub(crate) fn of(&self, hash: u64) -> u16 {
        self.count.shard_of(hash)
    }

    /// Serves a shard from now on.
    pub(crate) fn serve(&self, shard: u16, generation: Generation) {
        if let Some(served) = self.served.get(usize::from(shard)) {
            served.set(generation.as_u64());
        }
    }

    /// Serves none any more.
    pub(crate) fn serve_nothing(&self) {
        self.served.iter().for_each(|served| served.set(0));
        self.open.iter().for_each(|open| open.set(false));
    }

    /// At which generation a shard is served, if it is.
    pub(crate) fn served(&self, shard: u16) -> Option<Generation> {
        let generation = self.served.get(usize::from(shard))?.get();
        (generation != 0).then(|| Generation::new(generation))
    }

    /// Whether messages sent to the owner of a shard at `generation` are for this node. Zero: the sender does not count.
    pub(crate) fn serves(&self, shard: u16, generation: Generation) -> bool {
        let served = self.served(shard);
        served.is_some() && (generation == Generation::new(0) || served == Some(generation))
    }

    /// Lets messages of this node go straight to the actors of a shard, or no more.
    pub(crate) fn set_open(&self, shard: u16, open: bool) {
        if let Some(is_open) = self.open.get(usize::from(shard)) {
            is_open.set(open);
        }
    }

    /// Whether messages of this node go straight to the actor with this hash.
    #[inline]
    pub(crate) fn is_open_to(&self, hash: u64) -> bool {
        self.open.get(usize::from(self.of(hash))).is_some_and(Cell::get)
    }
}
