//! The requests to services of this node that are under way, so that one whose sender has gone ends at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::peer::ConnectionId;
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

/// The requests under way, by connection and call. As many as the lanes let in.
#[derive(Clone, Default)]
pub(super) struct Requests(Rc<RefCell<UnderWay>>);

type UnderWay = BTreeMap<(ConnectionId, CorrelationId), oneshot::Sender<()>>;

impl Requests {
    /// Waits for `work`, which is dropped when the request is cancelled; `None` then.
    pub(super) async fn unless_cancelled<T>(
        &self,
        connection: ConnectionId,
        call: CorrelationId,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let (cancel, cancelled) = oneshot::channel();
        self.0.borrow_mut().insert((connection, call), cancel);
        let done = match select(pin!(work), cancelled).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        };
        self.0.borrow_mut().remove(&(connection, call));
        done
    }

    /// The sender of a request waits no longer.
    pub(super) fn cancel(&self, connection: ConnectionId, call: CorrelationId) {
        self.0.borrow_mut().remove(&(connection, call));
    }

    /// A connection is gone, and nobody hears the answers to what came by it.
    pub(super) fn connection_lost(&self, lost: ConnectionId) {
        self.0.borrow_mut().retain(|(connection, _), _| *connection != lost);
    }
}
