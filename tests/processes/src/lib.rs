//! Two processes on loopback: the test is one node, a host that it starts is the other.
//!
//! The host is a process of its own, so that it can be killed and frozen like a machine that fails.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "tests start processes and threads, the host says where it is, and strangers speak to ports by hand"
)]

mod actors;
mod allocations;
mod desk;
mod host;
mod member;
mod road;
mod stranger;

pub use actors::{
    Allocated, Echo, Forward, Left, LongNote, Mirror, Note, Notes, Ping, Scribe, Secret, Sleep,
};
pub use allocations::{ALLOCATOR, CountingAllocator, allocated};
pub use desk::{Block, Circle, Circler, Clerk, Desk, GoRound, Panic, PassOn};
pub use host::{Host, Orders, run_host};
pub use member::{MemberProcess, Sight, Visit, Visited, member, run_member};
pub use road::{Papers, Road, caller, node, node_over, settings};
pub use stranger::{CONTROL, DATA, Stranger, chunk, data_port, greet, hello};
