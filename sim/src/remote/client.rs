//! A client on one node: sends to actors of all kinds in rounds, and checks what it is told about each message.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Call, CallError, CallOptions, Node};
use archipelago_backend_conformance::Rng;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, join_all, select};

use super::island::{Fetch, Quick, Relay, Slow, Through, ask, friend, tell};
use super::outcome::{allowance, report};
use super::plan::{NODES, Plan};
use super::truth::{ActorNumber, Sending, Truth};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::sometimes;
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
    to: ActorNumber,
    call: LocalBoxFuture<'static, Result<u64, CallError>>,
    timeout: Millis,
    /// When to drop it instead.
    cancel: Option<Duration>,
    sent: Millis,
    index: usize,
    /// It was sent when the connection to its actor's node was gone already.
    unsent: bool,
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
            let count = if self.plan.bursts && self.rng.chance(250) { 2 + self.rng.below(14) } else { 1 };
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

    /// Sends one message of any kind; a future, if its end is to be waited for.
    fn send_one(
        &mut self,
        node: &Node,
        env: &Arc<SimEnvironment>,
        to: ActorNumber,
    ) -> Option<LocalBoxFuture<'static, ()>> {
        let large = self.plan.large && self.rng.chance(120);
        if self.rng.chance(350) {
            self.tell(node, to, large);
            return None;
        }
        let cancel = (self.plan.cancels && self.rng.chance(150))
            .then(|| Duration::from_micros(self.rng.below(60_000)));
        let tiny = self.plan.tiny_deadlines && self.rng.chance(400);
        let timeout = self.timeout(tiny);
        let must = self.plan.calm && cancel.is_none() && !tiny;
        let ticket = self.sending(node, to, Sending { large, must, ..TO_BE_FILLED });
        self.world.record("ask", ticket, to.as_u64());
        let call = self.ask(node, to, ticket, large, CallOptions::new().timeout(timeout.to_duration()));
        let unsent = self.is_cut_off(to);
        let pending = Pending {
            ticket,
            to,
            call,
            timeout,
            cancel,
            sent: env.clock().now(),
            index: self.index,
            unsent,
            env: Arc::clone(env),
        };
        Some(Box::pin(pending.wait(Arc::clone(&self.truth), self.world.clone())))
    }

    fn ask(
        &mut self,
        node: &Node,
        to: ActorNumber,
        ticket: u64,
        large: bool,
        options: CallOptions,
    ) -> LocalBoxFuture<'static, Result<u64, CallError>> {
        let pad = self.pad(large);
        if large && self.rng.chance(300) {
            // Here it is the reply that is large.
            let call = ask(node, to, Fetch { ticket, len: pad.len() }, options);
            return Box::pin(call.map(move |reply| reply.map(|bytes| ticket_in(&bytes))));
        }
        let call: Call<u64> = match self.rng.below(10) {
            0 | 1 if self.plan.nested && !large => {
                let hops = (0..1 + self.rng.below(3)).map(|_| self.hop()).collect();
                let tells = u8::try_from(self.rng.below(3)).unwrap_or(0);
                ask(node, to, Relay { ticket, hops, millis: 20 + self.rng.below(130), tells }, options)
            }
            2 if self.plan.refs && !large => {
                let other = self.actor();
                let millis = 20 + self.rng.below(130);
                let kind = u8::try_from(other.kind).unwrap_or(0);
                let message = Through { ticket, friend: friend(node, other), kind, key: other.key, millis };
                ask(node, to, message, options)
            }
            3..=5 if self.plan.slow => {
                ask(node, to, Slow { ticket, millis: self.rng.below(40), pad }, options)
            }
            _ => ask(node, to, Quick { ticket, pad }, options),
        };
        Box::pin(call)
    }

    fn tell(&mut self, node: &Node, to: ActorNumber, large: bool) {
        let ticket = self.sending(node, to, Sending { tell: true, large, ..TO_BE_FILLED });
        self.world.record("tell", ticket, to.as_u64());
        let pad = self.pad(large);
        let told = if self.plan.slow && self.rng.chance(200) {
            tell(node, to, Slow { ticket, millis: self.rng.below(40), pad })
        } else {
            tell(node, to, Quick { ticket, pad })
        };
        self.truth.reported(ticket, if told.is_ok() { Reported::Accepted } else { Reported::NotStarted });
    }

    fn sending(&mut self, node: &Node, to: ActorNumber, sending: Sending) -> u64 {
        let sender = match self.sender {
            Some((life, sender)) if life == node.id() => sender,
            _ => {
                let sender = self.truth.new_sender();
                self.sender = Some((node.id(), sender));
                sender
            }
        };
        self.truth.sending(Sending { to, sender: Some(sender), ..sending })
    }

    fn actor(&mut self) -> ActorNumber {
        ActorNumber { kind: self.rng.index(NODES), key: self.rng.below(self.plan.keys) }
    }

    fn hop(&mut self) -> (u8, u64) {
        let ActorNumber { kind, key } = self.actor();
        (u8::try_from(kind).unwrap_or(0), key)
    }

    fn pad(&mut self, large: bool) -> Vec<u8> {
        let len = match self.rng.below(4) {
            _ if large => 3_000 + self.rng.below(9_000),
            0 => self.rng.below(1_500),
            _ => self.rng.below(200),
        };
        vec![1; usize::try_from(len).unwrap_or(0)]
    }

    fn timeout(&mut self, tiny: bool) -> Millis {
        match self.rng.below(3) {
            _ if tiny => Millis(1 + self.rng.below(25)),
            // Only the sum of many slow messages could take so long, if nothing is wrong.
            _ if self.plan.calm => Millis(20_000),
            0 => Millis(2_000 + self.rng.below(6_000)),
            _ => Millis(100 + self.rng.below(1_000)),
        }
    }

    /// Whether the way to this actor's node has been cut for so long that the connection must be gone.
    fn is_cut_off(&self, to: ActorNumber) -> bool {
        let gone = Duration::from_millis(self.plan.silence + 100);
        let owner = self.truth.owner(to.kind).filter(|owner| *owner != self.index);
        owner.and_then(|owner| self.world.cut_for(self.index, owner)).is_some_and(|cut| cut > gone)
    }
}

impl Pending {
    async fn wait(mut self, truth: Arc<Truth>, world: World) {
        let patience = self.cancel.unwrap_or(self.timeout.to_duration() + HANG);
        loop {
            match select(&mut self.call, Box::pin(TrueClock::sleep(patience))).await {
                Either::Left((answer, _)) => return self.ended(&answer, &truth, &world),
                Either::Right(_) if self.cancel.is_some() => return self.dropped(patience, &truth, &world),
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
        let due = (self.sent + self.timeout).max(self.env.resumed_at()) + allowance(self.timeout);
        truth.check(
            Invariant::EveryCallEndsByItsDeadline,
            now <= due || self.env.switch().is_paused(),
            || {
                let what = truth.describe(self.ticket);
                format!("{what} ended at {now}, due at {due}, as {answer:?}")
            },
        );
        if answer.is_ok() && self.unsent {
            sometimes!("unsent calls survived a reconnect");
        }
        report(truth, self.ticket, answer);
    }

    fn dropped(self, after: Duration, truth: &Truth, world: &World) {
        world.record("cancelled", self.ticket, 0);
        let far = truth.owner(self.to.kind).is_some_and(|owner| owner != self.index);
        if far && after > LONG_ENOUGH && truth.is_busy(self.to) {
            truth.cancelled_there(self.ticket);
        }
        truth.reported(self.ticket, Reported::Dropped);
    }
}

fn ticket_in(reply: &[u8]) -> u64 {
    sometimes!("large reply arrived");
    reply.first_chunk().map_or(u64::MAX, |ticket| u64::from_le_bytes(*ticket))
}

fn outcome_code(answer: &Result<u64, CallError>) -> u64 {
    match answer {
        Ok(_) => 0,
        Err(error) if error.is_not_started() => 1,
        Err(_) => 2,
    }
}

const TO_BE_FILLED: Sending =
    Sending { to: ActorNumber { kind: 0, key: 0 }, sender: None, tell: false, large: false, must: false };
/// When a call hangs for good.
const HANG: Duration = Duration::from_secs(5);
/// Until then a message has come to another node, if nothing is wrong.
const LONG_ENOUGH: Duration = Duration::from_millis(15);
