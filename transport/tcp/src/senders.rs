//! The streams that this side has opened.

use std::collections::BTreeMap;
use std::task::Waker;

use crate::bell::Waiters;
use crate::chunk::Malformed;

/// The streams that this side has opened and the other side has not released.
///
/// A place is taken from `open` until the other side is done with the stream, so that the other side never keeps
/// more streams than it allows.
#[derive(Debug)]
pub(crate) struct Senders {
    streams: BTreeMap<u32, Sending>,
    newest: u32,
    unreleased: u32,
    limit: u32,
    window: u32,
    /// Those who wait for a place.
    pub(crate) waiting: Waiters,
}

#[derive(Debug)]
struct Sending {
    credit: u64,
    /// The other side is done with it.
    released: bool,
    /// This side is done with it.
    dropped: bool,
    waker: Option<Waker>,
}

impl Senders {
    /// `limit` and `window` are what the other side allows.
    pub(crate) fn new(limit: u32, window: u32) -> Self {
        Self {
            streams: BTreeMap::new(),
            newest: 0,
            unreleased: 0,
            limit,
            window,
            waiting: Waiters::default(),
        }
    }

    /// Takes a place and gives the stream its number; none if all are taken, or all numbers are used up.
    pub(crate) fn open(&mut self) -> Option<u32> {
        if self.unreleased >= self.limit {
            return None;
        }
        self.newest = self.newest.checked_add(1)?;
        self.unreleased += 1;
        let credit = u64::from(self.window);
        self.streams.insert(self.newest, Sending { credit, released: false, dropped: false, waker: None });
        Some(self.newest)
    }

    /// How much may be sent; none if the other side does not want any more.
    pub(crate) fn credit(&self, stream: u32) -> Option<u64> {
        self.streams.get(&stream).filter(|sending| !sending.released).map(|sending| sending.credit)
    }

    /// Uses up credit.
    pub(crate) fn spend(&mut self, stream: u32, amount: usize) {
        if let Some(sending) = self.streams.get_mut(&stream) {
            sending.credit = sending.credit.saturating_sub(amount as u64);
        }
    }

    /// Whom to wake when there is credit again.
    pub(crate) fn wait(&mut self, stream: u32, waker: &Waker) {
        if let Some(sending) = self.streams.get_mut(&stream) {
            sending.waker = Some(waker.clone());
        }
    }

    /// More credit has come. Late credit, for a stream that this side is done with, means nothing.
    pub(crate) fn on_credit(&mut self, stream: u32, amount: u32) {
        if let Some(sending) = self.streams.get_mut(&stream) {
            sending.credit = sending.credit.saturating_add(amount.into());
            wake(sending);
        }
    }

    /// The other side is done with a stream.
    pub(crate) fn on_released(&mut self, stream: u32) -> Result<(), Malformed> {
        let sending = self.streams.get_mut(&stream).filter(|sending| !sending.released);
        let sending = sending.ok_or(Malformed("a release of a stream that is not open"))?;
        sending.released = true;
        wake(sending);
        if sending.dropped {
            self.streams.remove(&stream);
        }
        self.unreleased -= 1;
        self.waiting.wake_all();
        Ok(())
    }

    /// This side is done with a stream. True if the other side was not before.
    pub(crate) fn on_dropped(&mut self, stream: u32) -> bool {
        let Some(sending) = self.streams.get_mut(&stream) else { return false };
        if sending.released {
            self.streams.remove(&stream);
            return false;
        }
        sending.dropped = true;
        true
    }

    pub(crate) fn wake_all(&mut self) {
        self.streams.values_mut().for_each(wake);
        self.waiting.wake_all();
    }
}

fn wake(sending: &mut Sending) {
    if let Some(waker) = sending.waker.take() {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_only_when_the_other_side_releases_it() {
        let mut senders = Senders::new(2, 10);
        assert_eq!((senders.open(), senders.open(), senders.open()), (Some(1), Some(2), None));
        assert!(senders.on_dropped(1));
        assert_eq!(senders.open(), None);
        senders.on_released(1).unwrap();
        assert_eq!(senders.open(), Some(3));
    }

    #[test]
    fn a_release_of_nothing_or_for_the_second_time_is_refused() {
        let mut senders = Senders::new(2, 10);
        assert!(senders.on_released(1).is_err());
        senders.open();
        senders.on_released(1).unwrap();
        assert!(senders.on_released(1).is_err());
        assert!(!senders.on_dropped(1));
        assert!(senders.on_released(1).is_err());
    }

    #[test]
    fn credit_is_spent_and_comes_back() {
        let mut senders = Senders::new(1, 10);
        let stream = senders.open().unwrap();
        senders.spend(stream, 10);
        assert_eq!(senders.credit(stream), Some(0));
        senders.on_credit(stream, 4);
        assert_eq!(senders.credit(stream), Some(4));
        senders.on_credit(stream, u32::MAX);
        senders.on_released(stream).unwrap();
        assert_eq!(senders.credit(stream), None);
        senders.on_credit(99, 1);
    }
}
