//! The deterministic simulator of archipelago: whole nodes with real actors under virtual time.
//!
//! A [`Simulation`] runs a script against nodes that live on one thread and on tokio's paused clock. Every
//! chance comes from its seed, so a run can be repeated exactly; an hour takes a second. The script crashes
//! nodes, pauses them, bends their clocks, and spoils their store and their network through a [`World`].
//!
//! Use it to test your own actors: three nodes, a fault, an assertion of your own, several seeds.
//!
//! ```
//! use std::time::Duration;
//!
//! use archipelago::prelude::*;
//! use archipelago_runtime::NodeSettings;
//! use archipelago_sim::{Simulation, for_each_seed};
//!
//! #[remote(u32)]
//! struct Tick;
//!
//! #[derive(Default, VirtualActor)]
//! #[virtual_actor(handles(Tick))]
//! struct Clock(u32);
//! impl Actor for Clock { type Context = Context<Self>; }
//! impl Handler<Tick> for Clock {
//!     type Result = u32;
//!     fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 { self.0 += 1; self.0 }
//! }
//!
//! for_each_seed(1..=3, |seed| {
//!     let cluster = Simulation::new(seed).nodes(3, &NodeSettings::default(), |node| node.actor::<Clock>());
//!     cluster.run(async |world| {
//!         world.advance(Duration::from_secs(5)).await;
//!         world.crash(1 + world.below(2) as usize).await;
//!         // Its session has ended by then.
//!         world.advance(Duration::from_secs(30)).await;
//!         let clock = world.node(0).unwrap().actor::<Clock>("tower");
//!         assert_eq!(clock.send(Tick).await.unwrap(), 1, "the others go on");
//!     });
//! });
//! ```
//!
//! A test whose seeds never meet what they are about proves nothing. [`for_each_seed_reaching`] fails if none of them
//! came to a place that the test names; scripts and actors note places with [`sometimes!`]:
//!
//! ```
//! use archipelago_sim::{Simulation, for_each_seed_reaching, sometimes};
//!
//! const PLACES: [&str; 2] = ["the long way", "the short way"];
//!
//! for_each_seed_reaching(1..=20, &PLACES, |seed| {
//!     Simulation::new(seed).run(async |world| {
//!         if world.chance(300) { sometimes!(PLACES, "the long way") } else { sometimes!(PLACES, "the short way") }
//!     });
//! });
//! ```
//!
//! The project's own workloads are run by [`Sweep`]: each seed draws which
//! families of faults and features take part, and the invariants are checked on ground truth that neither the
//! runtime nor the actors can see.
//!
//! What runs inside must not start threads, read real clocks, or iterate over `HashMap`s.

mod clock;
mod cluster;
mod common;
mod datacenters;
mod env;
mod invariants;
mod local;
mod meters;
#[cfg(feature = "mutants")]
mod mutants;
mod remote;
mod seeds;
mod sometimes;
mod sweep;
mod switch;
mod trace;
mod world;

pub use archipelago_backend_conformance::{Faults, Rng};
pub use archipelago_memory::{DialAnswer, Link, NetworkSettings, Stats as NetworkStats};
pub use clock::TrueClock;
pub use cluster::{run_cluster_seed, run_handoff_seed};
pub use common::Outcome;
pub use datacenters::run_datacenters_seed;
pub use env::SimEnvironment;
pub use invariants::{Invariant, Violation};
pub use local::run_seed;
#[cfg(feature = "mutants")]
pub use mutants::set_network_mutant;
pub use remote::run_remote_seed;
pub use seeds::{for_each_seed, for_each_seed_reaching};
pub use sometimes::{
    CLUSTER_POINTS, DATACENTER_POINTS, HANDOFF_POINTS, POINTS, REMOTE_POINTS, is_listed, is_point, note_point,
};
pub use sweep::{Sweep, Workload};
pub use world::{Run, SimControlPlane, Simulation, World, bind_of};
