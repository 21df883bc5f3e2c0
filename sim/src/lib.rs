//! The deterministic simulator of archipelago: whole nodes with real actors under virtual time.
//!
//! A [`Simulation`] runs a script against nodes that live on one thread and on tokio's paused clock. Every
//! chance comes from its seed, so a run can be repeated exactly; an hour takes a second. The script crashes
//! nodes, pauses them, bends their clocks, and spoils their store and their network through a [`World`].
//!
//! Use it to test your own actors. The project's own workloads are run by [`Sweep`]: each seed draws which
//! families of faults and features take part, and the invariants are checked on ground truth that neither the
//! runtime nor the actors can see.
//!
//! What runs inside must not start threads, read real clocks, or iterate over `HashMap`s.

mod clock;
mod cluster;
mod env;
mod invariants;
mod meters;
#[cfg(feature = "mutants")]
mod mutants;
mod remote;
mod sometimes;
mod sweep;
mod switch;
mod trace;
mod workload;
mod world;

pub use archipelago_backend_conformance::{Faults, Rng};
pub use archipelago_memory::{DialAnswer, Link, NetworkSettings, Stats as NetworkStats};
pub use clock::TrueClock;
pub use cluster::run_cluster_seed;
pub use env::SimEnvironment;
pub use invariants::{Invariant, Violation};
#[cfg(feature = "mutants")]
pub use mutants::set_network_mutant;
pub use remote::run_remote_seed;
pub use sometimes::{CLUSTER_POINTS, POINTS, REMOTE_POINTS, is_point, note_point};
pub use sweep::{Sweep, Workload};
pub use workload::{Outcome, run_seed};
pub use world::{Run, Simulation, World, bind_of};
