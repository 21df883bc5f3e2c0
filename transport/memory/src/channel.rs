//! One ordered way for bytes: a lane or a stream, in one direction, with what is under way on it.
//!
//! Invariant: batches arrive in the order they were sent, and no more bytes are under way or unread than its window.

use std::collections::VecDeque;

use archipelago_protocol::time::Millis;
use bytes::{Bytes, BytesMut};

/// When a batch arrives that a fault holds up.
pub(crate) const HELD: Millis = Millis::MAX;

/// Bytes on their way from one side to the other.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    batches: VecDeque<Batch>,
    /// Sent and not read.
    buffered: usize,
    /// All that was ever sent.
    pub(crate) sent: usize,
    /// When what was sent last arrives.
    last: Millis,
    /// How a stream ends, and when that arrives.
    end: Option<(StreamEnd, Millis)>,
    /// The reader of a stream has been handed out.
    pub(crate) accepted: bool,
    /// Nobody reads any more.
    pub(crate) reader_gone: bool,
    /// Nobody writes any more.
    pub(crate) writer_gone: bool,
}

#[derive(Debug)]
struct Batch {
    at: Millis,
    data: Bytes,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    Finished,
    GivenUp,
}

impl Channel {
    /// How many more bytes it takes.
    pub(crate) const fn room(&self, window: usize) -> usize {
        window.saturating_sub(self.buffered)
    }

    pub(crate) const fn buffered(&self) -> usize {
        self.buffered
    }

    /// Sends a batch that needs until `at`, and says when it arrives: not before those sent before it.
    pub(crate) fn push(&mut self, at: Millis, data: Bytes) -> Millis {
        self.last = self.last.max(at);
        self.buffered += data.len();
        self.sent += data.len();
        self.batches.push_back(Batch { at: self.last, data });
        self.last
    }

    /// Takes bytes that will never arrive.
    pub(crate) const fn swallow(&mut self, len: usize) {
        self.buffered += len;
        self.sent += len;
    }

    /// Ends a stream behind what was sent on it.
    pub(crate) fn end(&mut self, end: StreamEnd, at: Millis) {
        if self.end.is_none() {
            self.last = self.last.max(at);
            self.end = Some((end, self.last));
        }
    }

    /// Takes what has arrived.
    pub(crate) fn pull(&mut self, now: Millis, into: &mut BytesMut) -> usize {
        let before = into.len();
        while self.batches.front().is_some_and(|batch| batch.at <= now) {
            if let Some(batch) = self.batches.pop_front() {
                into.extend_from_slice(&batch.data);
            }
        }
        let count = into.len() - before;
        self.buffered -= count;
        count
    }

    /// How the stream has ended, once everything before that was taken.
    pub(crate) fn ended(&self, now: Millis) -> Option<StreamEnd> {
        self.end.filter(|(_, at)| *at <= now && self.batches.is_empty()).map(|(end, _)| end)
    }

    pub(crate) const fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// When there is more to see.
    pub(crate) fn next_arrival(&self) -> Millis {
        let batch = self.batches.front().map(|batch| batch.at);
        batch.or(self.end.map(|(_, at)| at)).unwrap_or(HELD)
    }

    /// Holds up what has not arrived by `now`.
    pub(crate) fn hold(&mut self, now: Millis) {
        self.each_time(|at| {
            if *at > now {
                *at = HELD
            }
        });
    }

    /// Sends again what was held up, to arrive at `at`.
    pub(crate) fn resend(&mut self, at: Millis) {
        self.each_time(|held| {
            if *held == HELD {
                *held = at
            }
        });
    }

    /// Forgets what has not arrived by `now`: the connection has ended there.
    pub(crate) fn forget_after(&mut self, now: Millis) {
        self.forget(|at| at > now);
    }

    /// Forgets everything: the one who would read it has closed the connection.
    pub(crate) fn forget_all(&mut self) {
        self.forget(|_| true);
    }

    /// Forgets what is held up: nobody will send it again.
    pub(crate) fn forget_held(&mut self) {
        self.forget(|at| at == HELD);
    }

    fn forget(&mut self, gone: impl Fn(Millis) -> bool) {
        self.batches.retain(|batch| !gone(batch.at));
        self.end = self.end.filter(|(_, at)| !gone(*at));
        self.buffered = self.batches.iter().map(|batch| batch.data.len()).sum();
    }

    fn each_time(&mut self, change: impl Fn(&mut Millis)) {
        self.batches.iter_mut().for_each(|batch| change(&mut batch.at));
        if let Some((_, at)) = &mut self.end {
            change(at);
        }
        change(&mut self.last);
    }

    /// Breaks the order: the last batch goes before the one before it.
    pub(crate) fn swap_last(&mut self) {
        if let [.., before, last] = self.batches.make_contiguous() {
            std::mem::swap(&mut before.data, &mut last.data);
        }
    }

    /// Breaks the bytes: the last batch loses its last byte.
    pub(crate) fn cut_last(&mut self) {
        if let Some(last) = self.batches.back_mut()
            && !last.data.is_empty()
        {
            last.data.truncate(last.data.len() - 1);
            self.buffered -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(channel: &mut Channel, now: u64) -> String {
        let mut into = BytesMut::new();
        channel.pull(Millis(now), &mut into);
        String::from_utf8(into.to_vec()).unwrap()
    }

    #[test]
    fn a_fast_batch_waits_for_a_slow_one_before_it() {
        let mut channel = Channel::default();
        channel.push(Millis(10), Bytes::from_static(b"slow"));
        channel.push(Millis(5), Bytes::from_static(b"fast"));
        assert_eq!(read(&mut channel, 9), "");
        assert_eq!(read(&mut channel, 10), "slowfast");
    }

    #[test]
    fn what_was_held_up_comes_late_and_in_order() {
        let mut channel = Channel::default();
        channel.push(Millis(1), Bytes::from_static(b"a"));
        channel.push(Millis(5), Bytes::from_static(b"b"));
        channel.hold(Millis(3));
        channel.push(HELD, Bytes::from_static(b"c"));
        channel.end(StreamEnd::Finished, HELD);
        assert_eq!(read(&mut channel, 100), "a");
        channel.resend(Millis(200));
        assert_eq!(read(&mut channel, 199), "");
        assert_eq!(read(&mut channel, 200), "bc");
        assert_eq!(channel.ended(Millis(200)), Some(StreamEnd::Finished));
    }

    #[test]
    fn only_what_is_read_makes_room() {
        let mut channel = Channel::default();
        channel.push(Millis(1), Bytes::from_static(b"12345"));
        assert_eq!(channel.room(8), 3);
        read(&mut channel, 0);
        assert_eq!(channel.room(8), 3);
        read(&mut channel, 1);
        assert_eq!(channel.room(8), 8);
    }

    #[test]
    fn an_end_cuts_off_a_suffix_only() {
        let mut channel = Channel::default();
        for (at, text) in [(1, "a"), (2, "b"), (3, "c")] {
            channel.push(Millis(at), Bytes::copy_from_slice(text.as_bytes()));
        }
        channel.forget_after(Millis(2));
        assert_eq!(read(&mut channel, 100), "ab");
        assert_eq!(channel.buffered(), 0);
    }
}
