//! The single actors of a kind that an arbiter has to do with, by their hash.

use std::cell::RefCell;

use archipelago_protocol::identity::ActorId;
use hashbrown::HashTable;

use super::ShardPlace;

/// Single actors, each with its place.
#[derive(Default)]
pub(super) struct Singles(RefCell<HashTable<Single>>);

struct Single {
    hash: u64,
    actor: ActorId,
    place: ShardPlace,
}

/// What became of a wish to have to do with an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// The part is its own, from now on or already.
    Known,
    /// Another actor with the same hash has the part.
    Taken(ActorId),
    /// There are too many.
    Full,
}

impl Singles {
    pub(super) fn note(&self, hash: u64, actor: &ActorId, bound: usize) -> Noted {
        let mut singles = self.0.borrow_mut();
        if let Some(single) = singles.find(hash, |single| single.hash == hash) {
            return if single.is(actor.key().as_str()) {
                Noted::Known
            } else {
                Noted::Taken(single.actor.clone())
            };
        }
        if singles.len() >= bound {
            return Noted::Full;
        }
        let single = Single { hash, actor: actor.clone(), place: ShardPlace::nowhere() };
        singles.insert_unique(hash, single, |single| single.hash);
        Noted::Known
    }

    pub(super) fn name(&self, hash: u64) -> Option<ActorId> {
        let singles = self.0.borrow();
        singles.find(hash, |single| single.hash == hash).map(|single| single.actor.clone())
    }

    pub(super) fn forget(&self, hash: u64) {
        if let Ok(single) = self.0.borrow_mut().find_entry(hash, |single| single.hash == hash) {
            single.remove();
        }
    }

    pub(super) fn close_all(&self) {
        self.0.borrow().iter().for_each(|single| single.place.close());
    }

    #[inline]
    pub(super) fn with<T>(&self, hash: u64, look: impl FnOnce(&ShardPlace) -> T) -> Option<T> {
        let singles = self.0.borrow();
        singles.find(hash, |single| single.hash == hash).map(|single| look(&single.place))
    }

    /// The place of the actor with this key; none if another has the part, or nobody.
    #[inline]
    pub(super) fn place_of<T>(&self, hash: u64, key: &str, look: impl FnOnce(&ShardPlace) -> T) -> Option<T> {
        let singles = self.0.borrow();
        singles.find(hash, |single| single.hash == hash && single.is(key)).map(|single| look(&single.place))
    }
}

impl Single {
    #[inline]
    fn is(&self, wanted: &str) -> bool {
        let key = self.actor.key().as_str();
        // A ref that has been used before shares its key with the part.
        std::ptr::eq(key, wanted) || key == wanted
    }
}

#[cfg(test)]
mod tests {
    use archipelago_protocol::identity::Namespace;

    use super::*;

    fn actor(key: &str) -> ActorId {
        Namespace::new("test").unwrap().actor_id("Single", key).unwrap()
    }

    #[test]
    fn of_two_actors_with_one_hash_the_second_is_refused() {
        let singles = Singles::default();
        assert_eq!(singles.note(7, &actor("ann"), 10), Noted::Known);
        assert_eq!(singles.note(7, &actor("ann"), 10), Noted::Known);
        assert_eq!(singles.note(7, &actor("bob"), 10), Noted::Taken(actor("ann")));
        singles.with(7, |place| place.open.set(true));
        assert_eq!(singles.place_of(7, "ann", |place| place.open.get()), Some(true));
        assert_eq!(singles.place_of(7, "bob", |place| place.open.get()), None);
        singles.forget(7);
        assert_eq!(singles.note(7, &actor("bob"), 10), Noted::Known);
        assert_eq!(singles.place_of(7, "bob", |place| place.open.get()), Some(false), "nothing is left over");
    }

    #[test]
    fn beyond_the_bound_nobody_is_noted() {
        let singles = Singles::default();
        assert_eq!(singles.note(1, &actor("ann"), 1), Noted::Known);
        assert_eq!(singles.note(2, &actor("bob"), 1), Noted::Full);
        assert_eq!(singles.note(1, &actor("ann"), 1), Noted::Known, "who is known stays");
        assert_eq!(singles.name(2), None);
    }
}
