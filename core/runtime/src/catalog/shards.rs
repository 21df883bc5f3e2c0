//! Which parts of a kind this node serves, and to which of them its own messages go straight.
//!
//! The shards of a kind are few, known beforehand and looked at for every message: they have a table with a place for each.
//! Single actors are as many as there are, so only those are here that this node has to do with, each with its id: two
//! actors with one hash would share their part, and only the one whose name it bears may use it.

mod single;

use std::cell::Cell;

use archipelago_protocol::handoff::Tenancy;
use archipelago_protocol::identity::{ActorId, Generation};
use archipelago_protocol::placement::{KindLayout, ShardCount};

pub(crate) use single::Noted;
use single::Singles;

use super::kind::Target;

/// The parts of one kind, as one arbiter sees them.
pub(crate) struct Shards {
    parts: Parts,
    /// Actors of the kind may live in other datacenters: none goes straight before that is clear.
    reaches: bool,
}

enum Parts {
    Shards { places: Box<[ShardPlace]>, count: ShardCount },
    Singles(Singles),
}

/// One part.
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
    pub(super) fn new(layout: KindLayout, reaches: bool) -> Self {
        let parts = match layout.shards() {
            Some(count) => {
                Parts::Shards { places: (0..count.get()).map(|_| ShardPlace::nowhere()).collect(), count }
            }
            None => Parts::Singles(Singles::default()),
        };
        Self { parts, reaches }
    }

    /// The part of the actor with this hash.
    #[inline]
    pub(crate) const fn of(&self, hash: u64) -> u64 {
        match &self.parts {
            Parts::Shards { count, .. } => count.shard_of(hash),
            Parts::Singles(_) => hash,
        }
    }

    /// Serves a part from now on.
    pub(crate) fn serve(&self, shard: u64, Tenancy { generation, since }: Tenancy) {
        self.with(shard, |place| {
            place.taken.set((since.as_u64(), generation.as_u64()));
            place.generation.set(generation.as_u64());
            place.sealed.set(false);
        });
    }

    /// Takes nothing for a part any more; what is active there is still of its last generation.
    pub(crate) fn seal(&self, shard: u64) {
        self.with(shard, |place| {
            place.close();
            place.sealed.set(true);
        });
    }

    /// Has nothing to do with a part any more.
    pub(crate) fn let_go(&self, shard: u64) {
        self.with(shard, |place| {
            place.close();
            place.generation.set(0);
            place.sealed.set(false);
        });
    }

    /// Serves none any more.
    pub(crate) fn serve_nothing(&self) {
        match &self.parts {
            Parts::Shards { places, .. } => places.iter().for_each(ShardPlace::close),
            Parts::Singles(singles) => singles.close_all(),
        }
    }

    /// At which generation a part is served, if it is.
    pub(crate) fn served(&self, shard: u64) -> Option<Generation> {
        let (_, last) = self.with(shard, |place| place.taken.get())?;
        (last != 0).then(|| Generation::new(last))
    }

    /// Of which generation the activations of a part are.
    pub(crate) fn generation(&self, shard: u64) -> Generation {
        Generation::new(self.with(shard, |place| place.generation.get()).unwrap_or(0))
    }

    /// Whether messages to the actor with this key, sent to the owner of a part at `generation`, are for this node. Zero: the
    /// sender does not count.
    pub(crate) fn serves(&self, shard: u64, generation: Generation, key: &str) -> bool {
        let (first, last) = match &self.parts {
            Parts::Shards { .. } => self.with(shard, |place| place.taken.get()),
            Parts::Singles(singles) => singles.place_of(shard, key, |place| place.taken.get()),
        }
        .unwrap_or((0, 0));
        let generation = generation.as_u64();
        last != 0 && (generation == 0 || (first..=last).contains(&generation))
    }

    /// Whether a part is on its way to another node.
    pub(crate) fn is_sealed(&self, shard: u64) -> bool {
        self.with(shard, |place| place.sealed.get()).unwrap_or(false)
    }

    /// Whether only its route says where a part is: it is neither served here nor about to leave, it has no name to be noted, and
    /// it is in this datacenter.
    #[inline]
    pub(crate) fn is_elsewhere(&self, shard: u64) -> bool {
        let Parts::Shards { places, .. } = &self.parts else { return false };
        let place = usize::try_from(shard).ok().and_then(|at| places.get(at));
        !self.reaches && place.is_some_and(|place| !place.sealed.get() && !place.open.get())
    }

    /// Lets messages of this node go straight to the actors of a part, or no more.
    pub(crate) fn set_open(&self, shard: u64, open: bool) {
        self.with(shard, |place| place.open.set(open));
    }

    /// Whether messages of this node go straight to the actor.
    #[inline]
    pub(crate) fn is_open_to(&self, target: &Target) -> bool {
        !self.reaches && self.is_open_for(target)
    }

    #[inline]
    fn is_open_for(&self, target: &Target) -> bool {
        match &self.parts {
            Parts::Shards { places, count } => {
                let place = usize::try_from(count.shard_of(target.hash)).ok().and_then(|at| places.get(at));
                place.is_some_and(|place| place.open.get())
            }
            Parts::Singles(singles) => singles
                .place_of(target.hash, target.id.key().as_str(), |place| place.open.get())
                .unwrap_or(false),
        }
    }

    /// Notes whose part this is, if parts have names here.
    pub(crate) fn note(&self, shard: u64, actor: &ActorId, bound: usize) -> Noted {
        match &self.parts {
            Parts::Shards { .. } => Noted::Known,
            Parts::Singles(singles) => singles.note(shard, actor, bound),
        }
    }

    /// Whose part this is, if parts have names here and this one is known.
    pub(crate) fn name(&self, shard: u64) -> Option<ActorId> {
        match &self.parts {
            Parts::Shards { .. } => None,
            Parts::Singles(singles) => singles.name(shard),
        }
    }

    /// Forgets a part that this node has nothing to do with any more.
    pub(crate) fn forget(&self, shard: u64) {
        if let Parts::Singles(singles) = &self.parts {
            singles.forget(shard);
        }
    }

    /// Whether each part is a single actor.
    pub(crate) const fn are_singles(&self) -> bool {
        matches!(self.parts, Parts::Singles(_))
    }

    /// Whether actors of the kind may live in other datacenters.
    pub(crate) const fn reaches(&self) -> bool {
        self.reaches
    }

    /// Whether nothing of this node waits for a shard that it serves.
    pub(crate) fn is_open(&self, shard: u64) -> bool {
        self.with(shard, |place| place.open.get()).unwrap_or(false)
    }

    #[inline]
    fn with<T>(&self, shard: u64, look: impl FnOnce(&ShardPlace) -> T) -> Option<T> {
        match &self.parts {
            Parts::Shards { places, .. } => places.get(usize::try_from(shard).ok()?).map(look),
            Parts::Singles(singles) => singles.with(shard, look),
        }
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
