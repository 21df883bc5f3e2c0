//! The Store waist, and Directory, RoutingTable, ControlPlane, StateStore and Homes written once above it.
//!
//! A backend implements [`Store`], a compare-and-swap over single records. [`StoreDirectory`], [`StoreRoutingTable`],
//! [`StoreControlPlane`], [`StoreStateStore`] and [`StoreHomes`] make a
//! [`Directory`](archipelago_protocol::contract::Directory), a
//! [`RoutingTable`](archipelago_protocol::contract::RoutingTable), a
//! [`ControlPlane`](archipelago_protocol::contract::ControlPlane), a
//! [`StateStore`](archipelago_protocol::contract::StateStore) and [`Homes`](archipelago_protocol::contract::Homes) of
//! any such store, so that every engine has the same semantics. Asynchronous but without a runtime: time comes from a [`Timer`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod carry_out;
mod control_plane;
mod directory;
mod homes;
mod layouts;
mod leases;
mod mutants;
mod owners;
mod partitions;
mod record;
mod routing_table;
mod state_store;
mod store;
mod table_source;
mod timer;
mod value;
mod watch;

pub use carry_out::{carry_out_holder, carry_out_observer, carry_out_open};
pub use control_plane::{ControlPlaneConfig, StoreControlPlane, data_center_id};
pub use directory::StoreDirectory;
pub use homes::{StoreHomes, home_id};
#[cfg(feature = "mutants")]
pub use mutants::{Mutant, set_mutant};
pub use record::{Expect, Guard, Position, Record, RecordId, Seen, Space, Version, Write};
pub use routing_table::{StoreRoutingTable, table_id};
pub use state_store::{StoreStateStore, state_id};
pub use store::{CasAnswer, Change, Read, Records, Store, StoreError, StoreWatch};
pub use table_source::StoredTables;
pub use timer::{Sleep, Timer};
pub use value::{OwnerValue, kind_id, lease_id, node_record_id, owner_id};
