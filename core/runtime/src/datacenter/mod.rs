//! Other datacenters: which there are, who speaks for ours, where actors live, and how a message gets there.
//!
//! [`DataCenterController`] follows the control plane and feeds [`Maps`]. A message to a virtual actor asks [`Abroad`] where its
//! actor lives. What is not known is looked for by [`locate`], at home first and then through [`Searches`] in the other
//! datacenters. From there on it takes the usual way: a route to a shard, which may be one of another datacenter, a lane
//! straight to the owner, and the same rules of order.

mod abroad;
mod ask;
mod controller;
mod describe;
mod leaving;
mod locate;
mod maps;
mod named;
mod placing;
mod reach;
mod round_trips;
mod searches;
mod settings;
mod waiting;
mod words;

use std::sync::Arc;

use actix::Actor;

pub(crate) use abroad::Abroad;
pub(crate) use ask::seek_abroad;
pub(crate) use controller::DataCenterController;
pub(crate) use leaving::{leaving, left};
pub(crate) use maps::Maps;
pub use placing::{PlaceError, PlacedActor};
pub use reach::Reach;
pub(crate) use round_trips::RoundTrips;
pub(crate) use searches::Searches;
pub use settings::{DataCenterSettings, Gateways};
pub(crate) use words::answer;
#[cfg(feature = "corpus")]
pub(crate) use words::readers;

use crate::node::NodeShared;

/// Starts the controller of a node that has a control plane, and what measures distances, if there is a way to other nodes. Call it on
/// the control arbiter.
pub(crate) fn start(node: &Arc<NodeShared>) {
    if node.remoting().transport().is_none() {
        return;
    }
    round_trips::start(node);
    let plane = node.control_plane();
    if let Some(plane) = plane.cloned() {
        node.has_controller(DataCenterController::new(Arc::clone(node), plane).start());
    }
}
