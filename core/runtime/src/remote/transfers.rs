//! Large messages under way, and the messages that wait behind them.
//!
//! While a large message travels on a stream of its own, later messages of this arbiter to the same actor wait, so that
//! order is kept (`large_keeps_order`).
//!
//! Invariant: a message is kept as long as its [`Transfer`], and no longer.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use archipelago_protocol::time::Millis;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::outbound::Parked;
use super::routes::Shard;
use crate::catalog::Target;

/// The large messages that one arbiter is sending.
#[derive(Default)]
pub(crate) struct Transfers {
    next: RefCell<u64>,
    /// The transfers that have not arrived, by lane and number.
    under_way: Rc<RefCell<BTreeMap<(u16, u64), UnderWay>>>,
    /// What waits behind large messages, by actor.
    behind: RefCell<BTreeMap<(Shard, u64), Queue>>,
}

/// One transfer, for whoever sends it. Dropping it forgets the transfer.
pub(super) struct Transfer {
    lane: u16,
    number: u64,
    news: oneshot::Receiver<()>,
    /// What the news was, once it has come: whether the other side spoke of it.
    heard: Option<bool>,
    under_way: Rc<RefCell<BTreeMap<(u16, u64), UnderWay>>>,
}

/// A transfer that has not arrived.
struct UnderWay {
    /// Whoever waits for its arrival.
    news: oneshot::Sender<()>,
    /// What is sent, once that is encoded: it may come back.
    frame: Option<Bytes>,
}

/// What waits behind one large message.
struct Queue {
    lane: u16,
    transfer: u64,
    waiting: VecDeque<Parked>,
}

/// What became of a message to an actor that a large one may be on its way to.
pub(super) enum Hold {
    /// It waits.
    Kept,
    /// Nothing is in its way.
    Free(Parked),
    /// Too many wait already.
    Full(Parked),
}

impl Transfer {
    /// Its number on the wire.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Keeps what is sent until it has arrived: it may come back.
    pub(super) fn keep(&self, frame: &Bytes) {
        if let Some(under_way) = self.under_way.borrow_mut().get_mut(&(self.lane, self.number)) {
            under_way.frame = Some(frame.clone());
        }
    }

    /// Whether nothing will be heard of it: its connection is lost.
    pub(super) fn is_lost(&mut self) -> bool {
        if self.heard.is_none() {
            self.heard = match self.news.try_recv() {
                Ok(()) => Some(true),
                Err(oneshot::error::TryRecvError::Closed) => Some(false),
                Err(oneshot::error::TryRecvError::Empty) => None,
            };
        }
        self.heard == Some(false)
    }

    /// Waits until it has arrived or come back, or its connection is lost.
    pub(super) async fn over(&mut self) {
        if self.heard.is_none() {
            self.heard = Some((&mut self.news).await.is_ok());
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.under_way.borrow_mut().remove(&(self.lane, self.number));
    }
}

impl Transfers {
    /// A new transfer over a lane.
    pub(super) fn begin(&self, lane: u16) -> Transfer {
        let mut next = self.next.borrow_mut();
        *next += 1;
        let (arrived, news) = oneshot::channel();
        self.under_way.borrow_mut().insert((lane, *next), UnderWay { news: arrived, frame: None });
        Transfer { lane, number: *next, news, heard: None, under_way: Rc::clone(&self.under_way) }
    }

    /// A transfer is over, taken or not: here is what was sent.
    pub(super) fn take_back(&self, lane: u16, transfer: u64) -> Option<Bytes> {
        let UnderWay { news, frame } = self.under_way.borrow_mut().remove(&(lane, transfer))?;
        // The sender of the transfer may have given up.
        let _ = news.send(());
        frame
    }

    /// The connection is lost: nothing that was under way over this lane will be reported.
    pub(super) fn lane_lost(&self, lane: u16) {
        self.under_way.borrow_mut().retain(|(of, _), _| *of != lane);
    }

    /// From now on messages to this actor wait.
    pub(super) fn hold_up(&self, shard: Shard, hash: u64, lane: u16, transfer: u64) {
        self.behind.borrow_mut().insert((shard, hash), Queue { lane, transfer, waiting: VecDeque::new() });
    }

    /// Whether messages to this actor wait.
    pub(crate) fn holds_up(&self, shard: Shard, target: &Target) -> bool {
        let behind = self.behind.borrow();
        !behind.is_empty() && behind.contains_key(&(shard, target.hash))
    }

    /// Puts a message behind a large one to the same actor, if there is one and fewer than `bound` wait.
    pub(super) fn hold(&self, parcel: Parked, bound: usize) -> Hold {
        match self.behind.borrow_mut().get_mut(&(parcel.shard, parcel.target.hash)) {
            Some(queue) if queue.waiting.len() >= bound => Hold::Full(parcel),
            Some(queue) => {
                queue.waiting.push_back(parcel);
                Hold::Kept
            }
            None => Hold::Free(parcel),
        }
    }

    /// Takes the messages that wait and are not worth sending any more.
    pub(super) fn take_ended(&self, now: Millis) -> Vec<Parked> {
        let mut ended = Vec::new();
        for queue in self.behind.borrow_mut().values_mut() {
            let waiting = std::mem::take(&mut queue.waiting);
            let (over, rest) = waiting.into_iter().partition::<VecDeque<_>, _>(|parcel| parcel.is_over(now));
            queue.waiting = rest;
            ended.extend(over);
        }
        ended
    }

    /// The large message to this actor is over: what waited behind it may go, in order.
    pub(super) fn release(&self, shard: Shard, hash: u64, transfer: u64) -> VecDeque<Parked> {
        let mut behind = self.behind.borrow_mut();
        if behind.get(&(shard, hash)).is_none_or(|queue| queue.transfer != transfer) {
            return VecDeque::new();
        }
        behind.remove(&(shard, hash)).map(|queue| queue.waiting).unwrap_or_default()
    }

    /// The large messages to this shard that went over `lane` are over, because its connection is lost.
    pub(super) fn release_all(&self, shard: Shard, lane: u16) -> Vec<Parked> {
        let mut behind = self.behind.borrow_mut();
        let of_shard = behind.range((shard, 0)..=(shard, u64::MAX));
        let over: Vec<_> =
            of_shard.filter(|(_, queue)| queue.lane == lane).map(|(actor, _)| *actor).collect();
        over.into_iter().filter_map(|actor| behind.remove(&actor)).flat_map(|queue| queue.waiting).collect()
    }

    /// Whether a large message to this shard that goes over `lane` has not arrived.
    pub(super) fn go_over(&self, shard: Shard, lane: u16) -> bool {
        let behind = self.behind.borrow();
        behind.range((shard, 0)..=(shard, u64::MAX)).any(|(_, queue)| queue.lane == lane)
    }

    /// Whether no transfer is under way.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.borrow().is_empty()
    }

    /// How many messages wait behind large ones.
    pub(super) fn waiting(&self) -> usize {
        self.behind.borrow().values().map(|queue| queue.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_a_transfer_that_is_given_up() {
        let transfers = Transfers::default();
        let transfer = transfers.begin(3);
        transfer.keep(&Bytes::from_static(b"large"));
        assert_eq!(transfers.under_way.borrow().len(), 1);
        drop(transfer);
        assert!(transfers.under_way.borrow().is_empty());
        assert_eq!(transfers.take_back(3, 1), None);
    }

    #[test]
    fn a_transfer_comes_back_as_it_was_sent_and_its_sender_hears_of_it() {
        let transfers = Transfers::default();
        let mut transfer = transfers.begin(3);
        transfer.keep(&Bytes::from_static(b"large"));
        assert!(!transfer.is_lost());
        assert_eq!(transfers.take_back(3, transfer.number()), Some(Bytes::from_static(b"large")));
        assert!(!transfer.is_lost());
        assert_eq!(transfer.heard, Some(true));
    }

    #[test]
    fn only_the_transfers_of_a_lost_lane_are_lost() {
        let transfers = Transfers::default();
        let (mut lost, mut stays) = (transfers.begin(3), transfers.begin(4));
        transfers.lane_lost(3);
        assert!(lost.is_lost() && !stays.is_lost());
    }
}
