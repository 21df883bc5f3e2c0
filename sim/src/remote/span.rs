//! How long an activation, and a handler of it, really last, and where.

use std::sync::Arc;

use super::truth::{ActorNumber, Truth};
use crate::env::SimEnvironment;

/// One life of one node, as its actors know it.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) index: usize,
    pub(crate) env: Arc<SimEnvironment>,
}

/// The life of one activation: held by the instance and its detached handlers.
pub(crate) struct Span {
    truth: Arc<Truth>,
    actor: ActorNumber,
    life: u64,
    sender: u64,
    index: usize,
}

impl Span {
    pub(super) const fn new(
        truth: Arc<Truth>,
        actor: ActorNumber,
        life: u64,
        sender: u64,
        index: usize,
    ) -> Self {
        Self { truth, actor, life, sender, index }
    }

    pub(crate) const fn actor(&self) -> ActorNumber {
        self.actor
    }

    pub(crate) const fn life(&self) -> u64 {
        self.life
    }

    /// As whom the activation sends: it does one thing after the other.
    pub(crate) const fn sender(&self) -> u64 {
        self.sender
    }

    /// The node it is on.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    pub(crate) const fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.truth.activation_ended(self);
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
        self.span.truth.handler_ended(&self.span);
    }
}
