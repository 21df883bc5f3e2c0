//! What users see of the library, file by file. One program, so that it is linked once.

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod clients;
mod crowd;
mod ends;
mod lifecycle;
mod moves;
mod named;
mod node_life;
mod plugged;
mod ranges;
mod refs;
mod rejoin;
mod scenarios;
mod served;
mod sharding;
mod state;
mod two_datacenters;
mod watch;
