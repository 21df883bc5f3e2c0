//! A simulated network for archipelago: delay, loss, partitions, all seeded.
//!
//! A [`MemoryNetwork`] is shared by all nodes of a simulation. Its connections are reliable and ordered as those of TCP and
//! QUIC are, on top of a network that delays, loses, cuts and forgets. Everything that happens follows from the settings,
//! the seed and the order of the calls: time comes from a [`Timer`], random numbers from one generator, and nothing runs
//! in the background. Who waits for bytes or for an end waits with a timer of its own, so a node that is not polled holds
//! up nobody, and a node that is dropped leaves no task behind.
//!
//! Keep-alives are not sent but reckoned: a side hears from the other as long as that one lives, is not frozen and the way
//! is open. Once it hears nothing for the silence limit, its end of the connection is lost.

mod channel;
mod connection;
mod dial;
mod endpoint;
mod faults;
mod mutants;
mod network;
mod rng;
mod settings;
mod state;
mod stranger;
mod timer;
mod wait;

pub use mutants::Mutant;
pub use network::{MemoryCable, MemoryNetwork};
pub use settings::{DialAnswer, Link, NetworkSettings};
pub use state::Stats;
pub use stranger::MuteClient;
pub use timer::{Timer, TokioTimer};
