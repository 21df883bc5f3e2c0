//! Which shards of a kind this node serves, and to which of them its own messages go straight.

use std::cell::Cell;

use archipelago_protocol::handoff::Tenancy;
use archipelago_protocol::identity::Generation;
use archipelago_protocol::placement::ShardCount;

/// The shards of one kind, as one arbiter sees them.
pub(crate) struct Shards {
    places: Box<[ShardPlace]>,
    count: ShardCount,
}

/// One shard.
struct ShardPlace {
    /// The generations under which messages are taken, the first and the last; none are while the last is zero.
    taken: Cell<(u64, u64)>,
    /// The generation of what is or was active here; zero if the shard was never served, or is gone.
    generation: Cell<u64>,
    /// Whether it is on its way to another node: what runs comes to its end, nothing else starts.
    sealed: Cell<bool>,
    /// Whether nothing of this node waits for it that a message could overtake.
    open: Cell<bool>,
}

impl Shards {
    pub(super) fn new(count: ShardCount) -> Self {
        Self { places: (0..count.get()).map(|_| ShardPlace::nowhere()).collect(), count }
    }

    /// The shard of the actor with this hash.
    #[inline]
    pub(crate) const fn of(&self, hash: u64) -> u16 {
        self.count.shard_of(hash)
    }

    /// Serves a shard from now on.
    pub(crate) fn serve(&self, shard: u16, Tenancy { generation, since }: Tenancy) {
        if let Some(place) = self.place(shard) {
            place.taken.set((since.as_u64(), generation.as_u64()));
            place.generation.set(generation.as_u64());
            place.sealed.set(false);
        }
    }

    /// Takes nothing for a shard any more; what is active there is still of its last generation.
    pub(crate) fn seal(&self, shard: u16) {
        if let Some(place) = self.place(shard) {
            place.close();
            place.sealed.set(true);
        }
    }

    /// Has nothing to do with a shard any more.
    pub(crate) fn let_go(&self, shard: u16) {
        if let Some(place) = self.place(shard) {
            place.close();
            place.generation.set(0);
            place.sealed.set(false);
        }
    }

    /// Serves none any more.
    pub(crate) fn serve_nothing(&self) {
        self.places.iter().for_each(ShardPlace::close);
    }

    /// At which generation a shard is served, if it is.
    pub(crate) fn served(&self, shard: u16) -> Option<Generation> {
        let (_, last) = self.place(shard)?.taken.get();
        (last != 0).then(|| Generation::new(last))
    }

    /// Of which generation the activations of a shard are.
    pub(crate) fn generation(&self, shard: u16) -> Generation {
        Generation::new(self.place(shard).map_or(0, |place| place.generation.get()))
    }

    /// Whether messages sent to the owner of a shard at `generation` are for this node. Zero: the sender does not count.
    pub(crate) fn serves(&self, shard: u16, generation: Generation) -> bool {
        let (first, last) = self.place(shard).map_or((0, 0), |place| place.taken.get());
        let generation = generation.as_u64();
        last != 0 && (generation == 0 || (first..=last).contains(&generation))
    }

    /// Whether a shard is on its way to another node.
    pub(crate) fn is_sealed(&self, shard: u16) -> bool {
        self.place(shard).is_some_and(|place| place.sealed.get())
    }

    /// Lets messages of this node go straight to the actors of a shard, or no more.
    pub(crate) fn set_open(&self, shard: u16, open: bool) {
        if let Some(place) = self.place(shard) {
            place.open.set(open);
        }
    }

    /// Whether messages of this node go straight to the actor with this hash.
    #[inline]
    pub(crate) fn is_open_to(&self, hash: u64) -> bool {
        self.place(self.of(hash)).is_some_and(|place| place.open.get())
    }

    #[inline]
    fn place(&self, shard: u16) -> Option<&ShardPlace> {
        self.places.get(usize::from(shard))
    }
}

impl ShardPlace {
    const fn nowhere() -> Self {
        Self {
            taken: Cell::new((0, 0)),
            generation: Cell::new(0),
            sealed: Cell::new(false),
            open: Cell::new(false),
        }
    }

    fn close(&self) {
        self.taken.set((0, 0));
        self.open.set(false);
    }
}
