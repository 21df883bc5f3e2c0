//! The requests to services of this node that are under way, so that one whose sender has gone ends at once.
//!
//! [`Request`] stands for one of them from the moment it came: it is known by its connection and call, and so is its weight.
//!
//! Invariant: what is under way is at most `MOST` requests and `MOST_BYTES` bytes of each connection, but for one that is heavier alone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::peer::ConnectionId;
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

/// The requests under way, by connection and call.
#[derive(Clone, Default)]
pub(super) struct Requests(Rc<RefCell<UnderWay>>);

#[derive(Default)]
struct UnderWay {
    cancels: BTreeMap<(ConnectionId, CorrelationId), oneshot::Sender<()>>,
    /// How many requests of a connection are under way, and how many bytes these are.
    loads: BTreeMap<ConnectionId, (usize, usize)>,
}

/// A request under way.
pub(super) struct Request {
    of: Requests,
    connection: ConnectionId,
    call: CorrelationId,
    bytes: usize,
    cancelled: oneshot::Receiver<()>,
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotLetIn {
    /// Another one of the connection has its number, which no honest peer gives twice.
    SameNumber,
    /// There are too many already; the bound.
    TooMany(usize),
    /// They have too many bytes; the bound.
    TooHeavy(usize),
}

impl Requests {
    /// A request of so many bytes has come.
    ///
    /// # Errors
    ///
    /// It is not let in.
    pub(super) fn begin(
        &self,
        connection: ConnectionId,
        call: CorrelationId,
        bytes: usize,
    ) -> Result<Request, NotLetIn> {
        let mut under_way = self.0.borrow_mut();
        if under_way.cancels.contains_key(&(connection, call)) {
            return Err(NotLetIn::SameNumber);
        }
        let load = under_way.loads.entry(connection).or_default();
        match *load {
            (count, _) if count >= MOST => return Err(NotLetIn::TooMany(MOST)),
            (count, held) if count > 0 && held + bytes > MOST_BYTES => {
                return Err(NotLetIn::TooHeavy(MOST_BYTES));
            }
            (count, held) => *load = (count + 1, held + bytes),
        }
        let (cancel, cancelled) = oneshot::channel();
        under_way.cancels.insert((connection, call), cancel);
        Ok(Request { of: self.clone(), connection, call, bytes, cancelled })
    }

    /// The sender of a request waits no longer.
    pub(super) fn cancel(&self, connection: ConnectionId, call: CorrelationId) {
        if let Some(cancel) = self.0.borrow_mut().cancels.remove(&(connection, call)) {
            drop(cancel);
        }
    }

    /// A connection is gone, and nobody hears the answers to what came by it.
    pub(super) fn connection_lost(&self, lost: ConnectionId) {
        self.0.borrow_mut().cancels.retain(|(connection, _), _| *connection != lost);
    }
}

impl Request {
    /// Waits for `work`, which is dropped when the request is cancelled; `None` then.
    pub(super) async fn unless_cancelled<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), &mut self.cancelled).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut under_way = self.of.0.borrow_mut();
        // The number of one that was cancelled may have been given anew.
        self.cancelled.close();
        let of_this = |cancel: &oneshot::Sender<()>| cancel.is_closed();
        if under_way.cancels.get(&(self.connection, self.call)).is_some_and(of_this) {
            under_way.cancels.remove(&(self.connection, self.call));
        }
        if let Some((count, held)) = under_way.loads.get_mut(&self.connection) {
            (*count, *held) = (count.saturating_sub(1), held.saturating_sub(self.bytes));
            if *count == 0 {
                under_way.loads.remove(&self.connection);
            }
        }
    }
}

/// One for every shard of a few hundred kinds.
const MOST: usize = 65_536;
/// Far more than what one lane may hold before it leaves.
const MOST_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnectionId = ConnectionId(1);

    fn call(slot: u32) -> CorrelationId {
        CorrelationId::new(0, slot, 0)
    }

    #[test]
    fn a_number_that_is_under_way_is_not_given_again() {
        let requests = Requests::default();
        let first = requests.begin(ONE, call(1), 10).unwrap();
        assert_eq!(requests.begin(ONE, call(1), 10).err(), Some(NotLetIn::SameNumber));
        assert!(requests.begin(ConnectionId(2), call(1), 10).is_ok(), "of another connection");
        drop(first);
        assert!(requests.begin(ONE, call(1), 10).is_ok());
    }

    #[test]
    fn the_end_of_a_cancelled_request_leaves_the_next_one_of_its_number_alone() {
        let requests = Requests::default();
        let first = requests.begin(ONE, call(1), 10).unwrap();
        requests.cancel(ONE, call(1));
        let mut second = requests.begin(ONE, call(1), 10).unwrap();
        drop(first);
        assert_eq!(requests.begin(ONE, call(1), 10).err(), Some(NotLetIn::SameNumber));
        assert!(second.cancelled.try_recv() == Err(oneshot::error::TryRecvError::Empty), "it goes on");
    }

    #[test]
    fn requests_are_weighed_and_one_alone_may_have_any_weight() {
        let requests = Requests::default();
        let heavy = requests.begin(ONE, call(1), 2 * MOST_BYTES).unwrap();
        assert_eq!(requests.begin(ONE, call(2), 1).err(), Some(NotLetIn::TooHeavy(MOST_BYTES)));
        drop(heavy);
        let half = requests.begin(ONE, call(1), MOST_BYTES / 2).unwrap();
        let rest = requests.begin(ONE, call(2), MOST_BYTES / 2).unwrap();
        assert_eq!(requests.begin(ONE, call(3), 1).err(), Some(NotLetIn::TooHeavy(MOST_BYTES)));
        requests.connection_lost(ONE);
        drop((half, rest));
        assert!(requests.0.borrow().loads.is_empty() && requests.0.borrow().cancels.is_empty());
    }
}
