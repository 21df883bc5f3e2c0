//! Setting a world up and running a script in it.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use archipelago_memory::NetworkSettings;
use archipelago_runtime::{NodeBuilder, NodeSettings};

use super::{Ground, Plan, World, bind_of};
use crate::env::SimEnvironment;

/// A world in the making. The same seed, nodes and script give the same run, down to the last step.
///
/// ```
/// use archipelago::prelude::*;
/// use archipelago_sim::Simulation;
///
/// #[remote(u32)]
/// struct Tick;
///
/// #[derive(Default, VirtualActor)]
/// #[virtual_actor(handles(Tick))]
/// struct Clock(u32);
/// impl Actor for Clock { type Context = Context<Self>; }
/// impl Handler<Tick> for Clock {
///     type Result = u32;
///     fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 { self.0 += 1; self.0 }
/// }
///
/// let run = Simulation::new(42).node(|builder| builder.actor::<Clock>()).run(async |world| {
///     let clock = world.node(0).unwrap().actor::<Clock>("tower");
///     assert_eq!(clock.send(Tick).await, Ok(1));
///     world.crash(0).await;
///     let node = world.restart(0).await.unwrap();
///     assert_eq!(node.actor::<Clock>("tower").send(Tick).await, Ok(1));
/// });
/// assert!(run.simulated.as_secs() >= 6, "the crashed node's session had to run out first");
/// ```
#[must_use = "a simulation does nothing until it is run"]
pub struct Simulation {
    seed: u64,
    pub(super) plans: Vec<Plan>,
    store: usize,
    pub(super) ground: Ground,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<T> {
    /// What the script answered.
    pub output: T,
    /// The hash of every recorded step.
    pub hash: u64,
    /// How many steps were recorded.
    pub steps: u64,
    /// How much virtual time passed.
    pub simulated: Duration,
}

impl Simulation {
    /// A world without nodes whose every chance comes from `seed`.
    pub const fn new(seed: u64) -> Self {
        let ground = Ground { network: None, wrong_locations: 0, oddities: 0, observed: true };
        Self { seed, plans: Vec::new(), store: 0, ground }
    }

    /// Gives the world a network: node `i` is its host `node-<i>`, and must be told so in its settings. See
    /// [`bind_of`](crate::bind_of).
    pub fn with_network(self) -> Self {
        self.with_network_of(NetworkSettings::default())
    }

    /// As [`with_network`](Self::with_network), with numbers of its own.
    pub fn with_network_of(mut self, settings: NetworkSettings) -> Self {
        self.ground.network = Some(settings);
        self
    }

    /// Makes nodes look for actors in the wrong place so many times in a thousand. Only with a network.
    pub const fn with_wrong_locations(mut self, per_mille: u32) -> Self {
        self.ground.wrong_locations = per_mille;
        self
    }

    /// Makes rare things that are allowed to happen do so, so many times in a thousand: answers of the store are lost, watches
    /// break, activations take long. See [`Oddity`](archipelago_runtime::env::Oddity).
    pub const fn with_oddities(mut self, per_mille: u32) -> Self {
        self.ground.oddities = per_mille;
        self
    }

    /// Leaves it to the nodes to end the sessions of those that fell silent. Otherwise somebody outside of them does.
    pub const fn without_observer(mut self) -> Self {
        self.ground.observed = false;
        self
    }

    /// Begins another datacenter: the nodes that are added from here on have a store of their own.
    pub const fn another_datacenter(mut self) -> Self {
        self.store += 1;
        self
    }

    /// Adds a node, which is started before the script begins. `build` is called for every life of it.
    pub fn node(self, build: impl Fn(NodeBuilder) -> NodeBuilder + 'static) -> Self {
        self.skewed_node(0, build)
    }

    /// Adds `count` nodes of one cluster, which talk to each other over the world's network and end the sessions of those that
    /// fall silent themselves. `settings` are those of each; where it listens is set by the world.
    pub fn nodes(
        mut self,
        count: usize,
        settings: &NodeSettings,
        build: impl Fn(NodeBuilder) -> NodeBuilder + 'static,
    ) -> Self {
        if self.ground.network.is_none() {
            self = self.with_network();
        }
        self.ground.observed = false;
        let build = Rc::new(build);
        for _ in 0..count {
            let (mut settings, build) = (settings.clone(), Rc::clone(&build));
            settings.remote.bind = bind_of(self.plans.len());
            self = self.node(move |builder| build(builder.settings(settings.clone())));
        }
        self
    }

    /// Adds a node whose clock gains `ppm` microseconds every true second.
    pub fn skewed_node(self, ppm: i32, build: impl Fn(NodeBuilder) -> NodeBuilder + 'static) -> Self {
        self.node_in(ppm, move |builder, _| build(builder))
    }

    /// Adds a node whose builder may know the environment of each of its lives.
    pub(crate) fn node_in(
        mut self,
        ppm: i32,
        build: impl Fn(NodeBuilder, &Arc<SimEnvironment>) -> NodeBuilder + 'static,
    ) -> Self {
        self.plans.push(Plan { build: Rc::new(build), ppm, store: self.store });
        self
    }

    /// Runs `script` to its end, in virtual time, on the present thread.
    ///
    /// # Panics
    ///
    /// If the script does, after naming the seed, or if a node cannot start at all.
    pub fn run<T>(self, script: impl AsyncFnOnce(World) -> T) -> Run<T> {
        let naming = NameSeed(self.seed);
        let system = actix_rt::System::with_tokio_rt(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime without threads and sockets needs nothing from the machine")
        });
        let run = system.block_on(async {
            let count = self.plans.len();
            let world = World::new(self.seed, self.plans, self.ground);
            for index in 0..count {
                world.start(index).await.expect("nothing is wrong with the store before the script begins");
            }
            let output = script(world.clone()).await;
            let (hash, steps) = world.trace(|trace| (trace.hash(), trace.steps()));
            Run { output, hash, steps, simulated: world.now() }
        });
        std::mem::forget(naming);
        run
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("seed", &self.seed).field("nodes", &self.plans.len()).finish()
    }
}

/// Says which seed a panic belongs to.
struct NameSeed(u64);

impl Drop for NameSeed {
    fn drop(&mut self) {
        eprintln!("the simulation with seed {0} failed; Simulation::new({0}) runs it again", self.0);
    }
}
