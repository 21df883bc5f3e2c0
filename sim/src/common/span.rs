//! How long an activation, and a handler of it, really last, and where.

use std::sync::Arc;

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;

use super::ledger::{ActorNumber, Ground};
use crate::env::SimEnvironment;

/// One life of one node, as its actors know it.
#[derive(Clone)]
pub(crate) struct Home {
    /// The place of the node in the world.
    pub(crate) index: usize,
    pub(crate) env: Arc<SimEnvironment>,
}

/// Which activation of which actor in which life of which node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) actor: ActorNumber,
    /// The number of the activation, over all actors.
    pub(crate) activation: u64,
    pub(crate) life: u64,
    pub(crate) node: NodeId,
    /// As whom the activation sends: it does one thing after the other.
    pub(crate) sender: u64,
    /// The place of the node in the world.
    pub(crate) index: usize,
}

/// The life of one activation: held by the instance, its detached handlers and its farewell.
pub(crate) struct Span<T: Ground> {
    truth: Arc<T>,
    at: Place,
}

impl<T: Ground> Span<T> {
    pub(crate) fn new(truth: &Arc<T>, at: Place) -> Arc<Self> {
        Arc::new(Self { truth: Arc::clone(truth), at })
    }

    pub(crate) const fn at(&self) -> &Place {
        &self.at
    }

    pub(crate) const fn truth(&self) -> &Arc<T> {
        &self.truth
    }

    /// User code goes on after a wait.
    pub(crate) fn goes_on(&self) {
        self.truth.ledger().goes_on(self.at.life);
    }

    /// The time on the clock of its node.
    pub(crate) fn now(&self) -> Millis {
        let env = self.truth.ledger().lives().env(self.at.life);
        env.map_or(Millis::ZERO, |env| env.clock().now())
    }
}

impl<T: Ground> Drop for Span<T> {
    fn drop(&mut self) {
        self.truth.ledger().activation_ended(&self.at);
    }
}

/// A handler that has begun and not ended.
pub(crate) struct Running<T: Ground> {
    span: Arc<Span<T>>,
}

impl<T: Ground> Running<T> {
    pub(crate) fn new(span: &Arc<Span<T>>) -> Self {
        Self { span: Arc::clone(span) }
    }
}

impl<T: Ground> Drop for Running<T> {
    fn drop(&mut self) {
        self.span.truth.ledger().handler_ended(&self.span.at);
    }
}
