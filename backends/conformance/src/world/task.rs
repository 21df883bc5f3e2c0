//! A request under way, and what comes back.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use archipelago_protocol::contract::{OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{NodeId, OwnedKey};
use archipelago_protocol::session::{HolderEvent, ObserverEvent};

/// What comes back to a node.
pub(super) enum Answer {
    Holder(HolderEvent),
    Observer(ObserverEvent),
    Claimed {
        key: OwnedKey,
        decision: Option<PlacementDecision>,
    },
    /// A release or a hand-over; `refused` = certainly not applied.
    GivenAway {
        record: OwnerRecord,
        refused: bool,
        answered: bool,
    },
    Reasserted {
        key: OwnedKey,
        record: Option<OwnerRecord>,
    },
    Nothing,
}

pub(super) struct Task {
    pub(super) node: usize,
    /// The session under which the request was sent.
    pub(super) session: NodeId,
    future: Pin<Box<dyn Future<Output = Answer> + Send>>,
    /// What the node is told if it stops waiting.
    pub(super) unanswered: Answer,
}

impl Task {
    pub(super) fn new(
        node: usize,
        session: NodeId,
        unanswered: Answer,
        future: impl Future<Output = Answer> + Send + 'static,
    ) -> Self {
        Self { node, session, future: Box::pin(future), unanswered }
    }

    /// Goes one step; the answer once there is one.
    pub(super) fn poll(&mut self) -> Option<Answer> {
        let mut context = Context::from_waker(Waker::noop());
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}
