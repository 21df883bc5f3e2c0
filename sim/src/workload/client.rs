//! A client: sends all kinds of messages in rounds, and checks what it is told about each.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Call, CallError, CallOptions, Node};
use archipelago_backend_conformance::Rng;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{COARSE_LAG, from_outside};
use futures_util::future::{Either, LocalBoxFuture, join_all, select};

use super::account::{Account, Transfer, account_key};
use super::plan::Plan;
use super::report::{note, report};
use super::subject::{Exclusive, OnTheWay, Quick, Slow, Subject, Then, key_text};
use super::truth::{Reported, Truth};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::world::World;

/// One sender of messages.
pub(crate) struct Client {
    pub(crate) number: u64,
    pub(crate) plan: Plan,
    pub(crate) world: World,
    pub(crate) truth: Arc<Truth>,
    pub(crate) rng: Rng,
    /// Whether it stands for code on a thread of its own: then its messages take the queue.
    pub(crate) outside: bool,
}

/// A call that the client waits for.
struct Pending {
    ticket: u64,
    call: Call<u64>,
    timeout: Millis,
    /// When to drop it instead.
    cancel: Option<Duration>,
    sent: Millis,
    outside: bool,
    env: Arc<SimEnvironment>,
}

impl Client {
    /// Sends until `end`, then waits for what is under way.
    pub(crate) async fn run(mut self, end: Duration) {
        while self.world.now() < end && !self.truth.judge().violated() {
            TrueClock::sleep(self.plan.think(&mut self.rng)).await;
            let (Some(node), Some(env)) = (self.world.node(0), self.world.env(0)) else { continue };
            let count = if self.plan.bursts && self.rng.chance(200) { 2 + self.rng.below(10) } else { 1 };
            let round: Vec<LocalBoxFuture<'static, ()>> =
                (0..count).filter_map(|_| self.send(&node, &env)).collect();
            join_all(round).await;
        }
    }

    /// Sends one message from where the client is.
    fn send(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Option<LocalBoxFuture<'static, ()>> {
        if self.outside { from_outside(|| self.send_one(node, env)) } else { self.send_one(node, env) }
    }

    /// Sends one message of any kind; a future, if its end is to be waited for.
    fn send_one(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Option<LocalBoxFuture<'static, ()>> {
        if self.plan.bank && self.rng.chance(250) {
            return Some(self.transfer(node, env));
        }
        let key = self.rng.below(self.plan.keys);
        if self.rng.chance(350) {
            self.tell(node, key);
            return None;
        }
        let actor = node.actor::<Subject>(key_text(key));
        if self.plan.stops && self.rng.chance(30) {
            // Refused only if the ref could not be used at all.
            drop(actor.deactivate());
        }
        let ticket = self.truth.sending(key, Some(self.number), false);
        self.world.record("ask", ticket, key);
        let (timeout, options) = self.options();
        let call = match self.rng.below(10) {
            0..=4 => actor.send_with(Quick { ticket, then: self.then() }, options),
            5 | 6 if self.plan.slow => {
                let message = Exclusive { ticket, millis: self.rng.below(40) };
                actor.send_with(message, options)
            }
            _ if self.plan.slow || self.plan.nested => actor.send_with(self.slow(ticket), options),
            _ => actor.send_with(Quick { ticket, then: Then::Nothing }, options),
        };
        Some(self.pending(ticket, call, timeout, env))
    }

    fn transfer(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> LocalBoxFuture<'static, ()> {
        let from = ACCOUNTS + self.rng.below(4);
        let to = ACCOUNTS + self.rng.below(4);
        let ticket = self.truth.sending(from, Some(self.number), false);
        self.world.record("transfer", ticket, from);
        let (timeout, options) = self.options();
        let amount = i64::try_from(1 + self.rng.below(100)).unwrap_or(1);
        let message = Transfer { ticket, to, amount, millis: 5 + self.rng.below(400) };
        let call = node.actor::<Account>(account_key(from)).send_with(message, options);
        self.pending(ticket, call, timeout, env)
    }

    fn tell(&mut self, node: &Node, key: u64) {
        let actor = node.actor::<Subject>(key_text(key));
        let ticket = self.truth.sending(key, Some(self.number), true);
        self.world.record("tell", ticket, key);
        let told = match self.rng.below(10) {
            0..=2 if self.plan.slow || self.plan.nested => actor.tell(self.slow(ticket)),
            3 if self.plan.tiny_deadlines => {
                let options = CallOptions::new().timeout(Duration::from_millis(self.rng.below(20)));
                actor.tell_with(Quick { ticket, then: Then::Nothing }, options)
            }
            _ => actor.tell(Quick { ticket, then: self.then() }),
        };
        if let Err(error) = &told {
            note(error);
        }
        self.truth.reported(ticket, if told.is_ok() { Reported::Accepted } else { Reported::NotStarted });
    }

    fn then(&mut self) -> Then {
        match self.rng.below(30) {
            0 if self.plan.panics => Then::Panic,
            1 | 2 if self.plan.stops => Then::Stop,
            3 | 4 if self.plan.stops => Then::Deactivate,
            _ => Then::Nothing,
        }
    }

    fn slow(&mut self, ticket: u64) -> Slow {
        let on_the_way = match self.rng.below(20) {
            0 if self.plan.panics => OnTheWay::Panic,
            1..=3 if self.plan.stops => OnTheWay::StopFirst,
            4..=11 if self.plan.nested => {
                let depth = u8::try_from(self.rng.below(3)).unwrap_or(0);
                OnTheWay::Call { key: self.rng.below(self.plan.keys), depth }
            }
            _ => OnTheWay::Nothing,
        };
        Slow { ticket, millis: self.rng.below(60), on_the_way }
    }

    fn options(&mut self) -> (Millis, CallOptions) {
        let millis = match self.rng.below(10) {
            0..=4 if self.plan.tiny_deadlines => 1 + self.rng.below(25),
            _ => 100 + self.rng.below(1_000),
        };
        (Millis(millis), CallOptions::new().timeout(Duration::from_millis(millis)))
    }

    fn pending(
        &mut self,
        ticket: u64,
        call: Call<u64>,
        timeout: Millis,
        env: &Arc<SimEnvironment>,
    ) -> LocalBoxFuture<'static, ()> {
        let cancels = self.plan.cancels && self.rng.chance(150);
        let cancel = cancels.then(|| Duration::from_micros(self.rng.below(40_000)));
        let pending = Pending {
            ticket,
            call,
            timeout,
            cancel,
            sent: env.clock().now(),
            outside: self.outside,
            env: Arc::clone(env),
        };
        Box::pin(pending.wait(Arc::clone(&self.truth), self.world.clone()))
    }
}

impl Pending {
    async fn wait(mut self, truth: Arc<Truth>, world: World) {
        let patience = self.cancel.unwrap_or(self.timeout.to_duration() + HANG);
        loop {
            match select(&mut self.call, Box::pin(TrueClock::sleep(patience))).await {
                Either::Left((answer, _)) => return self.ended(&answer, &truth, &world),
                Either::Right(_) if self.cancel.is_some() => return self.dropped(&truth, &world),
                // A paused node ends no calls; it will when it goes on.
                Either::Right(_) if self.env.switch().is_paused() => {}
                Either::Right(_) => {
                    let ticket = self.ticket;
                    let what = || format!("message {ticket} has not ended {HANG:?} after its deadline");
                    return truth.check(Invariant::EveryCallEndsByItsDeadline, false, what);
                }
            }
        }
    }

    fn ended(self, answer: &Result<u64, CallError>, truth: &Truth, world: &World) {
        let now = self.env.clock().now();
        world.record("ended", self.ticket, outcome_code(answer));
        let due = (self.sent + self.timeout).max(self.env.resumed_at()) + self.grain();
        truth.check(
            Invariant::EveryCallEndsByItsDeadline,
            now <= due || self.env.switch().is_paused(),
            || format!("message {} ended at {now}, due at {due}", self.ticket),
        );
        report(truth, self.ticket, answer, self.outside);
    }

    /// How long after its deadline the call may end.
    fn grain(&self) -> Millis {
        let coarse = if self.timeout < EXACT_BELOW { Millis::ZERO } else { COARSE_LAG };
        let backstop = if self.outside { BACKSTOP } else { Millis::ZERO };
        GRAIN + coarse + backstop
    }

    fn dropped(self, truth: &Truth, world: &World) {
        let Self { ticket, call, .. } = self;
        world.record("cancelled", ticket, 0);
        drop(call);
        truth.reported(ticket, Reported::Dropped);
    }
}

fn outcome_code(answer: &Result<u64, CallError>) -> u64 {
    match answer {
        Ok(_) => 0,
        Err(error) if error.is_not_started() => 1,
        Err(_) => 2,
    }
}

/// Accounts have the numbers from here on.
pub(crate) const ACCOUNTS: u64 = 1_000;
/// How long after its deadline a call may end.
const GRAIN: Millis = Millis(20);
/// Longer deadlines are counted on the coarse clock.
const EXACT_BELOW: Millis = Millis(1_000);
/// How long a caller outside waits for an arbiter that is stuck.
const BACKSTOP: Millis = Millis(50);
/// When a call counts as hanging.
const HANG: Duration = Duration::from_millis(1_500);
