//! The actor under test: counts in a storage of its own, and does everything that user code may do.

use std::sync::{Arc, Weak};
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{CallOptions, identity::ActorId};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;

use super::plan::{ACTIVATE_TIMEOUT, DEACTIVATE_TIMEOUT};
use super::truth::{Phase, Running, Span, Truth};
use crate::clock::TrueClock;
use crate::common::Home;
use crate::sometimes;

/// Adds one, at once.
#[remote(u64)]
pub(crate) struct Quick {
    pub(crate) ticket: u64,
    pub(crate) then: Then,
}

/// What a quick handler does besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Then {
    Nothing,
    Panic,
    Stop,
    Deactivate,
}

/// Adds one after a while, in a future of its own that does not hold the actor.
#[remote(u64)]
pub(crate) struct Slow {
    pub(crate) ticket: u64,
    pub(crate) millis: u64,
    pub(crate) on_the_way: OnTheWay,
}

/// What a slow handler does before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum OnTheWay {
    Nothing,
    Panic,
    /// Stops the actor first, so that the handler outlives it.
    StopFirst,
    /// Calls the actor with this key, which calls on until `depth` is used up.
    Call {
        key: u64,
        depth: u8,
    },
}

/// Adds one after a while, holding the actor.
#[remote(u64)]
pub(crate) struct Exclusive {
    pub(crate) ticket: u64,
    pub(crate) millis: u64,
}

/// What goes wrong in the hooks of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) slow: bool,
    pub(crate) failing: bool,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Quick, Slow, Exclusive), lifecycle)]
pub(crate) struct Subject {
    span: Arc<Span>,
    node: Node,
    hooks: Hooks,
    here: Option<Activation>,
    /// Alive as long as the instance is.
    instance: Arc<()>,
}

impl Subject {
    pub(crate) fn new(truth: &Arc<Truth>, hooks: Hooks, home: &Home, id: &ActorId, node: &Node) -> Self {
        let span = truth.activation(key_of(id.key().as_str()), home, node.id());
        Self { span, node: node.clone(), hooks, here: None, instance: Arc::new(()) }
    }

    fn truth(&self) -> &Arc<Truth> {
        self.span.truth()
    }
}

impl Actor for Subject {
    type Context = Context<Self>;
}

impl Lifecycle for Subject {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        let truth = Arc::clone(self.truth());
        let _phase = InPhase::enter(&self.span, Phase::Activating);
        truth.generation(&self.span, here.generation());
        self.here = Some(here);
        if self.hooks.slow {
            let millis = if truth.below(40) == 0 { ACTIVATE_TIMEOUT.0 * 2 } else { truth.below(30) };
            let began = self.span.now();
            let _late = Overdue {
                span: &self.span,
                began,
                limit: ACTIVATE_TIMEOUT,
                point: || sometimes!("activation timed out"),
            };
            TrueClock::sleep(Duration::from_millis(millis)).await;
            self.span.goes_on();
        }
        match truth.below(12) {
            0 if self.hooks.failing => {
                sometimes!("activation failed");
                Err("refused by the plan".into())
            }
            1 if self.hooks.failing => {
                sometimes!("activation panicked");
                quiet_panic()
            }
            _ => Ok(()),
        }
    }

    fn on_deactivate(&mut self, reason: DeactivateReason) -> ResponseFuture<()> {
        match reason {
            DeactivateReason::Idle => sometimes!("actor passivated"),
            DeactivateReason::StoppedItself => sometimes!("actor stopped itself"),
            DeactivateReason::Requested => sometimes!("deactivation requested"),
            _ => {}
        }
        let (span, slow) = (Arc::clone(&self.span), self.hooks.slow);
        Box::pin(async move {
            let _phase = InPhase::enter(&span, Phase::Farewell);
            if slow {
                let millis = match span.truth().below(20) {
                    0 => DEACTIVATE_TIMEOUT.0 * 2,
                    _ => span.truth().below(60),
                };
                let began = span.now();
                let _late = Overdue {
                    span: &span,
                    began,
                    limit: DEACTIVATE_TIMEOUT,
                    point: || sometimes!("farewell given up"),
                };
                TrueClock::sleep(Duration::from_millis(millis)).await;
                span.goes_on();
            }
        })
    }
}

impl Handler<Quick> for Subject {
    type Result = u64;

    fn handle(&mut self, Quick { ticket, then }: Quick, ctx: &mut Context<Self>) -> u64 {
        let _running = self.truth().started(ticket, &self.span);
        let before = self.truth().load(self.span.at().actor.key);
        match then {
            Then::Nothing => {}
            Then::Panic => {
                sometimes!("handler panicked");
                quiet_panic()
            }
            Then::Stop => ctx.stop(),
            Then::Deactivate => {
                if let Some(here) = &self.here {
                    here.deactivate();
                }
            }
        }
        self.truth().save(self.span.at().actor.key, before + 1);
        ticket
    }
}

impl Handler<Slow> for Subject {
    type Result = ResponseFuture<u64>;

    fn handle(
        &mut self,
        Slow { ticket, millis, on_the_way }: Slow,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<u64> {
        let running = self.truth().started(ticket, &self.span);
        if on_the_way == OnTheWay::StopFirst {
            ctx.stop();
        }
        let detached = Detached {
            span: Arc::clone(&self.span),
            node: self.node.clone(),
            instance: Arc::downgrade(&self.instance),
            running,
        };
        Box::pin(in_call(detached.work(ticket, millis, on_the_way)))
    }
}

impl Handler<Exclusive> for Subject {
    type Result = AtomicResponse<Self, u64>;

    fn handle(&mut self, Exclusive { ticket, millis }: Exclusive, _: &mut Context<Self>) -> Self::Result {
        let running = self.truth().started(ticket, &self.span);
        let before = self.truth().load(self.span.at().actor.key);
        let pause = TrueClock::sleep(Duration::from_millis(millis)).into_actor(self);
        AtomicResponse::new(Box::pin(pause.map(move |(), actor: &mut Self, _| {
            actor.span.goes_on();
            actor.truth().save(actor.span.at().actor.key, before + 1);
            drop(running);
            ticket
        })))
    }
}

/// A slow handler under way.
struct Detached {
    span: Arc<Span>,
    node: Node,
    instance: Weak<()>,
    running: Running,
}

impl Detached {
    /// Reads, waits, writes: whoever writes in between is lost, and that shows.
    async fn work(self, ticket: u64, millis: u64, on_the_way: OnTheWay) -> u64 {
        let (truth, key) = (Arc::clone(self.span.truth()), self.span.at().actor.key);
        let before = truth.load(key);
        TrueClock::sleep(Duration::from_millis(millis)).await;
        self.span.goes_on();
        if self.instance.strong_count() == 0 {
            sometimes!("detached handler outlived its actor");
        }
        match on_the_way {
            OnTheWay::Panic => {
                sometimes!("detached handler panicked");
                quiet_panic()
            }
            OnTheWay::Call { key, depth } => self.call(key, depth).await,
            OnTheWay::Nothing | OnTheWay::StopFirst => {}
        }
        truth.save(key, before + 1);
        drop(self.running);
        ticket
    }

    /// Calls another actor, or this one: then it is a cycle, and must be told so.
    async fn call(&self, key: u64, depth: u8) {
        let truth = self.span.truth();
        let ticket = truth.sending(key, None, false);
        let on_the_way = match depth {
            0 => OnTheWay::Nothing,
            _ => OnTheWay::Call { key: truth.below(4), depth: depth - 1 },
        };
        let message = Slow { ticket, millis: truth.below(10), on_the_way };
        let options = CallOptions::new().timeout(Duration::from_millis(400));
        let send = || self.node.actor::<Subject>(key_text(key)).send_with(message, options);
        // The other actor may well live on another arbiter, and so on another thread.
        let outside = truth.below(2) == 0;
        let answer = if outside { from_outside(send) } else { send() }.await;
        self.span.goes_on();
        if answer.is_ok() {
            sometimes!("nested call answered");
        }
        truth.answered(ticket, &answer, outside);
    }
}

/// A hook that is running.
struct InPhase {
    span: Arc<Span>,
}

impl InPhase {
    fn enter(span: &Arc<Span>, phase: Phase) -> Self {
        span.truth().set_phase(span, Some(phase));
        Self { span: Arc::clone(span) }
    }
}

impl Drop for InPhase {
    fn drop(&mut self) {
        self.span.truth().set_phase(&self.span, None);
    }
}

/// Notes that something took longer than it may, when it is dropped.
struct Overdue<'a> {
    span: &'a Span,
    began: Millis,
    limit: Millis,
    point: fn(),
}

impl Drop for Overdue<'_> {
    fn drop(&mut self) {
        if self.span.now() >= self.began + self.limit {
            (self.point)();
        }
    }
}

/// A panic that is part of the plan: it unwinds like any other, but says nothing on the screen.
fn quiet_panic() -> ! {
    std::panic::resume_unwind(Box::new("part of the plan"))
}

/// The key of the subject with this number.
pub(crate) fn key_text(key: u64) -> String {
    format!("k{key}")
}

/// The number of the actor with this key.
pub(crate) fn key_of(text: &str) -> u64 {
    text.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u64::MAX)
}
