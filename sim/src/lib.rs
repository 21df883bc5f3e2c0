//! The deterministic simulator of archipelago: whole nodes with real actors under virtual time.
//!
//! A [`Simulation`] runs a script against nodes that live on one thread and on tokio's paused clock. Every
//! chance comes from its seed, so a run can be repeated exactly; an hour takes a second. The script crashes
//! nodes, pauses them, bends their clocks and spoils their store through a [`World`].
//!
//! Use it to test your own actors. The project's own workloads are run by `sweep`: each seed draws which
//! families of faults and features take part, and the invariants are checked on ground truth that neither the
//! runtime nor the actors can see.
//!
//! What runs inside must not start threads, read real clocks, or iterate over `HashMap`s.

mod clock;
mod env;
mod meters;
mod switch;
mod trace;
mod world;

pub use archipelago_backend_conformance::{Faults, Rng};
pub use clock::TrueClock;
pub use env::SimEnvironment;
pub use world::{Run, Simulation, World};
