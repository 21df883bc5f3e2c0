//! The places of single actors that an arbiter knows: how many, for how long, and how they are given up. Every decision is
//! [`PlacementCache`](archipelago_protocol::placement::PlacementCache)'s.
//!
//! A route to a single actor is what is known of its place. It is dropped only after the node it leads to has settled:
//! whoever sends there next begins anew, perhaps with another node, and must not overtake what went before.

use std::rc::Rc;

use archipelago_protocol::identity::{ActorId, NodeId};
use archipelago_protocol::link::Hint;
use archipelago_protocol::placement::{Cached, GiveUp};
use archipelago_protocol::route::{RouteEntry, RouteEvent, RouteState};
use archipelago_protocol::time::Millis;
use metrics::{counter, gauge};
use tokio::sync::oneshot;

use super::outbound::Parked;
use super::routes::{Routes, Shard};
use crate::arbiter::ArbiterLocal;
use crate::mutants::{Mutant, broken};
use crate::node::Node;

impl Node {
    /// Where this node last knew the actor of a kind with a key to live, if it remembers: what its next message is sent by.
    /// Only kinds whose actors have records of their own are remembered so.
    pub async fn cached_placement(&self, kind: &str, key: &str) -> Option<Cached> {
        let node = self.shared();
        let kind = node.kinds().iter().find(|known| known.name() == kind)?;
        let actor: ActorId = node.namespace().actor_id_of(kind.kind(), key).ok()?;
        let shard = node.shard(kind.index(), actor.stable_hash());
        let (answer, known) = oneshot::channel();
        node.on_arbiter(node.arbiter_of_shard(shard.number), move |on| {
            let named = on.any_kind(shard.kind).and_then(|kind| kind.shards().name(shard.number));
            let place = on.routes().cache().borrow().place(&shard);
            // Whoever asked may have given up.
            let _ = answer.send(place.filter(|_| named == Some(actor)));
        })
        .ok()?;
        known.await.ok().flatten()
    }
}

impl ArbiterLocal {
    /// Remembers where the route of a single actor leads, or forgets it.
    pub(super) fn note_place(self: &Rc<Self>, shard: Shard) {
        match self.routes().place_of(shard, self.node().id()) {
            Known::At(hint) => {
                self.routes().cache().borrow_mut().learn(self.now(), shard, hint);
                self.look_after_cache();
            }
            Known::Leaving => {}
            Known::Nowhere => self.routes().cache().borrow_mut().forget(&shard),
        }
    }

    fn look_after_cache(self: &Rc<Self>) {
        if self.routes().cache().borrow().excess() > 0 {
            self.look_at_cache(LOOKS_WHEN_FULL);
        }
        if self.routes().looks_at_cache(true) {
            return;
        }
        let (on, env) = (Rc::downgrade(self), self.node().env().clone());
        self.node().env().spawn(Box::pin(async move {
            loop {
                env.sleep(LOOK_EVERY).await;
                let Some(on) = on.upgrade() else { return };
                on.look_at_cache(LOOKS);
                let left = on.routes().cache().borrow().len();
                gauge!("archipelago_placement_cache_entries", "arbiter" => on.index().to_string())
                    .set(left as f64);
                if left == 0 {
                    on.routes().looks_at_cache(false);
                    return;
                }
            }
        }));
    }

    fn look_at_cache(self: &Rc<Self>, most: usize) {
        let routes = self.routes();
        let given_up = routes.cache().borrow_mut().look(self.now(), most, |shard| routes.last_use(*shard));
        for (shard, why) in given_up {
            let why = if why == GiveUp::Full { "full" } else { "idle" };
            self.give_place_up(shard, why);
        }
    }

    /// Lets nobody be sent to the known place of an actor before it has been looked for again.
    pub(crate) fn give_place_up(self: &Rc<Self>, shard: Shard, why: &'static str) {
        if broken(Mutant::StaleRouteForEver) {
            return;
        }
        let Some(Hint { owner, .. }) = self.routes().leads_to(shard) else { return };
        // Without a connection nobody can settle: to give the lane up would disturb everything else that waits in it.
        let unconnected = self.link_of(shard, owner).is_some_and(|link| !link.lane.is_connected());
        if owner != self.node().id() && !unconnected {
            counter!("archipelago_placement_cache_given_up_total", "why" => why).increment(1);
            self.route(shard, RouteEvent::Bye(owner));
        }
    }
}

/// What the route of a single actor says about its place.
pub(super) enum Known {
    /// It lives there.
    At(Hint),
    /// It was given up, and goes as soon as nothing of ours is there.
    Leaving,
    /// Nothing.
    Nowhere,
}

impl Routes {
    fn place_of(&self, shard: Shard, me: NodeId) -> Known {
        let entries = self.entries().borrow();
        let Some(entry) = entries.get(&shard) else { return Known::Nowhere };
        let leaving = self.cache().borrow().is_leaving(&shard);
        match entry.state() {
            RouteState::Settling { .. } => Known::Leaving,
            RouteState::Open { owner, .. } if owner != me && leaving && entry.may_be_forgotten() => {
                Known::Leaving
            }
            RouteState::Open { owner, generation } if owner != me => Known::At(Hint { owner, generation }),
            _ => Known::Nowhere,
        }
    }

    /// Drops the route of a single actor if nobody needs it. One that leads to this node is not needed: its messages
    /// go straight there. One that leads to another is, until it was given up.
    pub(crate) fn drop_idle(&self, shard: Shard, me: NodeId) {
        let given_up = || self.cache().borrow().is_leaving(&shard);
        let idle = |entry: &RouteEntry<Parked>| match entry.state() {
            RouteState::Open { owner, .. } if owner == me => entry.waiting() == 0,
            RouteState::Open { .. } => entry.may_be_forgotten() && given_up(),
            _ => entry.may_be_forgotten(),
        };
        if self.entries().borrow().get(&shard).is_some_and(idle) {
            self.drop(shard);
        }
    }

    fn drop(&self, shard: Shard) {
        self.entries().borrow_mut().remove(&shard);
        self.forget_open(shard);
        self.cache().borrow_mut().forget(&shard);
    }
}

/// How often the cache is looked at, and how much of it each time.
const LOOK_EVERY: Millis = Millis(1_000);
const LOOKS: usize = 4_096;

/// How much of a full cache is looked at for each new place.
const LOOKS_WHEN_FULL: usize = 8;
