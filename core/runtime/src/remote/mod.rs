//! Layer 1: other nodes. Transports, peers, lanes, and the way of a message between nodes.
//!
//! Each arbiter has a [`SeatLocal`]: an endpoint of its own and a [`Lane`] per peer arbiter it talks to. A message is
//! written straight into its lane's buffer and read straight out of it on the other side; actors only open, close and
//! watch over the lanes.

mod connector;
mod control;
mod data;
mod drive;
mod envelope_in;
mod envelopes;
mod farewell;
mod handshake;
mod identity;
mod incoming;
mod inquiries;
mod keeper;
mod known_places;
mod lane;
mod large;
mod large_in;
mod large_room;
mod letter;
mod letter_out;
mod locator;
mod mark;
mod open_routes;
mod outbound;
mod peer;
mod peer_actor;
mod remoting;
mod requests;
mod returns;
mod roads;
mod room;
mod routes;
mod sealed;
mod seat;
mod settings;
mod transfers;
mod transport_actor;
mod unanswered;
mod waiter;
mod whereabouts;
mod window;
mod writer;

pub use connector::{AskError, Connector};
pub use control::Service;
pub(crate) use control::Services;
pub(crate) use data::{Arrived, DataSink, LaneWay, LargeArrived};
pub(crate) use drive::Violation;
pub use envelopes::{InboundMessage, MessageEnvelope, SendRemote, SubscribeInbound};
pub(crate) use incoming::{Held, Incoming};
pub use inquiries::Spawned;
#[cfg(feature = "corpus")]
pub(crate) use inquiries::readers;
pub(crate) use inquiries::{
    DATACENTERS, ask_about_move, ask_about_ranges, ask_about_watch, ask_contact, ask_for_tables,
    ask_to_place, say_to_cluster,
};
pub(crate) use keeper::open_control;
pub(crate) use letter::Letter;
pub use locator::{DirectoryLocator, Location, Locator, Place, StaticLocator};
pub(crate) use outbound::{EncodedOutbound, Origin, Parked, TypedOutbound};
pub(crate) use peer::Peer;
pub(crate) use remoting::Remoting;
pub(crate) use returns::Returns;
pub(crate) use roads::Roads;
pub(crate) use room::Room;
pub(crate) use routes::{Routes, Shard};
pub(crate) use seat::SeatLocal;
pub use settings::RemoteSettings;
pub(crate) use transfers::Transfers;
pub use transport_actor::TransportActor;
pub(crate) use unanswered::Unanswered;
pub(crate) use waiter::Waiter;
pub(crate) use whereabouts::{Owner, ShardPlace, Subject, WhereIs, Whereabouts, ask_where, where_is};

/// The longest frame that is read: a peer may be configured for longer ones than we are.
const fn longest_frame(settings: &RemoteSettings) -> usize {
    let own = if settings.frame > LONGEST_FRAME { settings.frame } else { LONGEST_FRAME };
    own + FRAME_HEAD
}

const LONGEST_FRAME: usize = 1 << 20;
const FRAME_HEAD: usize = 4 << 10;
