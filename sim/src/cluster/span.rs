//! How long an activation, and a handler of it, really last, and where.

use std::sync::Arc;

use archipelago_directory::RecordId;
use archipelago_protocol::identity::NodeId;

use super::truth::{ActorNumber, Truth};
use crate::env::SimEnvironment;

/// One life of one node, as its actors know it.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) index: usize,
    pub(crate) env: Arc<SimEnvironment>,
}

/// Which activation of which actor in which life of which node.
pub(crate) struct Whereabouts {
    pub(crate) actor: ActorNumber,
    /// The number of the activation, over all actors.
    pub(crate) activation: u64,
    pub(crate) life: u64,
    pub(crate) node: NodeId,
    /// As whom the activation sends: it does one thing after the other.
    pub(crate) sender: u64,
    /// The place of the node in the world.
    pub(crate) index: usize,
    /// The record that says who owns the actor.
    pub(crate) record: RecordId,
}

/// The life of one activation: held by the instance and its handlers.
pub(crate) struct Span {
    truth: Arc<Truth>,
    at: Whereabouts,
}

impl Span {
    pub(super) const fn new(truth: Arc<Truth>, at: Whereabouts) -> Self {
        Self { truth, at }
    }

    pub(crate) const fn at(&self) -> &Whereabouts {
        &self.at
    }

    pub(crate) const fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.truth.activation_ended(&self.at);
    }
}

/// A handler that has begun and not ended.
pub(crate) struct Running {
    span: Arc<Span>,
}

impl Running {
    pub(super) const fn new(span: Arc<Span>) -> Self {
        Self { span }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.span.truth.handler_ended(&self.span.at);
    }
}
