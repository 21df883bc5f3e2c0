//! The actix side of archipelago: catalog, inbox, call path and the actors around them.
//!
//! A [`Node`] hosts virtual actors. A message sent through an [`ActorRef`] goes straight into the inbox of its
//! actor, which is activated first if need be; no other actor stands in between. Everything that is decided on
//! the way is decided by machines of `archipelago-protocol`.

mod activation;
mod arbiter;
mod call;
mod catalog;
mod client;
mod cluster;
#[cfg(feature = "corpus")]
#[doc(hidden)]
pub mod corpus;
mod datacenter;
mod described;
pub mod env;
mod events;
mod inspect;
mod message;
mod meters;
mod mutants;
mod named;
mod node;
mod payload;
mod placement;
mod ranges;
mod refs;
mod remote;
mod role;
mod session;
mod settings;
mod sharding;
mod state;
mod tables;
mod watch;

pub use activation::Activation;
pub use call::{Call, CallOptions, InCall, TraceBridge, current_trace, in_call, remaining};
pub use catalog::{Factory, MessageTable};
pub use cluster::ClusterMember;
pub use datacenter::{DataCenterSettings, Gateways, PlaceError, PlacedActor, Reach};
pub use described::{METRICS, Metric, MetricKind, describe_metrics};
pub use events::{DeadLetter, Event, EventStream, Notice, RemoteDeadLetter, Subscription};
pub use inspect::{
    ActorCursor, ActorPage, ActorQuery, ActorView, BadCursor, Gathered, KeptLetter, KindView, LaneView,
    MESSAGE_BOUNDS, MessageView, MoveView, NoSuchPlace, OwnerView, PeerView, SessionStanding, SessionView,
    Suspicion, Whereabouts,
};
pub use message::{AcceptedBy, BoxError, Lifecycle, NamedActor, RemoteMessage, VirtualActor};
#[doc(hidden)]
pub use message::{Dispatch, Dispatched, ViaHandler};
#[cfg(feature = "mutants")]
pub use mutants::{Mutant, set_mutant};
#[doc(hidden)]
pub use named::NamedJob;
pub use named::{NameError, NamedRef, NamedTable};
pub use node::{Node, NodeBuilder, StartError, StopError};
pub use placement::Rebalance;
pub use ranges::RangeError;
pub use refs::{ActorRef, MessageRef, UntypedRef};
pub use remote::{
    AskError, Connector, DirectoryLocator, InboundMessage, Location, Locator, MessageEnvelope, Place,
    RemoteSettings, SendRemote, Service, Spawned, StaticLocator, SubscribeInbound, TransportActor,
};
pub use settings::{CacheSettings, NodeSettings, ShardingSettings};
pub use sharding::{ShardEnvelope, ShardRegion, Sharding};
pub use state::{Migrate, Migration, Persistence, Persistent, Saving, StateError};
pub use watch::Watch;
