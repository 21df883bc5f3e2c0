//! What one arbiter knows of actors that may live in other datacenters, and the messages that wait until it is known.
//! Every decision is [`Standings`]'.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::datacenter::{Keep, Standings, Whither};
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::route::RouteEvent;
use archipelago_protocol::time::Millis;

use super::locate::{Located, locate};
use super::reach::Reach;
use crate::arbiter::ArbiterLocal;
use crate::catalog::{JobHead, Target};
use crate::remote::{Parked, Shard};
use crate::settings::NodeSettings;

/// The places of actors as one arbiter knows them.
pub(crate) struct Abroad {
    standings: RefCell<Standings<ActorKey, Shard, Parked>>,
}

/// The hash first: most comparisons end there.
type ActorKey = (u64, ActorId);

impl Abroad {
    pub(crate) fn new(settings: &NodeSettings) -> Self {
        Self {
            standings: RefCell::new(Standings::new(settings.discovery.remembered, settings.remote.parked)),
        }
    }

    /// Forgets where an actor is.
    pub(crate) fn forget(&self, target: &Target) {
        self.standings.borrow_mut().forget(&key_of(target));
    }

    /// Takes the messages that wait and are not worth sending any more.
    pub(crate) fn take_ended(&self, now: Millis) -> Vec<Parked> {
        let mut standings = self.standings.borrow_mut();
        if standings.waiting() == 0 { Vec::new() } else { standings.take_ended(|parcel| parcel.is_over(now)) }
    }

    /// Everything that waits: the arbiter ends.
    pub(crate) fn take_all(&self) -> Vec<Parked> {
        self.standings.borrow_mut().take_all()
    }

    /// How many messages wait until it is known where their actors live.
    pub(crate) fn waiting(&self) -> usize {
        self.standings.borrow().waiting()
    }
}

impl ArbiterLocal {
    /// The shard that a message to an actor belongs to, in whichever datacenter; none if that has to be found out first.
    pub(crate) fn place_of_actor(&self, kind: u32, target: &Target, head: &JobHead) -> Option<Shard> {
        let home = self.node().shard(kind, target.hash);
        let Some(known) = self.any_kind(kind).filter(|kind| kind.shards().reaches()) else {
            return Some(home);
        };
        if head.flags.contains(MessageFlags::IS_LOCAL_ONLY) {
            return Some(home);
        }
        let mut standings = self.abroad().standings.borrow_mut();
        let (key, maps) = (key_of(target), self.node().datacenters());
        if standings.is_sought(&key) {
            return None;
        }
        if known.is_active(target) || !self.node().may_have_actors_abroad() {
            return Some(home);
        }
        let whither = standings.whither(self.coarse(), &key)?;
        let (shard, keeps) = match whither {
            Whither::Home => (home, self.is_found_by_looking(kind)),
            Whither::Abroad(shard) => (shard, true),
        };
        if keeps && self.routes().leads_to(shard).is_some() {
            // What goes there keeps the actor alive there: it need not be looked for again.
            standings.use_again(self.coarse(), &key, self.node().settings().discovery.positive_life);
        }
        Some(shard).filter(|shard| shard.is_home() || maps.is_open(shard.island))
    }

    /// Whether actors of a kind live where they are found. Of those with a policy the map alone says whether they live here.
    fn is_found_by_looking(&self, kind: u32) -> bool {
        self.node().kinds().get(kind as usize).is_some_and(|kind| matches!(kind.reach(), Reach::Discover))
    }

    /// Whether a message to a shard goes straight to its actor here.
    pub(crate) fn is_open_here(&self, shard: Shard) -> bool {
        shard.is_home() && self.any_kind(shard.kind).is_some_and(|kind| kind.shards().is_open(shard.number))
    }

    /// Keeps a message until it is known where its actor lives.
    pub(crate) fn wait_for_place(self: &Rc<Self>, mut parcel: Parked) {
        if let Some(seat) = self.seat() {
            seat.call_pending();
        }
        if let Err(full) = self.take_room(&mut parcel) {
            return parcel.refuse(full, self);
        }
        let (target, kind, expires) = (parcel.target.clone(), parcel.shard.kind, parcel.expires);
        let kept = self.abroad().standings.borrow_mut().keep(&key_of(&target), parcel);
        match kept {
            Keep::Waits => {}
            Keep::Seek => self.find_place(kind, target, expires),
            Keep::Full(parcel) => {
                let bound = u32::try_from(self.node().settings().remote.parked).unwrap_or(u32::MAX);
                parcel.refuse(CallError::Overloaded { queue: Queue::Route, bound }, self);
            }
        }
    }

    /// Looks for an actor. Half of the time that its first message has is left to deliver it.
    fn find_place(self: &Rc<Self>, kind: u32, target: Target, expires: Millis) {
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        let now = self.now();
        let patience = Millis(expires.since(now).0 / 2).min(node.settings().discovery.timeout);
        self.node().env().spawn(Box::pin(async move {
            let found = locate(&node, kind, &target, now + patience).await;
            if let Some(on) = on.upgrade() {
                on.place_found(kind, &target, found);
            }
        }));
    }

    /// It is known where an actor lives: what waited may go, in order.
    fn place_found(self: &Rc<Self>, kind: u32, target: &Target, found: Result<Located, CallError>) {
        let (key, until) = (key_of(target), self.now() + self.node().settings().discovery.positive_life);
        let (shard, hint) = match found {
            Ok(Located::Home) => (self.node().shard(kind, target.hash), None),
            Ok(Located::Abroad { shard, hint }) => (shard, hint),
            Err(error) => {
                let waited = self.abroad().standings.borrow_mut().failed(&key);
                return waited.into_iter().for_each(|parcel| parcel.refuse(error.clone(), self));
            }
        };
        if let Some(hint) = hint {
            self.route(shard, RouteEvent::Learn(hint));
        }
        let whither = if shard.is_home() { Whither::Home } else { Whither::Abroad(shard) };
        let waited = self.abroad().standings.borrow_mut().settled(&key, whither, until);
        for mut parcel in waited {
            parcel.shard = shard;
            self.park(parcel);
        }
    }

    /// A datacenter has gone, or has divided a kind anew: the places of its actors are not known any more.
    pub(crate) fn forget_places_in(&self, gone: Shard) {
        let lost = |place: &Shard| place.island == gone.island && place.kind == gone.kind;
        self.abroad().standings.borrow_mut().forget_abroad(lost);
    }
}

fn key_of(target: &Target) -> ActorKey {
    (target.hash, target.id.clone())
}
