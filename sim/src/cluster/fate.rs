//! What happens to the nodes, the ways between them and their store while the clients send.

use std::time::Duration;

use archipelago::Node;
use archipelago_backend_conformance::Faults;
use archipelago_protocol::identity::OwnedKey;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use archipelago_runtime::ClusterMember;

use super::eyes::meet;
use super::plan::Plan;
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{Ground, Hand, StoreTrouble, TTL, switched_on};
use crate::invariants::Invariant;
use crate::sometimes;

/// Fate in one run.
pub(crate) struct Fate {
    pub(crate) plan: Plan,
    pub(crate) hand: Hand<Truth>,
    /// Until when each node stays down, if it is.
    pub(crate) down_until: Vec<Duration>,
}

#[derive(Clone, Copy)]
enum Blow {
    Leave,
    Crash,
    Pause,
    Partition,
    OneWay,
    Isolate,
    Split,
    Reset,
    Store,
    Move,
    SlowLinks,
    Kill,
    Dials,
    KillInBetween,
    Rate,
    Expiry,
}

impl Fate {
    /// Deals blows until `end`.
    pub(crate) async fn run(mut self, end: Duration) -> Self {
        let blows = self.blows();
        while let Some((blow, a, b)) = self.hand.next_blow(&blows, (100, 3_000), end).await {
            self.deal(blow, a, b).await;
            self.mend().await;
        }
        self
    }

    async fn deal(&mut self, blow: Blow, a: usize, b: usize) {
        match blow {
            Blow::Leave if self.hand.rng.chance(250) => self.leave(&[a, b]).await,
            Blow::Leave => self.leave(&[a]).await,
            Blow::Crash if self.plan.store_faults && self.hand.rng.chance(400) => {
                self.crash_before_a_slow_store(a).await;
            }
            Blow::Crash => self.crash(a).await,
            Blow::Pause => self.pause(a).await,
            Blow::Partition | Blow::OneWay => {
                self.hand.cut(a, b, matches!(blow, Blow::Partition));
                // Shorter than the silence that ends a connection, or long enough for others to act upon it.
                let length = self.hand.spell(self.plan.silence, 400, 9_000);
                self.hand.for_a_while(a, b, length, 500).await;
            }
            Blow::Isolate => {
                sometimes!("node isolated under load");
                self.set_apart(&[a]).await;
            }
            Blow::Split => {
                sometimes!("group split off under load");
                let others = (0..self.plan.nodes).filter(|node| *node != a && *node != b);
                let side: Vec<usize> = others.filter(|_| self.hand.rng.chance(400)).chain([a]).collect();
                self.set_apart(&side).await;
            }
            Blow::Reset => self.hand.world.reset_connections(a),
            Blow::Store if self.hand.rng.chance(300) => self.slow_and_then_no_store().await,
            Blow::Store => {
                self.hand.spoil_store(StoreTrouble { reads: true, length: (300, 3_500) }).await;
            }
            Blow::Move => self.move_shards(a, b).await,
            Blow::SlowLinks => self.slow(a, b).await,
            Blow::Kill => {
                let bytes = self.hand.rng.below(3_000);
                self.hand.world.kill_connections_after(a, b, bytes);
            }
            Blow::Dials => {
                sometimes!("dials failed under load");
                let silence = self.plan.silence;
                self.hand.spoil_dials(a, |hand| hand.spell(silence, 500, 3_000)).await;
            }
            Blow::KillInBetween if self.hand.rng.chance(500) => self.kill_as_it_leaves(a).await,
            Blow::KillInBetween => self.kill_at_its_start(a).await,
            Blow::Rate => self.bend_clock(a),
            Blow::Expiry => self.expire(a).await,
        }
    }

    /// Nothing passes between these nodes and all others; the store is there for both sides. Mostly for long enough that they
    /// decide which side goes on.
    async fn set_apart(&mut self, side: &[usize]) {
        let others = |a: usize| (0..self.plan.nodes).filter(|b| !side.contains(b)).map(move |b| (a, b));
        let ways: Vec<(usize, usize)> = side.iter().flat_map(|a| others(*a)).collect();
        ways.iter().for_each(|(a, b)| self.hand.cut(*a, *b, true));
        let length = self.hand.spell(self.plan.silence, 200, 14_000);
        let world = self.hand.world.clone();
        let heal = async move {
            TrueClock::sleep(length).await;
            ways.iter().for_each(|(a, b)| world.heal(*a, *b));
        };
        if self.hand.rng.chance(300) {
            self.hand.world.spawn(heal);
        } else {
            heal.await;
        }
    }

    /// The answers to beats come late, and then none: deadlines count from when a beat was sent.
    async fn slow_and_then_no_store(&mut self) {
        sometimes!("store slow and then away");
        let slow = Faults { max_delay: Millis(500), ..Faults::default() };
        self.hand.with_store(slow, (1_500, 1_500)).await;
        let away = Faults { unavailable: 1_000, ..Faults::default() };
        self.hand.with_store(away, (TTL.0, 1_000)).await;
    }

    /// What a dead node had is cleared away and claimed while each step takes its time.
    async fn crash_before_a_slow_store(&mut self, index: usize) {
        self.crash(index).await;
        let slow = Faults { max_delay: Millis(600), ..Faults::default() };
        self.hand.with_store(slow, (times::observer_wait(TTL).0 + 2_000, 2_000)).await;
    }

    /// The ways between two nodes become slow, each in its own manner.
    async fn slow(&mut self, a: usize, b: usize) {
        sometimes!("ways slow under load");
        self.hand.slow(a, b);
        self.hand.slow(b, a);
        let length = self.hand.spell(self.plan.silence, 300, 9_000);
        self.hand.for_a_while(a, b, length, 500).await;
    }

    /// The clock of a node changes its rate, within what is allowed.
    fn bend_clock(&mut self, index: usize) {
        sometimes!("clock changed its rate");
        let ppm = [0, 15_000, -15_000, 4_000, -4_000][self.hand.rng.index(5)];
        self.hand.world.skew(index, ppm);
    }

    /// The store loses the lease of a node that is well. Nobody may take that for its end. The others have met the node before:
    /// a lease that nobody has ever seen is missed by nobody.
    async fn expire(&mut self, index: usize) {
        if self.is_known_to_all(index) && self.hand.world.expire_lease(index).await {
            sometimes!("live lease lost by the store");
            // Until its next beat the node cannot know.
            TrueClock::sleep(TTL.to_duration() / 3).await;
        }
    }

    /// Ends everything that is wrong: all ways are open, all nodes are up and serve.
    pub(crate) async fn make_well(&mut self) {
        self.hand.heal_everything();
        self.down_until.fill(Duration::ZERO);
        self.mend().await;
        // A session may have been beyond help already when the store came back.
        TrueClock::sleep(TTL.to_duration()).await;
        self.mend().await;
    }

    fn blows(&self) -> Vec<Blow> {
        let plan = &self.plan;
        let moves = (0..plan.moves).map(|_| Blow::Move);
        let others = switched_on(&[
            (plan.leaves, Blow::Leave),
            (plan.crashes, Blow::Crash),
            (plan.pauses, Blow::Pause),
            (plan.partitions, Blow::Partition),
            (plan.one_way, Blow::OneWay),
            (plan.isolates, Blow::Isolate),
            (plan.splits, Blow::Split),
            (plan.resets, Blow::Reset),
            (plan.store_faults, Blow::Store),
            (plan.slow_links, Blow::SlowLinks),
            (plan.kills, Blow::Kill),
            (plan.dials, Blow::Dials),
            (plan.kills_in_between, Blow::KillInBetween),
            (plan.rates, Blow::Rate),
            (plan.expiries, Blow::Expiry),
        ]);
        others.into_iter().chain(moves).collect()
    }

    /// Some nodes leave at once, in good order, and stay away for a while. Somebody must stay to take over.
    async fn leave(&mut self, nodes: &[usize]) {
        let up = (0..self.plan.nodes).filter(|index| self.hand.world.node(*index).is_some()).count();
        let nodes = &nodes[..nodes.len().min(up.saturating_sub(1))];
        let leaving = nodes.iter().map(|index| self.leave_one(*index));
        futures_util::future::join_all(leaving.collect::<Vec<_>>()).await;
        for index in nodes {
            self.stays_down(*index);
        }
    }

    async fn leave_one(&self, index: usize) {
        let (Some(life), Some(env)) = (self.hand.life(index), self.hand.world.env(index)) else { return };
        self.hand.truth.leaves(life);
        let returned = || env.switch().meters().counter("archipelago_messages_returned_total");
        let before = returned();
        let stopped = self.hand.world.stop(index).await;
        if self.plan.calm {
            self.hand.truth.ledger().check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
                format!("nothing is wrong, but node {index} left with {stopped:?}")
            });
        }
        if stopped.is_ok() {
            sometimes!("node left under load");
        }
        if returned() > before {
            sometimes!("message returned by a leaving node");
        }
        self.hand.is_gone(index, life);
    }

    pub(super) async fn crash(&mut self, index: usize) {
        let Some(life) = self.hand.life(index) else { return };
        if self.coordinates(index).await {
            sometimes!("coordinator crashed");
        }
        self.hand.truth.crashes(life);
        self.hand.crash(index).await;
        self.stays_down(index);
    }

    /// Whether the node has the duty to keep the shards in balance, as the store says.
    async fn coordinates(&self, index: usize) -> bool {
        let duty = OwnedKey::role("shard-coordinator").expect("a plain name");
        let owner = self.hand.world.owner_of(0, &duty).await;
        owner.is_some() && owner == self.hand.world.node(index).map(|node| node.id())
    }

    /// Whether there are others, and all of them see the node up and answering.
    fn is_known_to_all(&self, index: usize) -> bool {
        let world = &self.hand.world;
        let Some(id) = world.node(index).map(|node| node.id()) else { return false };
        let is_well = |member: &ClusterMember| {
            member.info.id == id && member.status == MemberStatus::Up && !member.suspect
        };
        let others = (0..self.plan.nodes).filter(|other| *other != index);
        let others: Vec<Node> = others.filter_map(|other| world.node(other)).collect();
        !others.is_empty() && others.iter().all(|other| other.members().iter().any(is_well))
    }

    /// A node that leaves is killed before it has.
    async fn kill_as_it_leaves(&mut self, index: usize) {
        let Some(life) = self.hand.life(index) else { return };
        self.hand.truth.leaves(life);
        self.hand.truth.crashes(life);
        let length = Duration::from_millis(self.hand.rng.below(400));
        if self.hand.world.stop_and_kill(index, length).await {
            sometimes!("node killed as it left");
        }
        self.hand.is_gone(index, life);
        self.stays_down(index);
    }

    /// A node is killed, and then in the middle of its next start as well.
    async fn kill_at_its_start(&mut self, index: usize) {
        self.crash(index).await;
        if self.hand.world.node(index).is_some() {
            return;
        }
        // A slow store makes the start take some time.
        self.hand.world.store_faults(Faults { max_delay: Millis(250), ..Faults::default() });
        let length = Duration::from_millis(self.hand.rng.below(600));
        match self.hand.world.start_and_kill(index, length).await {
            Some(Ok(node)) => meet(&self.hand.world, &self.hand.truth, index, &node),
            Some(Err(_)) => {}
            None => sometimes!("node killed at its start"),
        }
        self.hand.world.store_faults(Faults::default());
    }

    /// Back before its old session has ended, or after.
    fn stays_down(&mut self, index: usize) {
        let millis = if self.hand.rng.chance(500) {
            self.hand.rng.below(1_500)
        } else {
            3_000 + self.hand.rng.below(5_000)
        };
        self.down_until[index] = self.hand.world.now() + Duration::from_millis(millis);
    }

    /// Shorter than the session, or longer.
    async fn pause(&mut self, index: usize) {
        let Some(node) = self.hand.world.node(index) else { return };
        if self.hand.rng.chance(250) {
            return self.replace(index).await;
        }
        let length = Duration::from_millis(self.hand.rng.below(7_000));
        self.hand.pause(index, length).await;
        if node.serving_for() == Millis::ZERO {
            sometimes!("node woke up after its session");
        }
    }

    /// Another life of a node begins while the last one stands still; that one wakes up later, without a network.
    async fn replace(&mut self, index: usize) {
        let (Some(life), Some(env)) = (self.hand.life(index), self.hand.world.env(index)) else { return };
        let length = Duration::from_millis(9_000 + self.hand.rng.below(4_000));
        self.hand.world.pause(index, length);
        self.hand.truth.crashes(life);
        TrueClock::sleep(Duration::from_millis(self.hand.rng.below(6_000))).await;
        self.restart(index).await;
        self.hand.world.spawn(async move {
            TrueClock::sleep(length + ZOMBIE_LIVES).await;
            env.switch().crash();
        });
    }

    /// Gets nodes that can serve no longer out of the way, and those up again whose time has come.
    async fn mend(&mut self) {
        for index in 0..self.plan.nodes {
            if let Some(node) = self.hand.world.node(index) {
                let serves = node.serving_for() > Millis::ZERO;
                self.hand.truth.check_session(index, serves);
                if serves {
                    continue;
                }
                sometimes!("session lost under load");
                self.hand.truth.crashes(self.hand.truth.ledger().lives().number(node.id()));
                self.hand.remove(index).await;
            }
            if self.hand.world.now() >= self.down_until[index] {
                self.restart(index).await;
            }
        }
    }

    async fn restart(&self, index: usize) {
        let node = self.hand.restart(index, true).await;
        meet(&self.hand.world, &self.hand.truth, index, &node);
    }
}

/// How long after its awakening somebody ends a life that was replaced.
const ZOMBIE_LIVES: Duration = Duration::from_secs(2);
