//! The end of an activation: what lingers, the farewell, and the next one in the same slot.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::Poll;

use archipelago_protocol::activation::{ActivationState, DeactivateReason, Life};
use archipelago_protocol::call::CallError;
use archipelago_protocol::time::Millis;
use futures_util::FutureExt;
use futures_util::future::{Either, select};

use super::kind::KindCatalog;
use super::slot::{Inner, Slot};
use crate::arbiter::{ArbiterLocal, not_serving};
use crate::call::{Entered, within};
use crate::message::VirtualActor;
use crate::mutants::{Mutant, broken};

impl<A: VirtualActor> KindCatalog<A> {
    /// Lets the slot go, once nothing of its last activation runs any more.
    pub(super) fn retire(&self, slot: Rc<Slot<A>>, on: &Rc<ArbiterLocal>) {
        let inner = slot.inner.borrow();
        if inner.life.running() == 0 && inner.farewell.is_none() {
            drop(inner);
            return self.finish(&slot, on);
        }
        drop(inner);
        if broken(Mutant::TwinActivation) {
            slot.inner.borrow_mut().life = Life::new(on.coarse());
            return self.finish(&slot, on);
        }
        let (local, index) = (Rc::clone(on), self.index());
        on.node().env().spawn(Box::pin(async move {
            linger(&slot, index, &local).await;
            say_farewell(&slot, &local).await;
            if let Some(kind) = local.kind::<A>(index) {
                kind.finish(&slot, &local);
            }
        }));
    }

    /// The last step of a life: either the slot goes, or the messages that came meanwhile begin a new life.
    pub(super) fn finish(&self, slot: &Rc<Slot<A>>, on: &Rc<ArbiterLocal>) {
        if slot.inner.borrow().life.was_stillborn() {
            self.refuse_waiting(slot, &activation_failed("it ended before its first message"), on);
        }
        let mut inner = slot.inner.borrow_mut();
        let reason = inner.life.leaving();
        inner.end_life();
        inner.moves = false;
        if let Some(state) = inner.state.take() {
            state.end();
        }
        if inner.queue.is_empty() {
            drop(inner);
            self.remove(slot);
        } else {
            inner.life = Life::new(on.coarse());
            drop(inner);
            self.newborn(Rc::clone(slot), on);
        }
        self.meters().deactivated(reason);
        if reason == Some(DeactivateReason::Evicted) {
            on.room_made();
        }
        on.activation_ended((self.index(), slot.hash, &slot.id), self.generation(slot.hash), reason);
        on.vacated(self.index(), slot.hash);
        on.wake_main();
    }

    /// Gives an activation up before it became valid: whoever waits gets the error, nothing stays behind.
    pub(super) fn give_up(&self, slot: &Rc<Slot<A>>, reason: &str, on: &Rc<ArbiterLocal>) {
        tracing::warn!(actor = %slot.id, reason, "activation failed");
        self.meters().activation_failures.increment(1);
        if slot.inner.borrow().state.as_ref().is_some_and(|state| state.has_saved()) {
            // What came along is older now than what is stored.
            self.carried_is_used(slot);
        }
        self.let_go(slot, &activation_failed(reason), on);
    }

    /// Gives an activation up because the node may not serve any more.
    pub(super) fn turn_away(&self, slot: &Rc<Slot<A>>, on: &Rc<ArbiterLocal>) {
        self.let_go(slot, &not_serving("its session is not live"), on);
    }

    fn let_go(&self, slot: &Rc<Slot<A>>, error: &CallError, on: &Rc<ArbiterLocal>) {
        let mut inner = slot.inner.borrow_mut();
        inner.tokens.clear();
        inner.life.leave(DeactivateReason::ActivationFailed);
        drop(inner);
        self.refuse_waiting(slot, error, on);
        self.finish(slot, on);
    }

    fn refuse_waiting(&self, slot: &Slot<A>, error: &CallError, on: &ArbiterLocal) {
        let waiting = std::mem::take(&mut slot.inner.borrow_mut().queue);
        for job in waiting {
            on.refuse(&slot.id, job, error.clone());
        }
    }
}

fn activation_failed(reason: &str) -> CallError {
    CallError::ActivationFailed { reason: reason.into() }
}

impl<A: VirtualActor> Inner<A> {
    fn end_life(&mut self) {
        for next in [ActivationState::Deactivating, ActivationState::Invalid] {
            if self.life.state().may_become(next)
                && let Err(illegal) = self.life.advance(next)
            {
                tracing::error!(%illegal, "an activation ended out of order");
            }
        }
    }
}

/// Waits for the detached handlers that outlived their actor.
async fn linger<A: VirtualActor>(slot: &Slot<A>, kind: u32, on: &ArbiterLocal) {
    poll_fn(|cx| {
        let Some(kind) = on.kind::<A>(kind) else { return Poll::Ready(()) };
        while let Some((token, job)) = slot.poll_running(cx) {
            let mut inner = slot.inner.borrow_mut();
            inner.life.job_ended(on.coarse(), job.head.flags);
            inner.tokens.remove(token);
            drop(inner);
            kind.handled(&job, on.job_ended(token));
            kind.hold_reply(job, on);
        }
        kind.flush_replies(on);
        if slot.inner.borrow().life.running() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Waits for `on_deactivate`, not for ever.
async fn say_farewell<A: VirtualActor>(slot: &Slot<A>, on: &Rc<ArbiterLocal>) {
    let Some(farewell) = slot.inner.borrow_mut().farewell.take() else { return };
    // It counts as a job of the actor: what it sends is part of the work that a stopping node finishes, and a call
    // back into the actor is a cycle.
    let token = on.new_token();
    slot.inner.borrow_mut().tokens.push(token);
    let work = within(Entered::new(Rc::clone(on), token, Millis::MAX, None), farewell);
    let limit = on.node().env().sleep(on.node().settings().deactivate_timeout);
    match select(AssertUnwindSafe(work).catch_unwind(), limit).await {
        Either::Left((Ok(()), _)) => {}
        Either::Left((Err(_), _)) => tracing::error!(actor = %slot.id, "on_deactivate panicked"),
        Either::Right(_) => tracing::warn!(actor = %slot.id, "on_deactivate took too long and was given up"),
    }
    slot.inner.borrow_mut().tokens.clear();
}
