//! A client on one node: sends in rounds, and has what every client has.

use std::sync::Arc;
use std::time::Duration;

use archipelago::Node;
use archipelago_backend_conformance::Rng;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;
use futures_util::future::{LocalBoxFuture, join_all};

use super::ledger::{ActorNumber, Ground};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::world::World;

/// One sender of messages.
pub(crate) trait Client {
    type Truth: Ground;

    fn desk(&mut self) -> &mut Desk<Self::Truth>;

    /// How long it waits before the next round.
    fn think(&mut self) -> Duration;

    /// Sends some messages; futures for those whose end is to be waited for.
    fn round(&mut self, node: &Node, env: &Arc<SimEnvironment>) -> Vec<LocalBoxFuture<'static, ()>>;
}

/// Sends until `end`, then waits for what is under way.
pub(crate) async fn send_rounds(mut client: impl Client, end: Duration) {
    while client.desk().goes_on(end) {
        TrueClock::sleep(client.think()).await;
        if let Some((node, env)) = client.desk().node() {
            join_all(client.round(&node, &env)).await;
        }
    }
}

/// What a client works with.
pub(crate) struct Desk<T> {
    /// Its node.
    pub(crate) index: usize,
    pub(crate) world: World,
    pub(crate) truth: Arc<T>,
    pub(crate) rng: Rng,
    /// As whom it sends in which life of its node: nothing is promised about the order between two lives.
    pub(crate) sender: Option<(NodeId, u64)>,
}

impl<T: Ground> Desk<T> {
    pub(crate) const fn new(index: usize, world: World, truth: Arc<T>, rng: Rng) -> Self {
        Self { index, world, truth, rng, sender: None }
    }

    fn goes_on(&self, end: Duration) -> bool {
        self.world.now() < end && !self.truth.ledger().judge().violated()
    }

    fn node(&self) -> Option<(Node, Arc<SimEnvironment>)> {
        Some((self.world.node(self.index)?, self.world.env(self.index)?))
    }

    /// As whom the client sends in this life of its node.
    pub(crate) fn sender(&mut self, node: &Node) -> u64 {
        match self.sender {
            Some((life, sender)) if life == node.id() => sender,
            _ => {
                let sender = self.truth.ledger().new_sender();
                self.sender = Some((node.id(), sender));
                sender
            }
        }
    }

    /// Some actor.
    pub(crate) fn actor(&mut self, kinds: usize, keys: u64) -> ActorNumber {
        ActorNumber { kind: self.rng.index(kinds), key: self.rng.below(keys) }
    }

    /// To whom the messages of one round go: one, or with `bursts` sometimes several, mostly to one actor, because that is
    /// where order shows.
    pub(crate) fn targets(&mut self, bursts: bool, most: u64, kinds: usize, keys: u64) -> Targets {
        let left = if bursts && self.rng.chance(250) { 2 + self.rng.below(most - 1) } else { 1 };
        let to = self.actor(kinds, keys);
        let one = self.rng.chance(700);
        Targets { left, fixed: one.then_some(to), kinds, keys }
    }

    /// How long a call may take.
    pub(crate) fn timeout(&mut self, calm: bool) -> Millis {
        match self.rng.below(3) {
            // Only the sum of many slow messages could take so long, if nothing is wrong.
            _ if calm => Millis(20_000),
            0 => Millis(2_000 + self.rng.below(6_000)),
            _ => Millis(100 + self.rng.below(1_000)),
        }
    }
}

/// The actors that one round goes to.
pub(crate) struct Targets {
    left: u64,
    fixed: Option<ActorNumber>,
    kinds: usize,
    keys: u64,
}

impl Targets {
    /// The next one, drawn when its message is about to be sent.
    pub(crate) fn next<T: Ground>(&mut self, desk: &mut Desk<T>) -> Option<ActorNumber> {
        self.left = self.left.checked_sub(1)?;
        Some(self.fixed.unwrap_or_else(|| desk.actor(self.kinds, self.keys)))
    }
}
