//! A client on one node: sends to counters of all kinds in rounds, and checks what it is told about each message.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{CallOptions, Node};
use archipelago_runtime::env::from_outside;
use futures_util::future::LocalBoxFuture;

use super::counter::{Add, ask, tell};
use super::plan::{KINDS, Plan, SWEEP};
use super::truth::{Letter, Truth};
use crate::common::{self, ActorNumber, Desk, Ended, Ground, Pending, Reported, allowance};
use crate::env::SimEnvironment;

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
        let mut targets = self.desk.targets(self.plan.bursts, 9, KINDS, self.plan.keys);
        let mut round = Vec::new();
        while let Some(to) = targets.next(&mut self.desk) {
            round.extend(from_outside(|| self.send_one(node, env, to)));
        }
        round
    }
}

impl Client {
    /// Sends one message; a future, if its end is to be waited for.
    fn send_one(
        &mut self,
        node: &Node,
        env: &Arc<SimEnvironment>,
        to: ActorNumber,
    ) -> Option<LocalBoxFuture<'static, ()>> {
        if self.desk.rng.chance(400) {
            self.tell(node, to);
            return None;
        }
        let timeout = self.desk.timeout(self.plan.calm);
        let ticket = self.sending(node, to, false);
        self.desk.world.record("ask", ticket, to.as_u64());
        let add = self.add(ticket, to);
        let call = Box::pin(ask(node, to, add, CallOptions::new().timeout(timeout.to_duration())));
        let (sent, grain, env) = (env.clock().now(), allowance(timeout, SWEEP), Arc::clone(env));
        let pending = Pending { ticket, call, timeout, cancel: None, sent, grain, env };
        let (truth, world) = (Arc::clone(&self.desk.truth), self.desk.world.clone());
        Some(Box::pin(async move {
            if let Ended::Answered(answer) = pending.wait(truth.ledger(), &world).await {
                truth.answered(ticket, &answer);
            }
        }))
    }

    fn tell(&mut self, node: &Node, to: ActorNumber) {
        let ticket = self.sending(node, to, true);
        self.desk.world.record("tell", ticket, to.as_u64());
        let add = Add { then: None, ..self.add(ticket, to) };
        let told = tell(node, to, add);
        self.desk.truth.reported(ticket, Reported::told(&told));
    }

    fn add(&mut self, ticket: u64, to: ActorNumber) -> Add {
        let rng = &mut self.desk.rng;
        let millis = match () {
            () if self.plan.long && rng.chance(100) => rng.below(600),
            () if self.plan.slow && rng.chance(300) => rng.below(40),
            () => 0,
        };
        // Always from the first kind to the second, so that nobody waits in a circle.
        let nested = self.plan.nested && to.kind == 0 && rng.chance(300);
        let then = nested.then(|| rng.below(self.plan.keys));
        Add { ticket, millis, then }
    }

    fn sending(&mut self, node: &Node, to: ActorNumber, tell: bool) -> u64 {
        let sender = Some(self.desk.sender(node));
        let more = self.desk.truth.sender_of_client(self.desk.index, node.id());
        self.desk.truth.ledger().sending(Letter { to, sender, tell, more })
    }
}
