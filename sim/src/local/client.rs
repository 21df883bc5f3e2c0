//! A client: sends all kinds of messages in rounds, and checks what it is told about each.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Call, CallOptions, Node};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use futures_util::future::LocalBoxFuture;

use super::account::{Account, Transfer, account_key};
use super::plan::Plan;
use super::report::note;
use super::subject::{Exclusive, OnTheWay, Quick, Slow, Subject, Then, key_text};
use super::truth::Truth;
use crate::common::{self, Desk, Ended, Ground, Pending, Reported, allowance};
use crate::env::SimEnvironment;

/// One sender of messages.
pub(crate) struct Client {
    /// As whom it sends, in all lives of the node.
    pub(crate) number: u64,
    pub(crate) plan: Plan,
    pub(crate) desk: Desk<Truth>,
    /// Whether it stands for code on a thread of its own: then its messages take the queue.
    pub(crate) outside: bool,
}

impl common::Client for Client {
    type Truth = Truth;

    fn desk(&mut self) -> &mut Desk<Truth> {
        &mut self.desk
    }

    fn think(&mut self) -> Duration {
        self.plan.think(&mut self.desk.rng)
    }

    fn round(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Vec<LocalBoxFuture<'static, ()>> {
        let rng = &mut self.desk.rng;
        let count = if self.plan.bursts && rng.chance(200) { 2 + rng.below(10) } else { 1 };
        (0..count).filter_map(|_| self.send(node, env)).collect()
    }
}

impl Client {
    /// Sends one message from where the client is.
    fn send(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Option<LocalBoxFuture<'static, ()>> {
        if self.outside { from_outside(|| self.send_one(node, env)) } else { self.send_one(node, env) }
    }

    /// Sends one message of any kind; a future, if its end is to be waited for.
    fn send_one(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Option<LocalBoxFuture<'static, ()>> {
        if self.plan.bank && self.desk.rng.chance(250) {
            return Some(self.transfer(node, env));
        }
        let key = self.desk.rng.below(self.plan.keys);
        if self.desk.rng.chance(350) {
            self.tell(node, key);
            return None;
        }
        let actor = node.actor::<Subject>(key_text(key));
        if self.plan.stops && self.desk.rng.chance(30) {
            // Refused only if the ref could not be used at all.
            drop(actor.deactivate());
        }
        let ticket = self.desk.truth.sending(key, Some(self.number), false);
        self.desk.world.record("ask", ticket, key);
        let (timeout, options) = self.options();
        let call = match self.desk.rng.below(10) {
            0..=4 => actor.send_with(Quick { ticket, then: self.then() }, options),
            5 | 6 if self.plan.slow => {
                let message = Exclusive { ticket, millis: self.desk.rng.below(40) };
                actor.send_with(message, options)
            }
            _ if self.plan.slow || self.plan.nested => actor.send_with(self.slow(ticket), options),
            _ => actor.send_with(Quick { ticket, then: Then::Nothing }, options),
        };
        Some(self.pending(ticket, call, timeout, env))
    }

    fn transfer(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> LocalBoxFuture<'static, ()> {
        let from = ACCOUNTS + self.desk.rng.below(4);
        let to = ACCOUNTS + self.desk.rng.below(4);
        let ticket = self.desk.truth.sending(from, Some(self.number), false);
        self.desk.world.record("transfer", ticket, from);
        let (timeout, options) = self.options();
        let amount = i64::try_from(1 + self.desk.rng.below(100)).unwrap_or(1);
        let message = Transfer { ticket, to, amount, millis: 5 + self.desk.rng.below(400) };
        let call = node.actor::<Account>(account_key(from)).send_with(message, options);
        self.pending(ticket, call, timeout, env)
    }

    fn tell(&mut self, node: &Node, key: u64) {
        let actor = node.actor::<Subject>(key_text(key));
        let ticket = self.desk.truth.sending(key, Some(self.number), true);
        self.desk.world.record("tell", ticket, key);
        let told = match self.desk.rng.below(10) {
            0..=2 if self.plan.slow || self.plan.nested => actor.tell(self.slow(ticket)),
            3 if self.plan.tiny_deadlines => {
                let options = CallOptions::new().timeout(Duration::from_millis(self.desk.rng.below(20)));
                actor.tell_with(Quick { ticket, then: Then::Nothing }, options)
            }
            _ => actor.tell(Quick { ticket, then: self.then() }),
        };
        if let Err(error) = &told {
            note(error);
        }
        self.desk.truth.reported(ticket, Reported::told(&told));
    }

    fn then(&mut self) -> Then {
        match self.desk.rng.below(30) {
            0 if self.plan.panics => Then::Panic,
            1 | 2 if self.plan.stops => Then::Stop,
            3 | 4 if self.plan.stops => Then::Deactivate,
            _ => Then::Nothing,
        }
    }

    fn slow(&mut self, ticket: u64) -> Slow {
        let on_the_way = match self.desk.rng.below(20) {
            0 if self.plan.panics => OnTheWay::Panic,
            1..=3 if self.plan.stops => OnTheWay::StopFirst,
            4..=11 if self.plan.nested => {
                let depth = u8::try_from(self.desk.rng.below(3)).unwrap_or(0);
                OnTheWay::Call { key: self.desk.rng.below(self.plan.keys), depth }
            }
            _ => OnTheWay::Nothing,
        };
        Slow { ticket, millis: self.desk.rng.below(60), on_the_way }
    }

    fn options(&mut self) -> (Millis, CallOptions) {
        let millis = match self.desk.rng.below(10) {
            0..=4 if self.plan.tiny_deadlines => 1 + self.desk.rng.below(25),
            _ => 100 + self.desk.rng.below(1_000),
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
        let cancels = self.plan.cancels && self.desk.rng.chance(150);
        let cancel = cancels.then(|| Duration::from_micros(self.desk.rng.below(40_000)));
        let backstop = if self.outside { BACKSTOP } else { Millis::ZERO };
        let (sent, grain, env) = (env.clock().now(), allowance(timeout, SWEEP) + backstop, Arc::clone(env));
        let pending = Pending { ticket, call: Box::pin(call), timeout, cancel, sent, grain, env };
        let (truth, world, outside) = (Arc::clone(&self.desk.truth), self.desk.world.clone(), self.outside);
        Box::pin(async move {
            match pending.wait(truth.ledger(), &world).await {
                Ended::Answered(answer) => truth.answered(ticket, &answer, outside),
                Ended::Dropped(_) => truth.reported(ticket, Reported::Dropped),
                Ended::Hangs => {}
            }
        })
    }
}

/// Accounts have the numbers from here on.
pub(crate) const ACCOUNTS: u64 = 1_000;
/// How often the arbiter looks at its calls.
const SWEEP: Millis = Millis(20);
/// How long a caller outside waits for an arbiter that is stuck.
const BACKSTOP: Millis = Millis(50);
