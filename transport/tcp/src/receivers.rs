//! The streams that the other side has opened.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use bytes::BytesMut;

use crate::bell::Waiters;
use crate::chunk::Malformed;
use crate::inbox::Inbox;

/// The streams that the other side has opened and this side has not released.
///
/// Invariant: there are never more of them than this side allows.
#[derive(Debug)]
pub(crate) struct Receivers {
    streams: BTreeMap<u32, Receiving>,
    newest: u32,
    limit: u32,
    window: u32,
    /// Those that were not handed out yet.
    fresh: VecDeque<u32>,
    /// Those who wait for one.
    pub(crate) waiting: Waiters,
}

#[derive(Debug)]
struct Receiving {
    inbox: Inbox,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// How the sender has ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// In good order.
    Finished,
    /// It gave up; what came is not whole.
    GivenUp,
}

impl Receivers {
    pub(crate) fn new(limit: u32, window: u32) -> Self {
        Self {
            streams: BTreeMap::new(),
            newest: 0,
            limit,
            window,
            fresh: VecDeque::new(),
            waiting: Waiters::default(),
        }
    }

    /// The other side opens a stream.
    pub(crate) fn on_open(&mut self, stream: u32) -> Result<(), Malformed> {
        if Some(stream) != self.newest.checked_add(1) {
            return Err(Malformed("a stream that is out of turn"));
        }
        if self.streams.len() >= self.limit as usize {
            return Err(Malformed("more streams than are allowed"));
        }
        self.newest = stream;
        let receiving = Receiving { inbox: Inbox::new(self.window), outcome: None, waker: None };
        self.streams.insert(stream, receiving);
        self.fresh.push_back(stream);
        self.waiting.wake_all();
        Ok(())
    }

    /// A chunk of data begins.
    pub(crate) fn on_begin(&mut self, stream: u32, len: u32) -> Result<(), Malformed> {
        match self.running(stream)? {
            Some(receiving) => receiving.inbox.begin(len),
            None => Ok(()),
        }
    }

    /// Data has come.
    pub(crate) fn on_data(&mut self, stream: u32, bytes: &[u8]) {
        if let Some(receiving) = self.streams.get_mut(&stream) {
            receiving.inbox.push(bytes);
            wake(receiving);
        }
    }

    /// The sender has ended a stream.
    pub(crate) fn on_outcome(&mut self, stream: u32, outcome: Outcome) -> Result<(), Malformed> {
        if let Some(receiving) = self.running(stream)? {
            receiving.outcome = Some(outcome);
            if outcome == Outcome::GivenUp {
                receiving.inbox.discard();
            }
            wake(receiving);
        }
        Ok(())
    }

    /// Hands out the next stream.
    pub(crate) fn next(&mut self) -> Option<u32> {
        self.fresh.pop_front()
    }

    /// Moves what has come to the end of `into`, and says how much it was.
    pub(crate) fn read(&mut self, stream: u32, into: &mut BytesMut) -> usize {
        self.streams.get_mut(&stream).map_or(0, |receiving| receiving.inbox.read(into))
    }

    /// The credit to send now. A stream that has ended needs none.
    pub(crate) fn credit(&mut self, stream: u32) -> Option<u32> {
        let receiving = self.streams.get_mut(&stream)?;
        if receiving.outcome.is_some() { None } else { receiving.inbox.credit() }
    }

    /// How the sender has ended the stream, if everything before was read.
    pub(crate) fn outcome(&self, stream: u32) -> Option<Outcome> {
        let receiving = self.streams.get(&stream)?;
        receiving.outcome.filter(|_| receiving.inbox.is_empty())
    }

    pub(crate) fn wait(&mut self, stream: u32, waker: &Waker) {
        if let Some(receiving) = self.streams.get_mut(&stream) {
            receiving.waker = Some(waker.clone());
        }
    }

    /// This side is done with a stream. False if it was before.
    pub(crate) fn release(&mut self, stream: u32) -> bool {
        self.streams.remove(&stream).is_some()
    }

    pub(crate) fn wake_all(&mut self) {
        self.streams.values_mut().for_each(wake);
        self.waiting.wake_all();
    }

    /// A stream that the sender may go on with. None if this side is done with it and the sender does not know yet.
    fn running(&mut self, stream: u32) -> Result<Option<&mut Receiving>, Malformed> {
        if stream > self.newest {
            return Err(Malformed("data of a stream that was not opened"));
        }
        match self.streams.get_mut(&stream) {
            Some(receiving) if receiving.outcome.is_some() => {
                Err(Malformed("data of a stream that has ended"))
            }
            found => Ok(found),
        }
    }
}

fn wake(receiving: &mut Receiving) {
    if let Some(waker) = receiving.waker.take() {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_come_in_turn_and_not_too_many() {
        let mut receivers = Receivers::new(2, 10);
        assert!(receivers.on_open(2).is_err());
        receivers.on_open(1).unwrap();
        assert!(receivers.on_open(1).is_err());
        receivers.on_open(2).unwrap();
        assert!(receivers.on_open(3).is_err());
        assert!(receivers.release(1));
        receivers.on_open(3).unwrap();
        assert_eq!((receivers.next(), receivers.next(), receivers.next()), (Some(1), Some(2), Some(3)));
    }

    #[test]
    fn data_before_the_beginning_or_after_the_end_is_refused() {
        let mut receivers = Receivers::new(2, 10);
        assert!(receivers.on_begin(1, 1).is_err());
        receivers.on_open(1).unwrap();
        receivers.on_outcome(1, Outcome::Finished).unwrap();
        assert!(receivers.on_begin(1, 1).is_err());
        assert!(receivers.on_outcome(1, Outcome::GivenUp).is_err());
    }

    #[test]
    fn late_data_of_a_released_stream_is_thrown_away() {
        let mut receivers = Receivers::new(2, 10);
        receivers.on_open(1).unwrap();
        assert!(receivers.release(1));
        assert!(!receivers.release(1));
        receivers.on_begin(1, 1_000_000).unwrap();
        receivers.on_data(1, &[1; 1_000]);
        receivers.on_outcome(1, Outcome::Finished).unwrap();
        assert_eq!(receivers.read(1, &mut BytesMut::new()), 0);
    }

    #[test]
    fn an_end_shows_after_everything_before_it_was_read() {
        let mut receivers = Receivers::new(2, 10);
        receivers.on_open(1).unwrap();
        receivers.on_begin(1, 3).unwrap();
        receivers.on_data(1, b"abc");
        receivers.on_outcome(1, Outcome::Finished).unwrap();
        assert_eq!(receivers.outcome(1), None);
        assert_eq!(receivers.read(1, &mut BytesMut::new()), 3);
        assert_eq!(receivers.outcome(1), Some(Outcome::Finished));
    }
}
