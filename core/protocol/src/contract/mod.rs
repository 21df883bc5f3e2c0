//! The contracts between archipelago and the world: what a backend promises, and how it fails.
//!
//! Every rule of a contract has a name, and the conformance test that proves it bears the same name.

mod control_plane;
mod decision;
mod directory;
mod epoch;
mod error;
mod homes;
mod routing_table;
mod state_store;
mod transport;
mod watch;

pub use control_plane::{ControlPlane, ControlPlaneError, DataCenterEvent, DataCenterWatch};
pub use decision::{Move, OwnerRecord, PlacementDecision};
pub use directory::{Directory, Listing, PlacementScope};
pub use epoch::Epoch;
pub use error::{BoxError, DirectoryError};
pub use homes::{HomeStamp, Homes, SettledHome};
pub use routing_table::{
    RecordVersion, RoutingTable, RoutingTableError, SavedTable, TableVersion, TableWatch,
};
pub use state_store::{Schema, StateStore, StateStoreError, StoredState};
pub use transport::{
    CloseCode, CloseReason, Connection, Endpoint, PeerIdentity, RecvStream, SendStream, Streams, Transport,
    TransportError,
};
pub use watch::{Entry, EntryId, Revision, WatchEvent, WatchScope, WatchStream};
