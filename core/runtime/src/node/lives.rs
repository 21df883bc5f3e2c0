//! What the lives of one node have in common besides what it was built from: whether it is to stop, and how it ended.
//!
//! A [`NodeShared`] is one life of a node: one id, one session. After a lost session the keeper starts the next one and
//! hands the node over to it. Handles and refs hold on to the life they were made in and find the present one from there.
//!
//! Invariant: once a stop was asked for, there is no further life.

use std::sync::{Arc, OnceLock};

use archipelago_protocol::time::Millis;

use super::NodeShared;
use super::attached::Attached;
use crate::env::{Departure, Environment, Shown, within};

/// Shared by all lives of a node.
pub(crate) struct Lives {
    stop: Shown<bool>,
    /// Why the session was lost, if there is no further life.
    lost: Shown<Option<String>>,
    keeper: OnceLock<Departure>,
    /// A stop has been carried through.
    over: Shown<bool>,
    pub(super) attached: Attached,
}

impl Lives {
    pub(super) fn new() -> Self {
        let (stop, lost, over) = (Shown::new(false), Shown::new(None), Shown::new(false));
        Self { stop, lost, keeper: OnceLock::new(), over, attached: Attached::default() }
    }

    /// Lets no further life begin; false if that was asked for before.
    pub(super) fn begin_stop(&self) -> bool {
        self.stop.modify(|stop| !std::mem::replace(stop, true))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.read(|stop| *stop)
    }

    /// Waits until the node is to stop.
    pub(super) async fn stop_wanted(&self) {
        // It is shown as long as `self` is there.
        let _ = self.stop.follow().find(|stop| stop.then_some(())).await;
    }

    /// A stop has been carried through.
    pub(super) fn stop_is_over(&self) {
        self.over.set(true);
    }

    /// Waits until a stop has been carried through.
    pub(super) async fn stopped(&self) {
        // It is shown as long as `self` is there.
        let _ = self.over.follow().find(|over| over.then_some(())).await;
    }

    /// Makes `next` the present life; false if the node is to stop instead.
    pub(super) fn hand_over(&self, before: &NodeShared, next: &Arc<NodeShared>) -> bool {
        // Held meanwhile: a stop comes before and prevents it, or after and finds the next life.
        self.stop.read(|stop| !stop && before.successor.set(Arc::clone(next)).is_ok())
    }

    /// The session is lost, and there is no further life.
    pub(super) fn lost_for_good(&self, reason: String) {
        self.lost.set(Some(reason));
    }

    /// Waits until the session is lost for good, and says why.
    pub(super) async fn session_lost(&self) -> String {
        // It is shown as long as `self` is there, so there is always something to find.
        self.lost.follow().find(Clone::clone).await.unwrap_or_default()
    }

    pub(super) fn kept_until(&self, departure: Departure) {
        // There is one keeper.
        let _ = self.keeper.set(departure);
    }

    /// Waits until the keeper has ended, `limit` at most; false if that was too short.
    pub(super) async fn keeper_over(&self, env: &Arc<dyn Environment>, limit: Millis) -> bool {
        match self.keeper.get() {
            Some(keeper) => within(env, limit, keeper.complete()).await.is_some(),
            None => true,
        }
    }
}

impl NodeShared {
    /// The present life of the node: this one, or the last that came after it.
    pub(crate) fn present(self: &Arc<Self>) -> &Arc<Self> {
        let mut life = self;
        while let Some(next) = life.successor.get() {
            life = next;
        }
        life
    }

    /// Whether the node goes on in another life.
    #[inline]
    pub(crate) fn has_successor(&self) -> bool {
        self.successor.get().is_some()
    }
}
