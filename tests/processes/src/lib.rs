//! Nodes in processes of their own, so that they can be killed, frozen and cut off like machines that fail.
//!
//! A [`Host`] is the other side of a test of two nodes. A [`Fleet`] is a cluster on a real [`Store`]: its members write down
//! what they do, and the [`oracle`] judges it. A [`DataCenter`] is one of several clusters.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "tests start processes and threads, the host says where it is, and strangers speak to ports by hand"
)]

mod abroad;
mod account;
mod actors;
mod allocations;
mod bell;
mod callers;
mod clocks;
mod datacenter;
mod desk;
mod events;
mod fleet;
mod gateway;
mod host;
mod journal;
mod load;
mod member;
mod network;
pub mod oracle;
mod own_machine;
mod registry;
mod road;
mod store;
mod stranger;
mod vault;

pub use abroad::{Heard, Report, VISIT_LIMIT};
pub use account::{Account, Post, State, Stated, Visit, Visited};

pub use actors::{
    Allocated, Echo, Forward, Left, LongNote, Mirror, Note, Notes, Ping, Scribe, Secret, Sleep,
};
pub use allocations::{ALLOCATOR, CountingAllocator, allocated};
pub use bell::{Bell, Obstruct, Ring, RingCount};
pub use callers::{Callers, Island, home_of};
pub use clocks::WrongClocks;
pub use datacenter::{DataCenter, LEASE, plain_settings, settings_of, until};
pub use desk::{Block, Circle, Circler, Clerk, Desk, GoRound, Panic, PassOn};
pub use events::event;
pub use fleet::Fleet;
pub use gateway::Gateway;
pub use host::{Host, Orders, run_host};
pub use journal::{Deed, Journals, Mark, Stamp, machine_nanos};
pub use load::{ACCOUNTS, Book, CALL_LIMIT, Calls, Load};
pub use member::{MemberProcess, Settings, member, run_member};
pub use network::{Cable, Network};
pub use own_machine::{MachineWatch, on_own_machine};
pub use registry::Followed;
pub use road::{Papers, Road, caller, client, node, node_over, settings};
pub use store::{Scale, Store, figure};
pub use stranger::{CONTROL, DATA, Stranger, chunk, data_port, greet, greet_in_words, hello, knock};
