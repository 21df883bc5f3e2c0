//! The command itself: the real program against real nodes, against servers that misbehave, and on set-ups that are broken.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a program"
)]

mod acts;
mod bad_servers;
mod broken;
mod certificates;
mod configuration;
mod following;
mod reads;
mod refusals;
mod support;
