//! A client on one node: sends to counters of all kinds in rounds, and checks what it is told about each message.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{CallError, CallOptions, Node};
use archipelago_backend_conformance::Rng;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use futures_util::future::{Either, LocalBoxFuture, join_all, select};

use super::counter::{Add, Tally, ask, tell};
use super::outcome::{check_end, report};
use super::plan::{KINDS, Plan};
use super::truth::{ActorNumber, Sending, Truth};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::workload::Reported;
use crate::world::World;

/// One sender of messages, on a thread of its own: what it sends takes the queue into its node.
pub(crate) struct Client {
    /// Its node.
    pub(crate) index: usize,
    pub(crate) plan: Plan,
    pub(crate) world: World,
    pub(crate) truth: Arc<Truth>,
    pub(crate) rng: Rng,
    /// As whom it sends in which life of its node: nothing is promised about the order between two lives.
    pub(crate) sender: Option<(NodeId, u64)>,
}

/// A call that the client waits for.
struct Pending {
    ticket: u64,
    call: LocalBoxFuture<'static, Result<Tally, CallError>>,
    timeout: Millis,
    sent: Millis,
    env: Arc<SimEnvironment>,
}

impl Client {
    /// Sends until `end`, then waits for what is under way.
    pub(crate) async fn run(mut self, end: Duration) {
        while self.world.now() < end && !self.truth.judge().violated() {
            TrueClock::sleep(Plan::think(&mut self.rng)).await;
            let (Some(node), Some(env)) = (self.world.node(self.index), self.world.env(self.index)) else {
                continue;
            };
            let count = if self.plan.bursts && self.rng.chance(250) { 2 + self.rng.below(8) } else { 1 };
            // A burst to one actor, mostly: that is where order shows.
            let to = self.actor();
            let one = self.rng.chance(700);
            let round: Vec<LocalBoxFuture<'static, ()>> = (0..count)
                .filter_map(|_| {
                    let to = if one { to } else { self.actor() };
                    from_outside(|| self.send_one(&node, &env, to))
                })
                .collect();
            join_all(round).await;
        }
    }

    /// Sends one message; a future, if its end is to be waited for.
    fn send_one(
        &mut self,
        node: &Node,
        env: &Arc<SimEnvironment>,
        to: ActorNumber,
    ) -> Option<LocalBoxFuture<'static, ()>> {
        if self.rng.chance(400) {
            self.tell(node, to);
            return None;
        }
        let timeout = self.timeout();
        let ticket = self.sending(node, to, false);
        self.world.record("ask", ticket, to.as_u64());
        let add = self.add(ticket, to);
        let call = ask(node, to, add, CallOptions::new().timeout(timeout.to_duration()));
        let (sent, env) = (env.clock().now(), Arc::clone(env));
        let pending = Pending { ticket, call: Box::pin(call), timeout, sent, env };
        Some(Box::pin(pending.wait(Arc::clone(&self.truth), self.world.clone())))
    }

    fn tell(&mut self, node: &Node, to: ActorNumber) {
        let ticket = self.sending(node, to, true);
        self.world.record("tell", ticket, to.as_u64());
        let add = Add { then: None, ..self.add(ticket, to) };
        let told = tell(node, to, add);
        self.truth.reported(ticket, if told.is_ok() { Reported::Accepted } else { Reported::NotStarted });
    }

    fn add(&mut self, ticket: u64, to: ActorNumber) -> Add {
        let millis = if self.plan.slow && self.rng.chance(300) { self.rng.below(40) } else { 0 };
        // Always from the first kind to the second, so that nobody waits in a circle.
        let nested = self.plan.nested && to.kind == 0 && self.rng.chance(300);
        let then = nested.then(|| self.rng.below(self.plan.keys));
        Add { ticket, millis, then }
    }

    fn sending(&mut self, node: &Node, to: ActorNumber, tell: bool) -> u64 {
        let sender = match self.sender {
            Some((life, sender)) if life == node.id() => sender,
            _ => {
                let sender = self.truth.new_sender();
                self.sender = Some((node.id(), sender));
                sender
            }
        };
        let life = self.truth.life_of(node.id());
        let sending = Sending { to, from: self.index, life, sender: Some(sender), tell, inside: false };
        self.truth.sending(sending)
    }

    fn actor(&mut self) -> ActorNumber {
        ActorNumber { kind: self.rng.index(KINDS), key: self.rng.below(self.plan.keys) }
    }

    fn timeout(&mut self) -> Millis {
        match self.rng.below(3) {
            // Only the sum of many slow messages could take so long, if nothing is wrong.
            _ if self.plan.calm => Millis(20_000),
            0 => Millis(2_000 + self.rng.below(6_000)),
            _ => Millis(100 + self.rng.below(1_000)),
        }
    }
}

impl Pending {
    async fn wait(mut self, truth: Arc<Truth>, world: World) {
        let patience = self.timeout.to_duration() + HANG;
        loop {
            match select(&mut self.call, Box::pin(TrueClock::sleep(patience))).await {
                Either::Left((answer, _)) => return self.ended(&answer, &truth, &world),
                // A paused node ends no calls; it will when it goes on.
                Either::Right(_) if self.env.switch().is_paused() => {}
                Either::Right(_) => {
                    let what = || format!("{} has not ended after {patience:?}", truth.describe(self.ticket));
                    return truth.check(Invariant::EveryCallEndsByItsDeadline, false, what);
                }
            }
        }
    }

    fn ended(self, answer: &Result<Tally, CallError>, truth: &Truth, world: &World) {
        world.record("ended", self.ticket, outcome_code(answer));
        check_end(truth, self.ticket, &self.env, (self.sent, self.timeout), answer);
        report(truth, self.ticket, answer);
    }
}

fn outcome_code(answer: &Result<Tally, CallError>) -> u64 {
    match answer {
        Ok(_) => 0,
        Err(error) if error.is_not_started() => 1,
        Err(_) => 2,
    }
}

/// When a call hangs for good.
const HANG: Duration = Duration::from_secs(5);
