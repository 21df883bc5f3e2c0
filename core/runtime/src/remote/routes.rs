//! What one arbiter knows about the routes to actors of other nodes. Every decision is [`RouteEntry`]'s.

mod post;
mod settle;
mod steer;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::link::{Hint, ShardRef};
use archipelago_protocol::placement::{CacheLimits, PlacementCache};
use archipelago_protocol::route::{RouteEntry, RouteState};
use archipelago_protocol::time::Millis;

use super::lane::Lane;
use super::open_routes::OpenRoutes;
use super::outbound::Parked;
use super::peer::Peer;
use super::room::Room;

/// The routes of one arbiter.
pub(crate) struct Routes {
    entries: RefCell<BTreeMap<Shard, RouteEntry<Parked>>>,
    /// Where the open routes lead.
    open: RefCell<OpenRoutes>,
    /// The shards that are being looked for.
    sought: RefCell<BTreeSet<Shard>>,
    /// How much may wait for all of them.
    room: Room,
    /// The shards for which messages wait.
    waited_for: RefCell<BTreeSet<Shard>>,
    /// The places of single actors.
    cache: RefCell<PlacementCache<Shard>>,
    /// Whether somebody looks at the cache now and then.
    cache_watched: Cell<bool>,
    /// How many events are being carried out, one inside the other; and the single actors they were about.
    depth: Cell<u32>,
    touched: RefCell<BTreeSet<Shard>>,
    /// Something may wait for a place.
    busy: Cell<bool>,
}

/// One shard of a kind of this node's list: what is owned as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shard {
    /// The datacenter whose shard it is, as this node counts them; zero for its own.
    pub(crate) island: u16,
    pub(crate) kind: u32,
    pub(crate) number: u64,
}

impl Shard {
    /// A shard of this node's own datacenter.
    pub(crate) const fn home(kind: u32, number: u64) -> Self {
        Self { island: 0, kind, number }
    }

    /// Whether it belongs to this node's own datacenter.
    pub(crate) const fn is_home(self) -> bool {
        self.island == 0
    }
}

/// The other end of an open route.
pub(super) struct Open {
    hint: Hint,
    peer: Arc<Peer>,
    /// The shard, as the peer calls it.
    shard: ShardRef,
    lane: Rc<Lane>,
    /// When a message to a single actor last went there, by the coarse clock.
    used: Cell<Millis>,
}

impl Routes {
    pub(crate) fn new(limits: CacheLimits, room: Room) -> Self {
        Self {
            entries: RefCell::default(),
            open: RefCell::default(),
            sought: RefCell::default(),
            room,
            waited_for: RefCell::default(),
            cache: RefCell::new(PlacementCache::new(limits)),
            cache_watched: Cell::new(false),
            depth: Cell::new(0),
            touched: RefCell::default(),
            busy: Cell::new(false),
        }
    }

    /// Where to send right now, if the route is open.
    fn direct(&self, shard: Shard) -> Option<Rc<Open>> {
        self.open.borrow().get(shard).cloned()
    }

    /// How much may wait for all of them.
    pub(super) const fn room(&self) -> &Room {
        &self.room
    }

    pub(super) fn forget_open(&self, shard: Shard) {
        self.open.borrow_mut().forget(shard);
    }

    /// Whether there is a route to a shard, open or not.
    pub(crate) fn knows(&self, shard: Shard) -> bool {
        self.entries.borrow().contains_key(&shard)
    }

    pub(super) const fn entries(&self) -> &RefCell<BTreeMap<Shard, RouteEntry<Parked>>> {
        &self.entries
    }

    pub(super) const fn cache(&self) -> &RefCell<PlacementCache<Shard>> {
        &self.cache
    }

    /// Somebody looks at the cache from now on, or nobody; whether somebody did before.
    pub(super) fn looks_at_cache(&self, looks: bool) -> bool {
        self.cache_watched.replace(looks)
    }

    /// When a message last went over the open route of a single actor.
    pub(super) fn last_use(&self, shard: Shard) -> Millis {
        self.open.borrow().get(shard).map_or(Millis::ZERO, |open| open.used.get())
    }

    fn note_waiting(&self, shard: Shard, waits: bool) {
        let mut waited_for = self.waited_for.borrow_mut();
        if waits {
            waited_for.insert(shard);
        } else {
            waited_for.remove(&shard);
        }
    }

    /// Remembers where an open route leads: until the next event on it, messages go there directly.
    fn remember(&self, shard: Shard, single: bool, open: &Rc<Open>) {
        let direct = self.entries.borrow_mut().get_mut(&shard).and_then(RouteEntry::direct);
        if direct != Some(open.hint) {
            return;
        }
        self.open.borrow_mut().remember(shard, single, open);
    }

    /// Where the route of a shard leads, if it is open.
    pub(crate) fn leads_to(&self, shard: Shard) -> Option<Hint> {
        match self.entries.borrow().get(&shard)?.state() {
            RouteState::Open { owner, generation } => Some(Hint { owner, generation }),
            _ => None,
        }
    }

    /// Whether the route of a shard has ever led somewhere.
    fn has_led(&self, shard: Shard) -> bool {
        let entries = self.entries.borrow();
        let waits = RouteState::Waiting { generation: Generation::new(0), on: None };
        entries.get(&shard).is_some_and(|entry| entry.state() != waits)
    }

    /// Whether nothing of ours for any of these shards is at `node`, nor goes there.
    pub(super) fn are_clear_of(&self, shards: &BTreeSet<Shard>, node: NodeId) -> bool {
        let entries = self.entries.borrow();
        shards.iter().all(|shard| entries.get(shard).is_none_or(|entry| entry.is_clear_of(node)))
    }

    /// Whether something may wait for a place.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    fn take_ended(&self, now: Millis) -> Vec<Parked> {
        let (mut entries, mut ended) = (self.entries.borrow_mut(), Vec::new());
        self.waited_for.borrow_mut().retain(|shard| {
            let Some(entry) = entries.get_mut(shard) else { return false };
            ended.extend(entry.take_ended(|parcel| parcel.is_over(now)));
            entry.waiting() > 0
        });
        ended
    }

    /// Everything that waits: the arbiter ends.
    pub(crate) fn take_all(&self) -> Vec<Parked> {
        self.open.borrow_mut().clear();
        self.waited_for.borrow_mut().clear();
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        entries.into_values().flat_map(|mut entry| entry.take_all()).collect()
    }

    /// How many messages wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        let entries = self.entries.borrow();
        let waited_for = self.waited_for.borrow();
        waited_for.iter().filter_map(|shard| entries.get(shard)).map(RouteEntry::waiting).sum()
    }

    /// Whether the route of a shard waits for news from `node`.
    pub(super) fn waits_on(&self, shard: Shard, node: NodeId) -> bool {
        let entries = self.entries.borrow();
        let state = entries.get(&shard).map(RouteEntry::state);
        matches!(state, Some(RouteState::Waiting { on: Some(on), .. }) if on == node)
    }

    /// The shards whose routes may have to do with `node`. Of single actors there may be very many: only those whose
    /// routes do.
    pub(super) fn concerned_with(&self, node: NodeId, singles: impl Fn(u32) -> bool) -> Vec<Shard> {
        let concerned = |state| match state {
            RouteState::Open { owner, .. } | RouteState::Settling { owner, .. } => owner == node,
            RouteState::Waiting { on, .. } => on == Some(node),
        };
        let entries = self.entries.borrow();
        let all = entries.iter().filter(|(shard, entry)| concerned(entry.state()) || !singles(shard.kind));
        all.map(|(shard, _)| *shard).collect()
    }

    /// Every shard that has a route.
    pub(super) fn shards(&self) -> Vec<Shard> {
        self.entries.borrow().keys().copied().collect()
    }
}
