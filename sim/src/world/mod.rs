//! A simulated world: nodes, a store, one clock, and the hands on all of them.

mod beats;
mod datacenters;
mod eyes;
mod kills;
mod lies;
mod network;
mod simulation;
mod stores;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::{Faults, Rng};
use archipelago_directory::StoredTables;
use archipelago_memory::NetworkSettings;
use archipelago_protocol::contract::Directory;
use archipelago_protocol::identity::{NodeId, OwnedKey};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{ArbiterRole, Environment};
use archipelago_runtime::{Node, NodeBuilder, StartError};

pub(crate) use beats::Beats;
pub use datacenters::SimControlPlane;
use lies::WrongLocator;
use network::Network;
pub use network::bind_of;
pub(crate) use network::fixed_bind_of;
pub use simulation::{Run, Simulation};
use stores::Stores;

use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::trace::Trace;

/// The handle a simulation's script acts through. Cheap to clone; clones are the same world.
///
/// Nodes are numbered from 0 in the order in which [`Simulation::node`] added them.
#[derive(Clone)]
pub struct World {
    inner: Rc<Inner>,
}

struct Inner {
    truth: TrueClock,
    rng: RefCell<Rng>,
    trace: RefCell<Trace>,
    /// One per datacenter.
    stores: Vec<Rc<Stores>>,
    nodes: RefCell<Vec<SimNode>>,
    /// How many lives nodes have had, over the whole world.
    lives: Cell<u64>,
    network: Option<Network>,
    wrong_locations: u32,
    oddities: u32,
}

type Build = Rc<dyn Fn(NodeBuilder, &Arc<SimEnvironment>) -> NodeBuilder>;

/// A node as the script describes it.
struct Plan {
    build: Build,
    ppm: i32,
    /// Which store it has: that of its datacenter.
    store: usize,
}

/// What a world has besides its nodes.
#[derive(Clone, Debug)]
struct Ground {
    network: Option<NetworkSettings>,
    wrong_locations: u32,
    /// How many times in a thousand something odd happens where it may.
    oddities: u32,
    /// Somebody outside of the nodes ends silent sessions.
    observed: bool,
}

struct SimNode {
    build: Build,
    ppm: i32,
    store: usize,
    current: Option<Life>,
    /// The session of the last life, until it is known to have ended.
    last: Option<NodeId>,
}

#[derive(Clone)]
struct Life {
    node: Node,
    env: Arc<SimEnvironment>,
}

impl World {
    fn new(seed: u64, plans: Vec<Plan>, ground: Ground) -> Self {
        let truth = TrueClock::start();
        let mut rng = Rng::new(seed);
        let count = plans.iter().map(|plan| plan.store + 1).max().unwrap_or(1);
        let beats = Arc::new(Beats::default());
        let stores: Vec<_> = (0..count).map(|_| Rc::new(Stores::new(truth, Arc::clone(&beats)))).collect();
        let observers: Vec<_> = stores.iter().map(|store| Rc::clone(store).observe()).collect();
        let late = |store: &Rc<Stores>| Rc::clone(store).let_late_writes_through(Rng::new(rng.bits()));
        let late: Vec<_> = stores.iter().map(late).collect();
        let nodes = plans.into_iter().map(|Plan { build, ppm, store }| SimNode {
            build,
            ppm,
            store,
            current: None,
            last: None,
        });
        let nodes = RefCell::new(nodes.collect());
        let (rng, trace, lives) = (RefCell::new(rng), RefCell::new(Trace::new()), Cell::new(0));
        let network = ground.network.map(|settings| Network::new(settings, seed, truth));
        let (wrong_locations, oddities) = (ground.wrong_locations, ground.oddities);
        let inner = Inner { truth, rng, trace, stores, nodes, lives, network, wrong_locations, oddities };
        let world = Self { inner: Rc::new(inner) };
        late.into_iter().for_each(|late| world.spawn(late));
        if ground.observed {
            observers.into_iter().for_each(|observer| world.spawn(observer));
        }
        world
    }

    // ---- nodes ----

    /// How many nodes the world has, up or down.
    pub fn node_count(&self) -> usize {
        self.inner.nodes.borrow().len()
    }

    /// The node, if it is up.
    pub fn node(&self, index: usize) -> Option<Node> {
        self.life(index).map(|life| life.node)
    }

    /// Kills a node: everything that runs on it is dropped, its session is left to run out.
    pub async fn crash(&self, index: usize) {
        let Some(life) = self.take(index) else { return };
        self.record("crash", index as u64, 0);
        self.kill(index, &life.env).await;
    }

    /// Holds a node still for `length`, without waiting for the end of it: nothing on it runs, its clock goes on.
    /// By chance it is the process or the whole machine that stands still.
    pub fn pause(&self, index: usize, length: Duration) {
        let Some(life) = self.life(index) else { return };
        self.record("pause", index as u64, u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        life.env.switch().pause();
        self.on_network(|network| network.freeze(index));
        let (world, suspend) = (self.clone(), self.chance(500));
        let stood_still = if suspend { Millis::from_duration(length) } else { Millis::ZERO };
        self.spawn(async move {
            world.advance(length).await;
            world.record("resume", index as u64, 0);
            // A zombie has lost its place in the network to the life after it.
            if world.env(index).is_some_and(|env| Arc::ptr_eq(&env, &life.env)) {
                world.on_network(|network| network.thaw(index));
            }
            life.env.resume(stood_still);
        });
    }

    /// Blocks the thread of an arbiter, as a handler does that does not return, or lets it go on.
    pub fn block_arbiter(&self, index: usize, role: ArbiterRole, blocked: bool) {
        self.record("block", index as u64, u64::from(blocked));
        if let Some(life) = self.life(index) {
            life.env.switch().block(role, blocked);
        }
    }

    /// Whether the process of a node has ended itself.
    pub fn has_aborted(&self, index: usize) -> bool {
        self.life(index).is_some_and(|life| life.env.has_aborted())
    }

    /// Stops a node in an orderly way.
    ///
    /// # Errors
    ///
    /// As [`Node::stop`]; the node is gone all the same.
    pub async fn stop(&self, index: usize) -> Result<(), archipelago_runtime::StopError> {
        let Some(life) = self.take(index) else { return Ok(()) };
        self.record("stop", index as u64, 0);
        let stopped = life.node.stop().await;
        self.record("stopped", index as u64, u64::from(stopped.is_err()));
        stopped
    }

    /// Whether nothing runs on a node: neither what it was started with nor what it began later.
    pub fn is_quiet(&self, index: usize) -> bool {
        self.life(index).is_none_or(|life| life.env.switch().is_empty())
    }

    /// Starts a node anew, after its last session has ended. A life that is merely paused is left to wake up later,
    /// as a zombie.
    ///
    /// # Errors
    ///
    /// As [`NodeBuilder::start`].
    ///
    /// # Panics
    ///
    /// If the node is up and not paused.
    pub async fn restart(&self, index: usize) -> Result<Node, StartError> {
        self.abandon(index);
        let last = self.inner.nodes.borrow()[index].last;
        if let Some(last) = last {
            self.store_of(index).ended(last).await;
        }
        self.start(index).await
    }

    /// As [`restart`](Self::restart), but at once: the last session may be open still.
    ///
    /// # Errors
    ///
    /// As [`NodeBuilder::start`].
    ///
    /// # Panics
    ///
    /// If the node is up and not paused.
    pub async fn restart_at_once(&self, index: usize) -> Result<Node, StartError> {
        self.abandon(index);
        self.start(index).await
    }

    /// Leaves a paused life to itself.
    fn abandon(&self, index: usize) {
        if let Some(life) = self.take(index) {
            assert!(life.env.switch().is_paused(), "node {index} is up: crash, stop or pause it first");
            self.on_network(|network| network.crash(index));
        }
    }

    /// Makes the clock of a node gain `ppm` microseconds every true second (lose them, if negative), from its next
    /// timer on.
    pub fn skew(&self, index: usize, ppm: i32) {
        self.inner.nodes.borrow_mut()[index].ppm = ppm;
        if let Some(life) = self.life(index) {
            life.env.clock().set_rate(ppm);
        }
    }

    /// Sets the wall clock of a node forward, or lets it seem so: as if the whole machine had been stopped for `length`, and
    /// the node's own clock with it.
    pub fn set_wall_forward(&self, index: usize, length: Duration) {
        self.record("wall", index as u64, u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        if let Some(life) = self.life(index) {
            life.env.set_wall_forward(Millis::from_duration(length));
        }
    }

    async fn start(&self, index: usize) -> Result<Node, StartError> {
        let (env, starting) = self.beginning(index);
        let started = starting.await;
        self.begun(index, env, started)
    }

    /// A new life of a node that has not begun, and its start.
    fn beginning(
        &self,
        index: usize,
    ) -> (Arc<SimEnvironment>, impl Future<Output = Result<Node, StartError>> + use<>) {
        let (build, ppm) = {
            let nodes = self.inner.nodes.borrow();
            (Rc::clone(&nodes[index].build), nodes[index].ppm)
        };
        let transport = self.inner.network.as_ref().map(|network| network.transport(index));
        let env = SimEnvironment::new(self.inner.truth, ppm, self.random()).with_transport(transport);
        let env = Arc::new(env.with_oddities(self.inner.oddities));
        let way = self.store_of(index).way(&env, self.random());
        self.inner.lives.set(self.inner.lives.get() + 1);
        self.record("start", index as u64, self.inner.lives.get());
        let tables = Arc::new(StoredTables::new(Arc::clone(&way.tables)));
        let builder = self.builder(index, &env, way.directory).state_store(way.states);
        let builder = builder.tables(tables).routing_table(way.tables);
        let starting = build(builder, &env).start();
        (env, starting)
    }

    /// The start of a node has come to its end.
    fn begun(
        &self,
        index: usize,
        env: Arc<SimEnvironment>,
        started: Result<Node, StartError>,
    ) -> Result<Node, StartError> {
        self.record("started", index as u64, u64::from(started.is_ok()));
        let node = match started {
            Ok(node) => node,
            Err(error) => {
                // The process ends with its start; without a network there is nothing of it that others could meet.
                if self.on_network(|network| network.crash(index)).is_some() {
                    env.switch().crash();
                }
                return Err(error);
            }
        };
        let slot = &mut self.inner.nodes.borrow_mut()[index];
        slot.last = Some(node.id());
        slot.current = Some(Life { node: node.clone(), env });
        Ok(node)
    }

    fn builder(&self, index: usize, env: &Arc<SimEnvironment>, directory: Arc<dyn Directory>) -> NodeBuilder {
        let shared: Arc<dyn Environment> = Arc::clone(env) as Arc<dyn Environment>;
        let builder = NodeBuilder::new(shared, Arc::clone(&directory));
        match self.inner.wrong_locations {
            0 => builder,
            per_mille => {
                builder.locator(Arc::new(WrongLocator::new(directory, index, per_mille, self.random())))
            }
        }
    }

    fn store_of(&self, index: usize) -> Rc<Stores> {
        Rc::clone(&self.inner.stores[self.inner.nodes.borrow()[index].store])
    }

    fn life(&self, index: usize) -> Option<Life> {
        self.inner.nodes.borrow()[index].current.clone()
    }

    fn take(&self, index: usize) -> Option<Life> {
        let slot = &mut self.inner.nodes.borrow_mut()[index];
        let life = slot.current.take()?;
        // It may have rejoined since it was started.
        slot.last = Some(life.node.id());
        Some(life)
    }

    // ---- time and chance ----

    /// Lets `length` of virtual time pass.
    pub async fn advance(&self, length: Duration) {
        TrueClock::sleep(length).await;
    }

    /// True time since the simulation began.
    pub fn now(&self) -> Duration {
        self.inner.truth.elapsed()
    }

    /// The time on the clock of a node that is up.
    pub fn clock_of(&self, index: usize) -> Option<Millis> {
        self.life(index).map(|life| life.env.clock().now())
    }

    /// 64 random bits.
    pub fn random(&self) -> u64 {
        self.inner.rng.borrow_mut().bits()
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.inner.rng.borrow_mut().below(bound)
    }

    /// Whether something happens that does so `per_mille` times in a thousand.
    pub fn chance(&self, per_mille: u32) -> bool {
        self.inner.rng.borrow_mut().chance(per_mille)
    }

    /// Runs a task of the script beside the present one.
    #[expect(clippy::disallowed_methods, reason = "tasks of the script belong to no node")]
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        tokio::task::spawn_local(task);
    }

    // ---- the store ----

    /// Sets what goes wrong between the nodes and the store from now on.
    pub fn store_faults(&self, faults: Faults) {
        self.record("store faults", u64::from(faults.unavailable), u64::from(faults.lost_reply));
        self.inner.stores.iter().for_each(|store| store.set_faults(faults));
    }

    /// Removes the lease of a node's session from the store, as an engine does whose clock jumps; whether there was one.
    pub async fn expire_lease(&self, index: usize) -> bool {
        let Some(node) = self.node(index) else { return false };
        self.record("expire", index as u64, 0);
        self.store_of(index).expire(node.id()).await
    }

    /// Whether the store of a node has the lease of this session, live or ended.
    pub async fn knows_session(&self, index: usize, session: NodeId) -> bool {
        self.store_of(index).knows(session).await
    }

    /// Who owns a key, as the store of a node has it.
    pub async fn owner_of(&self, index: usize, key: &OwnedKey) -> Option<NodeId> {
        self.store_of(index).owner(key).await
    }

    // ---- the trace ----

    /// Makes a step of the script part of the trace: `what`, and two numbers about it.
    pub fn record(&self, what: &'static str, a: u64, b: u64) {
        let now = self.now();
        tracing::debug!(a, b, "{what}");
        self.inner.trace.borrow_mut().record(now, what, a, b);
    }

    pub(crate) fn trace<T>(&self, look: impl FnOnce(&Trace) -> T) -> T {
        look(&self.inner.trace.borrow())
    }

    // ---- ground truth ----

    /// What a node that is up has counted by the counters of this name, added up; nothing of one that is not.
    pub fn counter(&self, index: usize, name: &str) -> u64 {
        self.life(index).map_or(0, |life| life.env.switch().meters().counter(name))
    }

    /// The same of those counters that have this label.
    pub fn labelled(&self, index: usize, name: &str, label: (&str, &str)) -> u64 {
        self.life(index).map_or(0, |life| life.env.switch().meters().labelled(name, label))
    }

    /// What a node that is up shows by the gauges of this name, added up; nothing of one that is not.
    pub fn gauge(&self, index: usize, name: &str) -> f64 {
        self.life(index).map_or(0.0, |life| life.env.switch().meters().gauge(name))
    }

    pub(crate) fn env(&self, index: usize) -> Option<Arc<SimEnvironment>> {
        self.life(index).map(|life| life.env)
    }

    pub(crate) fn true_clock(&self) -> TrueClock {
        self.inner.truth
    }

    pub(crate) fn beats(&self) -> &Arc<Beats> {
        self.inner.stores[0].beats()
    }

    pub(crate) fn late_writes_applied(&self) -> u64 {
        self.inner.stores.iter().map(|store| store.late_applied()).sum()
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now()).finish_non_exhaustive()
    }
}
