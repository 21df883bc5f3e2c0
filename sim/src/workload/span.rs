//! How long an activation, and a handler of it, really last.

use std::sync::Arc;

use archipelago_protocol::time::Millis;

use super::truth::Truth;

/// The life of one activation: held by the instance, its detached handlers and its farewell.
pub(crate) struct Span {
    truth: Arc<Truth>,
    key: u64,
    life: u64,
}

impl Span {
    /// The activation of actor `key` in this life of the node.
    pub(super) const fn new(truth: Arc<Truth>, key: u64, life: u64) -> Self {
        Self { truth, key, life }
    }

    pub(crate) const fn key(&self) -> u64 {
        self.key
    }

    pub(crate) const fn life(&self) -> u64 {
        self.life
    }

    pub(crate) const fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }

    /// The time on the clock of its node.
    pub(crate) fn now(&self) -> Millis {
        self.truth.lives().env(self.life).map_or(Millis::ZERO, |env| env.clock().now())
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
