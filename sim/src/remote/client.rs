//! A client on one node: sends to actors of all kinds in rounds, and checks what it is told about each message.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Call, CallError, CallOptions, Node};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::island::{Fetch, Quick, Relay, Slow, Through, ask, friend, tell};
use super::plan::{NODES, Plan, SWEEP};
use super::truth::{Letter, More, Truth};
use crate::common::{self, ActorNumber, Desk, Ended, Ground, Pending, Reported, allowance};
use crate::env::SimEnvironment;
use crate::sometimes;

/// One sender of messages, on a thread of its own: what it sends takes the queue into its node.
pub(crate) struct Client {
    pub(crate) plan: Plan,
    pub(crate) desk: Desk<Truth>,
}

impl common::Client for Client {
    type Truth = Truth;

    fn desk(&mut self) -> &mut Desk<Truth> {
        &mut self.desk
    }

    fn think(&mut self) -> Duration {
        Plan::think(&mut self.desk.rng)
    }

    fn round(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Vec<LocalBoxFuture<'static, ()>> {
        let mut targets = self.desk.targets(self.plan.bursts, 15, NODES, self.plan.keys);
        let mut round = Vec::new();
        while let Some(to) = targets.next(&mut self.desk) {
            round.extend(from_outside(|| self.send_one(node, env, to)));
        }
        round
    }
}

impl Client {
    /// Sends one message of any kind; a future, if its end is to be waited for.
    fn send_one(
        &mut self,
        node: &Node,
        env: &Arc<SimEnvironment>,
        to: ActorNumber,
    ) -> Option<LocalBoxFuture<'static, ()>> {
        let large = self.plan.large && self.desk.rng.chance(120);
        if self.desk.rng.chance(350) {
            self.tell(node, to, large);
            return None;
        }
        let cancel = (self.plan.cancels && self.desk.rng.chance(150))
            .then(|| Duration::from_micros(self.desk.rng.below(60_000)));
        let tiny = self.plan.tiny_deadlines && self.desk.rng.chance(400);
        let timeout = self.timeout(tiny);
        let must = self.plan.calm && cancel.is_none() && !tiny;
        let ticket = self.sending(node, to, false, More { large, must, ..More::default() });
        self.desk.world.record("ask", ticket, to.as_u64());
        let call = self.ask(node, to, ticket, large, CallOptions::new().timeout(timeout.to_duration()));
        // It is sent when the connection to its actor's node is gone already.
        let unsent = self.is_cut_off(to);
        let (sent, grain, env) = (env.clock().now(), allowance(timeout, SWEEP), Arc::clone(env));
        let pending = Pending { ticket, call, timeout, cancel, sent, grain, env };
        let (truth, world, index) = (Arc::clone(&self.desk.truth), self.desk.world.clone(), self.desk.index);
        Some(Box::pin(async move {
            match pending.wait(truth.ledger(), &world).await {
                Ended::Answered(answer) => {
                    if answer.is_ok() && unsent {
                        sometimes!("unsent calls survived a reconnect");
                    }
                    truth.answered(ticket, &answer);
                }
                Ended::Dropped(after) => dropped(&truth, ticket, (index, to), after),
                Ended::Hangs => {}
            }
        }))
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
        if large && self.desk.rng.chance(300) {
            // Here it is the reply that is large.
            let call = ask(node, to, Fetch { ticket, len: pad.len() }, options);
            return Box::pin(call.map(move |reply| reply.map(|bytes| ticket_in(&bytes))));
        }
        let call: Call<u64> = match self.desk.rng.below(10) {
            0 | 1 if self.plan.nested && !large => {
                let hops = (0..1 + self.desk.rng.below(3)).map(|_| self.hop()).collect();
                let tells = u8::try_from(self.desk.rng.below(3)).unwrap_or(0);
                ask(node, to, Relay { ticket, hops, millis: 20 + self.desk.rng.below(130), tells }, options)
            }
            2 if self.plan.refs && !large => {
                let other = self.actor();
                let millis = 20 + self.desk.rng.below(130);
                let kind = u8::try_from(other.kind).unwrap_or(0);
                let message = Through { ticket, friend: friend(node, other), kind, key: other.key, millis };
                ask(node, to, message, options)
            }
            3..=5 if self.plan.slow => {
                ask(node, to, Slow { ticket, millis: self.desk.rng.below(40), pad }, options)
            }
            _ => ask(node, to, Quick { ticket, pad }, options),
        };
        Box::pin(call)
    }

    fn tell(&mut self, node: &Node, to: ActorNumber, large: bool) {
        let ticket = self.sending(node, to, true, More { large, ..More::default() });
        self.desk.world.record("tell", ticket, to.as_u64());
        let pad = self.pad(large);
        let told = if self.plan.slow && self.desk.rng.chance(200) {
            tell(node, to, Slow { ticket, millis: self.desk.rng.below(40), pad })
        } else {
            tell(node, to, Quick { ticket, pad })
        };
        self.desk.truth.ledger().reported(ticket, Reported::told(&told));
    }

    fn sending(&mut self, node: &Node, to: ActorNumber, tell: bool, more: More) -> u64 {
        let sender = Some(self.desk.sender(node));
        self.desk.truth.ledger().sending(Letter { to, sender, tell, more })
    }

    fn actor(&mut self) -> ActorNumber {
        self.desk.actor(NODES, self.plan.keys)
    }

    fn hop(&mut self) -> (u8, u64) {
        let ActorNumber { kind, key } = self.actor();
        (u8::try_from(kind).unwrap_or(0), key)
    }

    fn pad(&mut self, large: bool) -> Vec<u8> {
        let len = match self.desk.rng.below(4) {
            _ if large => 3_000 + self.desk.rng.below(9_000),
            0 => self.desk.rng.below(1_500),
            _ => self.desk.rng.below(200),
        };
        vec![1; usize::try_from(len).unwrap_or(0)]
    }

    fn timeout(&mut self, tiny: bool) -> Millis {
        if !tiny {
            return self.desk.timeout(self.plan.calm);
        }
        self.desk.rng.below(3);
        Millis(1 + self.desk.rng.below(25))
    }

    /// Whether the way to this actor's node has been cut for so long that the connection must be gone.
    fn is_cut_off(&self, to: ActorNumber) -> bool {
        let gone = Duration::from_millis(self.plan.silence + 100);
        let owner = self.desk.truth.owner(to.kind).filter(|owner| *owner != self.desk.index);
        owner.and_then(|owner| self.desk.world.cut_for(self.desk.index, owner)).is_some_and(|cut| cut > gone)
    }
}

/// Nobody waits for this call any more, which was made on node `index`.
fn dropped(truth: &Truth, ticket: u64, (index, to): (usize, ActorNumber), after: Duration) {
    let far = truth.owner(to.kind).is_some_and(|owner| owner != index);
    if far && after > LONG_ENOUGH && truth.ledger().is_busy(to) {
        truth.cancelled_there(ticket);
    }
    truth.ledger().reported(ticket, Reported::Dropped);
}

fn ticket_in(reply: &[u8]) -> u64 {
    sometimes!("large reply arrived");
    reply.first_chunk().map_or(u64::MAX, |ticket| u64::from_le_bytes(*ticket))
}

/// Until then a message has come to another node, if nothing is wrong.
const LONG_ENOUGH: Duration = Duration::from_millis(15);
