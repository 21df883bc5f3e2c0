//! How a shard moves from one node to another without losing, repeating or re-ordering a message.
//!
//! [`HostedShard`] is the shard at a node: it takes, keeps and gives back messages, and moves the shard, by consent of its
//! owner only, with one compare-and-swap. [`Coordinator`] asks for moves, as an [`AllocateShards`] says, and writes
//! nothing. [`HandoffFrame`] is what they tell each other. The sender's side is [`RouteEntry`](crate::route::RouteEntry).

mod allocate;
mod coordinator;
mod events;
mod frame;
mod hold;
mod host;
mod limits;
mod luggage;
mod parcel_room;
mod state;

pub use allocate::{
    AllocateShards, Allocations, Host, LeastShards, ShardMove, WeighLoad, of_the_newest, version_of,
};
pub use coordinator::{
    Coordinator, CoordinatorAction, CoordinatorEvent, CoordinatorLimits, Imbalance, ShardState,
};
pub use events::{
    DropReason, HandOffOutcome, HostAction, HostEvent, Job, Moment, Owned, RefuseReason, StayReason,
};
pub use frame::{HandoffFrame, HandoffFrameError, KindBalance, ShardName};
pub use host::HostedShard;
pub use limits::HandoffLimits;
pub use luggage::{CarriedState, StateBytes, pack, parcels, unpack};
pub use parcel_room::{ParcelRefused, ParcelRoom, Part, Received};
pub use state::{Assertion, Departure, Drain, HostState, Offered, Tenancy};
