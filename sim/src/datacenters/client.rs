//! A client on one node: asks actors of all kinds, wherever they live, and checks what it is told.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{CallOptions, Node};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use futures_util::future::LocalBoxFuture;

use super::dweller::{Greet, SOUGHT, ask};
use super::plan::{Plan, SWEEP};
use super::truth::{From, Letter, Truth};
use crate::common::{self, ActorNumber, Desk, Ended, Ground, Pending, allowance};
use crate::env::SimEnvironment;

/// One sender of messages.
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
        Duration::from_millis(self.desk.rng.below(500))
    }

    fn round(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Vec<LocalBoxFuture<'static, ()>> {
        let count = if self.desk.rng.chance(250) { 3 } else { 1 };
        let mut round = Vec::new();
        for _ in 0..count {
            let to = self.desk.actor(self.plan.kinds(), self.plan.keys);
            if self.may_ask(to) {
                round.push(from_outside(|| self.send_one(node, env, to)));
            }
        }
        round
    }
}

impl Client {
    /// Whoever asks first for a sought actor brings it to life; it is the same datacenter for all.
    fn may_ask(&self, to: ActorNumber) -> bool {
        let founds = self.plan.place_of(to.key) == self.plan.island_of(self.desk.index);
        to.kind != SOUGHT || founds || self.desk.truth.is_founded(to)
    }

    fn send_one(
        &mut self,
        node: &Node,
        env: &Arc<SimEnvironment>,
        to: ActorNumber,
    ) -> LocalBoxFuture<'static, ()> {
        let rng = &mut self.desk.rng;
        let timeout = Millis(if rng.chance(500) { 4_000 } else { 300 + rng.below(1_500) });
        let millis = if rng.chance(200) { rng.below(60) } else { 0 };
        let sender = Some(self.desk.sender(node));
        let more = From { index: self.desk.index };
        let ticket = self.desk.truth.ledger().sending(Letter { to, sender, tell: false, more });
        self.desk.world.record("ask", ticket, to.as_u64());
        let options = CallOptions::new().timeout(timeout.to_duration());
        let call = Box::pin(ask(node, to, Greet { ticket, millis }, options));
        let (sent, grain, env) = (env.clock().now(), allowance(timeout, SWEEP), Arc::clone(env));
        let pending = Pending { ticket, call, timeout, cancel: None, sent, grain, env };
        let (truth, world) = (Arc::clone(&self.desk.truth), self.desk.world.clone());
        Box::pin(async move {
            if let Ended::Answered(answer) = pending.wait(truth.ledger(), &world).await {
                truth.answered(ticket, &answer);
            }
        })
    }
}
