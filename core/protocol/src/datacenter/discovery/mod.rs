//! Finding out which datacenter has something: an actor that is active, or a name that is taken.
//!
//! [`Discovery`] decides whom to ask, when to ask a second endpoint, when to stop, and what to remember. It asks one
//! endpoint of each datacenter at the same time; the first that has it is the answer, whatever the slowest does. It never
//! sees the message itself: what is asked is where to send it.

mod breaker;
mod cache;
mod events;
mod flight;
mod machine;
mod trips;

pub use events::{
    AskId, Discovered, DiscoveryAction, DiscoveryEvent, DiscoverySettings, FarAnswer, OnSilence, OnStale,
    SeekerId,
};
pub use machine::Discovery;
