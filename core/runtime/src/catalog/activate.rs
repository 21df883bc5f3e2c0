//! The beginning of an activation: instance, state, `on_activate`, inbox.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use actix::{AsyncContext, Context};
use archipelago_protocol::activation::ActivationState;
use archipelago_protocol::time::Millis;
use futures_util::FutureExt;
use futures_util::future::{Either, select};

use super::carry::{Provision, prepare};
use super::inbox::Inbox;
use super::kind::KindCatalog;
use super::slot::Slot;
use crate::activation::Activation;
use crate::arbiter::ArbiterLocal;
use crate::call::{Entered, within};
use crate::env::Oddity;
use crate::message::{BoxError, VirtualActor};
use crate::node::Node;

impl<A: VirtualActor> KindCatalog<A> {
    /// Brings the actor of `slot` to life, if the node may still serve: the session may have run out since the shard was
    /// claimed.
    pub(super) fn activate(&self, slot: Rc<Slot<A>>, on: &Rc<ArbiterLocal>) {
        if !may_serve(on) {
            return self.turn_away(&slot, on);
        }
        let node = Node::of(Arc::clone(on.node()));
        match catch_unwind(AssertUnwindSafe(|| (self.factory())(&slot.id, &node))) {
            Ok(Ok(actor)) if A::HOOKS || A::PERSISTENCE.is_some() || A::MIGRATION.is_some() => {
                self.wake_up(slot, actor, on)
            }
            Ok(Ok(actor)) => self.begin(slot, actor, on),
            Ok(Err(error)) => self.give_up(&slot, &error.to_string(), on),
            Err(_) => self.give_up(&slot, "its factory panicked", on),
        }
    }

    /// Loads the state and runs `on_activate`, beside the arbiter's other work; messages wait in the slot meanwhile.
    fn wake_up(&self, slot: Rc<Slot<A>>, mut actor: A, on: &Rc<ArbiterLocal>) {
        self.step(&slot, ActivationState::Activating);
        let here = self.activation_of(&slot, on);
        slot.inner.borrow_mut().state = here.state().cloned();
        let entered = enter_hook(&slot, on);
        let (factory, id) = (Arc::clone(self.factory()), slot.id.clone());
        let node = here.node();
        let provision = Provision {
            anew: Box::new(move || factory(&id, &node)),
            carried: self.carried_for(&slot),
            on: Rc::clone(on),
        };
        let (on, index) = (Rc::clone(on), self.index());
        let env = Arc::clone(on.node().env());
        let began = env.nanos();
        env.spawn(Box::pin(async move {
            let outcome = hook(&on, within(entered, prepare(&mut actor, here, provision))).await;
            slot.inner.borrow_mut().tokens.clear();
            if on.node().env().oddly(Oddity::SlowActivation) {
                on.node().env().sleep(ODD_PAUSE).await;
            }
            let Some(kind) = on.kind::<A>(index) else { return };
            match outcome {
                Ok(()) if may_serve(&on) => {
                    let took = on.node().env().nanos().saturating_sub(began);
                    kind.meters().activating.record(took as f64 / 1e9);
                    kind.begin(slot, actor, &on);
                }
                Ok(()) => kind.turn_away(&slot, &on),
                Err(reason) => kind.give_up(&slot, &reason, &on),
            }
        }));
    }

    /// Hands the instance to actix, with an inbox in its context.
    fn begin(&self, slot: Rc<Slot<A>>, actor: A, on: &Rc<ArbiterLocal>) {
        if slot.inner.borrow().life.state() == ActivationState::Creating {
            self.step(&slot, ActivationState::Activating);
        }
        self.step(&slot, ActivationState::Valid);
        self.carried_is_used(&slot);
        self.watch_idleness(&slot, on);
        self.rank(&slot);
        self.begins();
        let mut ctx = Context::new();
        ctx.spawn(Inbox::new(slot, Rc::clone(on), self.index()));
        ctx.run(actor);
    }

    fn step(&self, slot: &Slot<A>, to: ActivationState) {
        if let Err(illegal) = slot.inner.borrow_mut().life.advance(to) {
            tracing::error!(actor = %slot.id, %illegal, "an activation began out of order");
        }
    }

    fn activation_of(&self, slot: &Slot<A>, on: &Rc<ArbiterLocal>) -> Activation {
        Activation::new(
            slot.id.clone(),
            slot.hash,
            self.index(),
            self.generation(slot.hash),
            Arc::clone(on.node()),
            A::PERSISTENCE.is_some(),
        )
    }
}

/// Whether an activation may go on. Asked after every wait on the way.
fn may_serve(on: &ArbiterLocal) -> bool {
    on.node().gate().may_start(on.coarse())
}

/// The hook counts as a job of the actor, so that a call back into it is seen as the cycle it is.
fn enter_hook<A: VirtualActor>(slot: &Slot<A>, on: &Rc<ArbiterLocal>) -> Entered {
    let token = on.new_token();
    let mut inner = slot.inner.borrow_mut();
    inner.tokens.push(token);
    let first = inner.queue.front().map(|job| &job.head);
    let deadline = first.map_or(Millis::MAX, |head| head.deadline);
    let scope = first.and_then(|head| head.scope.clone());
    Entered::new(Rc::clone(on), token, deadline, scope)
}

/// Waits for the state and `on_activate`, not for ever, and turns each of its ends into a reason.
async fn hook(on: &ArbiterLocal, work: impl Future<Output = Result<(), BoxError>>) -> Result<(), String> {
    let limit = on.node().settings().activate_timeout;
    let work = std::pin::pin!(AssertUnwindSafe(work).catch_unwind());
    match select(work, on.node().env().sleep(limit)).await {
        Either::Left((Ok(outcome), _)) => outcome.map_err(|error| error.to_string()),
        Either::Left((Err(_), _)) => Err("its on_activate panicked".to_owned()),
        Either::Right(_) => Err(format!("its on_activate took longer than {limit}")),
    }
}

/// How long an activation is held up where an environment has that happen.
const ODD_PAUSE: Millis = Millis(200);
