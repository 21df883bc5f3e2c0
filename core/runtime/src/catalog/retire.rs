//! The end of an activation: what lingers, the farewell, and the next one in the same slot.

use std::rc::Rc;

use archipelago_protocol::activation::{ActivationState, Life};
use archipelago_protocol::call::CallError;
use futures_util::future::{Either, select};

use super::kind::KindCatalog;
use super::slot::{Aftermath, Inner, Slot};
use crate::arbiter::ArbiterLocal;
use crate::message::VirtualActor;

impl<A: VirtualActor> KindCatalog<A> {
    /// Lets the slot go, once nothing of its last activation runs any more.
    pub(super) fn retire(&self, slot: Rc<Slot<A>>, on: &Rc<ArbiterLocal>) {
        let aftermath = slot.inner.borrow_mut().aftermath.take();
        let Some(aftermath) = aftermath else { return self.finish(&slot, on) };
        let (on, index) = (Rc::clone(on), self.index());
        on.node().env().spawn(Box::pin({
            let on = Rc::clone(&on);
            async move {
                settle(*aftermath, &slot, &on).await;
                if let Some(kind) = on.kind::<A>(index) {
                    kind.finish(&slot, &on);
                }
            }
        }));
    }

    /// The last step of a life: either the slot goes, or the messages that came meanwhile begin a new life.
    pub(super) fn finish(&self, slot: &Rc<Slot<A>>, on: &Rc<ArbiterLocal>) {
        let mut inner = slot.inner.borrow_mut();
        let reason = inner.life.leaving();
        inner.end_life();
        if inner.queue.is_empty() {
            drop(inner);
            self.remove(slot);
        } else {
            inner.life = Life::new(on.now());
            drop(inner);
            self.newborn(Rc::clone(slot), on);
        }
        self.meters().deactivated(reason);
        on.wake_main();
    }

    /// Gives an activation up before it became valid: whoever waits gets the error, nothing stays behind.
    pub(super) fn give_up(&self, slot: &Rc<Slot<A>>, reason: &str, on: &Rc<ArbiterLocal>) {
        tracing::warn!(actor = %slot.id, reason, "activation failed");
        self.meters().activation_failures.increment(1);
        let waiting = {
            let mut inner = slot.inner.borrow_mut();
            inner.tokens.clear();
            inner.life.leave(archipelago_protocol::activation::DeactivateReason::ActivationFailed);
            std::mem::take(&mut inner.queue)
        };
        for job in waiting {
            let error = CallError::ActivationFailed { reason: reason.to_owned() };
            on.refuse(&slot.id, &job.head, job.body.name(), error);
            on.job_over();
        }
        self.finish(slot, on);
    }
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

/// Waits for detached handlers, then for the farewell, the latter not for ever.
async fn settle<A: VirtualActor>(aftermath: Aftermath, slot: &Slot<A>, on: &Rc<ArbiterLocal>) {
    for running in aftermath.lingering {
        let (token, flags) = running.await;
        let mut inner = slot.inner.borrow_mut();
        inner.life.job_ended(on.now(), flags);
        inner.tokens.retain(|known| *known != token);
        drop(inner);
        on.job_over();
    }
    let Some(farewell) = aftermath.farewell else { return };
    let limit = on.node().env().sleep(on.node().settings().deactivate_timeout);
    if let Either::Right(_) = select(farewell, limit).await {
        tracing::warn!(actor = %slot.id, "on_deactivate took too long and was given up");
    }
}
