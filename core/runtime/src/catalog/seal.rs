//! How the actors of a shard end before the shard moves: what has not started leaves their inboxes, what runs ends.

use std::rc::Rc;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::call::CallError;
use archipelago_protocol::link::{Head, KeyText, ReturnReason, ShardRef};
use archipelago_protocol::message::{CallChain, MessageFlags};
use archipelago_protocol::time::Millis;

use super::job::{JobHead, Queued, Unsent};
use super::kind::{KindCatalog, Target};
use super::slot::Slot;
use crate::arbiter::ArbiterLocal;
use crate::message::VirtualActor;
use crate::mutants::{Mutant, broken};
use crate::remote::{Incoming, Origin, Parked, Shard};

/// What leaves the inboxes of a shard.
#[derive(Clone, Copy)]
pub(crate) enum Leaving<'a> {
    /// Everything that may.
    Everything,
    /// What came by one connection.
    Of(&'a Incoming),
}

/// What left the inboxes of a shard.
#[derive(Default)]
pub(crate) struct Left {
    /// Messages of this node, in order for each actor.
    pub(crate) ours: Vec<Parked>,
    /// When the first of all their callers stops waiting.
    pub(crate) earliest: Option<Millis>,
}

impl<A: VirtualActor> KindCatalog<A> {
    /// Takes what has not started out of the inboxes of a shard. What came over a lane is given back over it; messages of
    /// this node are handed out. Some cannot go back: those and what stands before them stay, and are handled.
    pub(super) fn empty_inboxes(&self, shard: u64, leaving: Leaving<'_>, on: &Rc<ArbiterLocal>) -> Left {
        let (slots, running) = (self.slots_of(shard), self.running_in(shard));
        let mut left = Left::default();
        for slot in slots {
            for job in take_out(&slot, leaving, &running, on) {
                left.earliest = Some(left.earliest.map_or(job.head.deadline, |at| at.min(job.head.deadline)));
                self.undo(&slot, job, &mut left, on);
            }
        }
        left
    }

    /// One job that was queued is as it was before.
    #[expect(clippy::boxed_local, reason = "a job is passed by its box, whose contents are unsized")]
    fn undo(&self, slot: &Slot<A>, mut job: Queued<A>, left: &mut Left, on: &Rc<ArbiterLocal>) {
        if let Some(call) = job.head.call.take() {
            on.end_call(call);
        }
        on.job_over();
        if broken(Mutant::LetGoDropsInbox) {
            return;
        }
        let shard = Shard::home(self.index(), self.shared().shard_of(slot.hash));
        let target = Target { id: slot.id.clone(), hash: slot.hash };
        let head = JobHead { inside: true, ..job.head.clone() };
        let origin = Origin { shard, target, expires: on.expires(&head), head };
        let dead = |error: &CallError, name: &str| on.node().dead_letter(slot.id.to_string(), name, error);
        let name = job.body.name();
        match job.body.unsend(origin) {
            Some(Unsent::Ours(parcel)) => left.ours.push(parcel),
            Some(Unsent::OfLane { way, id, codec, payload }) => {
                let Some(message) = self.messages().place_of(id) else { return };
                let deadline = job.head.deadline;
                let scope = job.head.scope.as_deref();
                let shard = ShardRef { kind: u16::try_from(self.index()).unwrap_or(0), number: shard.number };
                let head = Head {
                    ttl: (deadline < Millis::MAX).then(|| deadline.since(on.now())),
                    flags: job.head.flags,
                    codec,
                    shard,
                    message,
                    generation: self.generation(slot.hash),
                    key: KeyText::from(slot.id.key()),
                    trace: scope.and_then(|scope| scope.trace),
                    chain: scope.map_or(CallChain::empty(), |scope| scope.chain),
                };
                if let Err(error) = on.send_queued_back(&way, (head, &payload), ReturnReason::NotOwner) {
                    dead(&error, name);
                }
            }
            Some(Unsent::Unreadable(way_back, error)) => {
                let asks = way_back.asks();
                let error = way_back.refuse(error, on);
                if !asks {
                    dead(&error, name);
                }
            }
            None => {}
        }
    }

    /// Whether something that came by this connection has not started.
    pub(super) fn has_unstarted(&self, shard: u64, incoming: &Incoming, on: &ArbiterLocal) -> bool {
        let of_it = |job: &Queued<A>| job.body.came_by(incoming, on);
        self.slots_of(shard).iter().any(|slot| slot.inner.borrow().queue.iter().any(of_it))
    }

    /// Whether a call belongs to work under way in a shard, which could not end without it.
    pub(super) fn is_inner(&self, shard: u64, head: &JobHead) -> bool {
        waits_for(head, &self.running_in(shard))
    }

    /// Asks the actors of a shard to leave once none of them has anything to do; true if all are gone.
    pub(super) fn clear_out(&self, shard: u64, reason: DeactivateReason) -> bool {
        let slots = self.slots_of(shard);
        let busy = |slot: &Rc<Slot<A>>| {
            let inner = slot.inner.borrow();
            inner.life.running() > 0 || !inner.queue.is_empty()
        };
        if !slots.iter().any(busy) {
            for slot in &slots {
                let mut inner = slot.inner.borrow_mut();
                inner.life.leave(reason);
                inner.moves = true;
                drop(inner);
                slot.wake();
            }
        }
        slots.is_empty()
    }

    /// For how long the oldest running handler of a shard has run.
    pub(super) fn busy_for(&self, shard: u64, now: Millis) -> Millis {
        let age = |slot: &Rc<Slot<A>>| {
            let inner = slot.inner.borrow();
            (inner.life.running() > 0).then(|| now.since(inner.life.last_message()))
        };
        self.slots_of(shard).iter().filter_map(age).max().unwrap_or(Millis::ZERO)
    }

    fn running_in(&self, shard: u64) -> Vec<u64> {
        let slots = self.slots_of(shard);
        slots.iter().flat_map(|slot| slot.inner.borrow().tokens.iter().collect::<Vec<_>>()).collect()
    }
}

/// Takes the jobs of a slot that may go, in order: all behind the last one that may not.
fn take_out<A: VirtualActor>(
    slot: &Slot<A>,
    leaving: Leaving<'_>,
    running: &[u64],
    on: &ArbiterLocal,
) -> Vec<Queued<A>> {
    let mut inner = slot.inner.borrow_mut();
    let concerned = |job: &Queued<A>| match leaving {
        Leaving::Everything => true,
        Leaving::Of(incoming) => job.body.came_by(incoming, on),
    };
    let stays = |job: &Queued<A>| {
        // Work under way here, which a node that stops finishes, may wait for it.
        let under_way = waits_for(&job.head, running) || (on.is_draining() && job.head.inside);
        let bound = under_way || job.head.flags.contains(MessageFlags::IS_LOCAL_ONLY);
        concerned(job) && (bound || !job.body.goes_back(on))
    };
    let first = inner.queue.iter().rposition(stays).map_or(0, |at| at + 1);
    let (go, rest): (Vec<_>, Vec<_>) = inner.queue.drain(first..).partition(concerned);
    inner.queue.extend(rest);
    go
}

fn waits_for(head: &JobHead, running: &[u64]) -> bool {
    let chain = head.scope.as_ref().map(|scope| scope.chain);
    head.asks && chain.is_some_and(|chain| running.iter().any(|token| chain.contains(*token)))
}
