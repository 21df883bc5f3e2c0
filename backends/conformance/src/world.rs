//! A small world: real session machines and the real directory above a store where everything goes wrong.
//!
//! Two or three nodes open sessions, claim, release, hand over and lose two keys, on clocks that run at different
//! rates, while replies get lost, writes land late, nodes pause and crash, and leases vanish. After every step the
//! [`check`] looks at the ground truth; afterwards the faults stop and every key must be served again. All choices come
//! from one seed; a failure names it. The inner store must answer at once, as stores in memory do.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipelago_directory::{Read, Store, StoreDirectory, Write, lease_id};
use archipelago_protocol::contract::Directory;
use archipelago_protocol::identity::{Kind, NodeId, OwnedKey};
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use futures_util::FutureExt;

use crate::{Faults, FaultyStore, ManualTimer, Rng};

mod check;
mod keys;
mod node;
mod task;

use check::Checker;
use node::Node;
use task::Task;

/// What may go wrong in a world.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many nodes.
    pub nodes: usize,
    /// How many steps until the faults stop.
    pub steps: u32,
    /// The store's faults.
    pub faults: Faults,
    /// Whether nodes pause.
    pub pauses: bool,
    /// Whether nodes crash.
    pub crashes: bool,
    /// Whether the engine deletes leases.
    pub engine_deletes: bool,
    /// Whether sessions are revoked.
    pub revokes: bool,
}

impl Plan {
    /// Draws a plan; each seed leaves whole families of faults out.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let mut some = |per_mille: u32| if rng.chance(600) { per_mille } else { 0 };
        let faults = Faults {
            unavailable: some(60),
            lost_reply: some(100),
            late: some(100),
            stale: some(60),
            watch_break: some(60),
            max_delay: Millis(u64::from(some(400))),
        };
        let (pauses, crashes) = (rng.chance(600), rng.chance(500));
        let (engine_deletes, revokes) = (rng.chance(400), rng.chance(400));
        Self { nodes: 2 + rng.index(2), steps: 3_000, faults, pauses, crashes, engine_deletes, revokes }
    }
}

/// What happened in a world; a sweep checks that its worlds were not idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Claims whose answer opened a gate.
    pub granted: u32,
    /// Claims placed whose session no longer granted them.
    pub refused_grants: u32,
    /// Keys taken from a session that had ended.
    pub takeovers: u32,
    /// Sessions lost.
    pub lost: u32,
    /// Sessions ended by an observer.
    pub ended: u32,
    /// Keys handed over.
    pub transfers: u32,
    /// Keys reasserted after an unanswered hand-over.
    pub reasserted: u32,
    /// Writes applied late.
    pub late: u32,
    /// Instants at which a gate was open and was checked.
    pub checked: u32,
}

/// The world of one seed.
pub struct World {
    seed: u64,
    plan: Plan,
    rng: Rng,
    timer: ManualTimer,
    now: Millis,
    /// The ground truth.
    store: Arc<dyn Store>,
    faulty: Arc<FaultyStore>,
    directory: Arc<dyn Directory>,
    nodes: Vec<Node>,
    tasks: Vec<Task>,
    keys: Vec<OwnedKey>,
    /// Who was last granted each key, for the summary.
    last_owner: BTreeMap<OwnedKey, NodeId>,
    checker: Checker,
    summary: Summary,
}

impl World {
    /// The world of `seed` above `store`, which is empty.
    pub fn new(seed: u64, plan: Plan, store: Arc<dyn Store>) -> Self {
        let timer = ManualTimer::default();
        let inner = Arc::clone(&store);
        let faulty = Arc::new(FaultyStore::new(inner, Arc::new(timer.clone()), seed ^ 0xfa17, plan.faults));
        let above: Arc<dyn Store> = Arc::<FaultyStore>::clone(&faulty);
        let directory: Arc<dyn Directory> = Arc::new(StoreDirectory::new(above, Arc::new(timer.clone())));
        let kind = Kind::new("Account").expect("valid");
        let mut rng = Rng::new(seed);
        let nodes = (0..plan.nodes).map(|_| Node::draw(&mut rng)).collect();
        Self {
            seed,
            plan,
            rng,
            timer,
            now: Millis::ZERO,
            checker: Checker::new(seed, Arc::clone(&store)),
            store,
            faulty,
            directory,
            nodes,
            tasks: Vec::new(),
            keys: (0..2).map(|n| OwnedKey::shard(kind.clone(), n)).collect(),
            last_owner: BTreeMap::new(),
            summary: Summary::default(),
        }
    }

    /// Runs the world, then lets it heal.
    ///
    /// # Panics
    ///
    /// If a rule of the session protocol does not hold; the message names the rule and the seed.
    pub fn run(mut self) -> Summary {
        for _ in 0..self.plan.steps {
            self.step();
            self.check();
        }
        self.heal();
        self.summary
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..45 => self.poll_task(),
            45..70 => self.advance(150),
            70..78 => self.poll_watch(),
            78..84 => self.deliver_mail(),
            84..92 => self.want(),
            92..96 => self.apply_late(),
            _ => self.go_wrong(),
        }
    }

    fn check(&mut self) {
        self.summary.checked += self.checker.check(self.now, &self.nodes);
    }

    fn advance(&mut self, most: u64) {
        let length = Millis(1 + self.rng.below(most));
        self.now = self.now + length;
        self.timer.advance(length);
        for n in 0..self.nodes.len() {
            if !self.nodes[n].is_paused(self.now) && self.rng.chance(800) {
                self.wake(n);
            }
        }
    }

    fn poll_task(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let n = self.rng.index(self.tasks.len());
        if let Some(answer) = self.tasks[n].poll() {
            let task = self.tasks.swap_remove(n);
            self.nodes[task.node].mail.push_back((task.session, answer));
            self.deliver_to(task.node);
        }
    }

    /// Somebody stops waiting for an answer: the request is dropped, but what is on its way may still arrive.
    fn give_up(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let n = self.rng.index(self.tasks.len());
        let task = self.tasks.swap_remove(n);
        self.nodes[task.node].mail.push_back((task.session, task.unanswered));
    }

    fn deliver_mail(&mut self) {
        let n = self.rng.index(self.nodes.len());
        self.deliver_to(n);
    }

    fn deliver_to(&mut self, n: usize) {
        if self.nodes[n].is_paused(self.now) {
            return;
        }
        if let Some((session, answer)) = self.nodes[n].mail.pop_front() {
            self.take(n, session, answer);
        }
    }

    fn apply_late(&mut self) {
        if self.faulty.apply_late().now_or_never().expect("the inner store answers at once") {
            self.summary.late += 1;
        }
    }

    fn go_wrong(&mut self) {
        let n = self.rng.index(self.nodes.len());
        match self.rng.below(12) {
            0 if self.plan.pauses => {
                let until = self.now + Millis(self.rng.below(12_000));
                self.nodes[n].paused_until = until;
            }
            1 if self.plan.crashes => self.crash(n),
            2 if self.plan.engine_deletes => self.expire(n),
            3 if self.plan.revokes => self.revoke(n),
            4 => self.close(n),
            5..8 => self.give_up(),
            _ => {}
        }
    }

    /// The engine deletes a lease, for no good reason.
    fn expire(&mut self, n: usize) {
        let Some(session) = self.nodes[n].session() else { return };
        let id = lease_id(session.id);
        let read = self.store.get(&id, Read::Any).now_or_never().expect("answers at once").expect("reads");
        if let Some(record) = read {
            let delete = self.store.cas(&id, record.expect(), Write::Delete, None);
            delete.now_or_never().expect("answers at once").expect("deletes");
        }
    }

    /// All faults stop: within a few W every key must be served again, by whoever lives.
    fn heal(&mut self) {
        self.plan =
            Plan { pauses: false, crashes: false, engine_deletes: false, revokes: false, ..self.plan };
        self.faulty.set_faults(Faults::default());
        self.nodes.iter_mut().for_each(|node| node.paused_until = Millis::ZERO);
        self.faulty.flush_late().now_or_never().expect("the inner store answers at once");
        let deadline = self.now + Millis(4 * times::observer_wait(node::TTL).0);
        while !self
            .keys
            .iter()
            .all(|key| self.nodes.iter().any(|node| node.gate_open(self.now, key).is_some()))
        {
            assert!(self.now < deadline, "seed {}: P5 never_stuck: a key is served by nobody", self.seed);
            self.calm_step();
            self.check();
        }
    }

    fn calm_step(&mut self) {
        match self.rng.below(100) {
            0..50 => self.poll_task(),
            50..70 => self.advance(50),
            70..80 => self.poll_watch(),
            80..90 => self.deliver_mail(),
            _ => self.want_calmly(),
        }
    }
}
