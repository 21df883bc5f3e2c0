//! Single actors that have records of their own: which one a part is of, when its record is given up, and when everything
//! about it is forgotten.
//!
//! The record of an actor is claimed with its first message and given up when it has ended and nothing waits for it. Routes,
//! names and what is hosted are dropped as soon as nobody needs them, so that what a node keeps is bounded by what it is
//! doing and by its cache.

use std::rc::Rc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::handoff::HostEvent;
use archipelago_protocol::identity::{ActorId, OwnedKey};
use archipelago_protocol::link::Head;
use archipelago_protocol::time::Millis;

use crate::arbiter::ArbiterLocal;
use crate::catalog::{AnyKind, Noted};
use crate::env::within;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::ranges::Grant;
use crate::remote::Shard;

impl ArbiterLocal {
    /// Whether the parts of a kind are single actors.
    pub(crate) fn has_singles(&self, kind: u32) -> bool {
        self.any_kind(kind).is_some_and(|kind| kind.shards().are_singles())
    }

    /// Whether a part is a single actor of this datacenter.
    pub(crate) fn is_single(&self, shard: Shard) -> bool {
        shard.is_home() && self.has_singles(shard.kind)
    }

    /// Whether a part is an actor of a range: what grants it is the record of the range.
    pub(crate) fn is_of_range(&self, shard: Shard) -> bool {
        let kind = self.node().kinds().get(shard.kind as usize);
        shard.is_home() && kind.is_some_and(|kind| kind.layout().is_by_range())
    }

    /// Whether a part is an actor of a range that is this node's.
    pub(crate) fn is_granted(&self, shard: Shard, key: &str) -> bool {
        let (node, of_range) = (self.node(), self.is_of_range(shard));
        of_range && matches!(node.ranges().grant(shard.kind, key, node.id()), Grant::Held(_))
    }

    /// Notes which actor a part is of, before anything is done about it.
    ///
    /// # Errors
    ///
    /// Another actor has the same hash, or there are too many. Nothing was noted.
    pub(crate) fn name_part(&self, shard: Shard, actor: &ActorId) -> Result<(), CallError> {
        // What other datacenters have is theirs to name.
        let Some(kind) = self.any_kind(shard.kind).filter(|_| shard.is_home()) else { return Ok(()) };
        let bound = self.node().settings().single_actors();
        match kind.shards().note(shard.number, actor, bound) {
            Noted::Known => Ok(()),
            Noted::Taken(other) => {
                metrics::counter!("archipelago_hash_collisions_total").increment(1);
                Err(CallError::HashTaken { by: other.to_string().into() })
            }
            Noted::Full => Err(CallError::Overloaded {
                queue: Queue::Route,
                bound: u32::try_from(bound).unwrap_or(u32::MAX),
            }),
        }
    }

    /// Notes which actor the part of a message is of; false if that cannot be, or nothing may be noted.
    pub(crate) fn name_part_of(&self, head: &Head<'_>) -> bool {
        let Some(kind) = self.node().kinds().get(usize::from(head.shard.kind)) else { return false };
        if !kind.layout().is_by_actor() {
            return true;
        }
        let key = head.key.as_str();
        let shard = Shard::home(kind.index(), head.shard.number);
        let actor = self.node().namespace().actor_id_of(kind.kind(), key);
        kind.hash_of(key) == shard.number && actor.is_ok_and(|actor| self.name_part(shard, &actor).is_ok())
    }

    /// The key of a part in the directory; none if nothing is known about it.
    pub(crate) fn key_of(&self, shard: Shard) -> Option<OwnedKey> {
        if self.is_single(shard) {
            return self.any_kind(shard.kind)?.shards().name(shard.number).map(OwnedKey::Actor);
        }
        self.node().shard_key(shard)
    }

    // ---- the end of a record ----

    /// An activation has ended. Nobody waits for the actor if it has no slot any more: then its record goes as well.
    pub(crate) fn vacated(self: &Rc<Self>, kind: u32, hash: u64) {
        if self.has_singles(kind) {
            self.give_up_if_vacant(Shard::home(kind, hash));
        }
    }

    fn give_up_if_vacant(self: &Rc<Self>, shard: Shard) {
        let vacant = |kind: &&dyn AnyKind| {
            kind.shards().served(shard.number).is_some() && kind.is_vacant(shard.number)
        };
        let Some(kind) = self.any_kind(shard.kind).filter(vacant) else { return };
        if broken(Mutant::ReleasesUnsealed) {
            self.release(shard, kind.shards().generation(shard.number), 0);
        } else {
            self.host(shard, HostEvent::Release { move_id: self.node().env().random() });
        }
    }

    /// A record may have been claimed for a message that never came, or the end of one may have come to nothing: it is
    /// looked at again.
    pub(super) fn look_at_vacancy(self: &Rc<Self>, shard: Shard) {
        self.hosting().vacancies().borrow_mut().push(self.now() + VACANT_FOR, shard);
        if self.hosting().looks_at_vacancies(true) {
            return;
        }
        let (on, env) = (Rc::downgrade(self), self.node().env().clone());
        self.node().env().spawn(Box::pin(async move {
            loop {
                env.sleep(LOOK_EVERY).await;
                let Some(on) = on.upgrade() else { return };
                loop {
                    let due = on.hosting().vacancies().borrow_mut().pop_due(on.now());
                    let Some(shard) = due else { break };
                    on.give_up_if_vacant(shard);
                }
                if on.hosting().vacancies().borrow().is_empty() {
                    on.hosting().looks_at_vacancies(false);
                    return;
                }
            }
        }));
    }

    // ---- what is forgotten ----

    /// Forgets what nobody needs to know of a single actor any more.
    pub(crate) fn tidy_up(&self, shard: Shard) {
        let Some(kind) = self.any_kind(shard.kind).filter(|_| self.is_single(shard)) else { return };
        self.hosting().drop_absent(shard);
        self.routes().drop_idle(shard, self.node().id());
        if !self.hosting().knows(shard) && !self.routes().knows(shard) {
            kind.shards().forget(shard.number);
        }
    }
}

/// Gives up the records of all single actors of this node, which leaves: they end with their hooks run and come to life
/// elsewhere with their next message. What does not end by `until` is finished here and becomes free with the session.
pub(super) async fn give_everything_up(node: &std::sync::Arc<NodeShared>, until: Millis) {
    let by_actor = |kind: &&std::sync::Arc<crate::node::KindShared>| {
        kind.layout().is_by_actor() && !kind.layout().is_by_range()
    };
    for kind in node.kinds().iter().filter(by_actor) {
        for arbiter in node.data_arbiters() {
            while node.env().now() < until && give_some_up(node, arbiter, kind.index()).await > 0 {
                node.env().sleep(LEAVE_LOOK).await;
            }
        }
    }
}

/// Begins to give up the next few; answers how many are left.
async fn give_some_up(node: &NodeShared, arbiter: u16, kind: u32) -> usize {
    let (left, answer) = tokio::sync::oneshot::channel();
    let asked = node.enter_work(arbiter, move |on| {
        let (leaving, all) = on.hosting().of_kind(kind, |_| true);
        for shard in all.iter().copied().take(AT_A_TIME.saturating_sub(leaving)) {
            on.host(shard, HostEvent::Release { move_id: on.node().env().random() });
        }
        // Whoever asked may have given up.
        let _ = left.send(leaving + all.len());
    });
    if asked.is_err() {
        return 0;
    }
    within(node.env(), LEAVE_ANSWER, answer).await.and_then(Result::ok).unwrap_or(0)
}

/// How long a record may stand without an actor.
const VACANT_FOR: Millis = Millis(2_000);

/// How often to look for records without an actor.
const LOOK_EVERY: Millis = Millis(500);

/// How many records of an arbiter are given up at the same time.
const AT_A_TIME: usize = 256;

/// Between two looks at what is left.
const LEAVE_LOOK: Millis = Millis(5);

/// How long an arbiter may take to say what is left.
const LEAVE_ANSWER: Millis = Millis(1_000);
