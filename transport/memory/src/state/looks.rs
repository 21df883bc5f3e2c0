//! What the two sides of a connection do with it: send, receive, open streams, take streams.

use std::task::Waker;

use archipelago_protocol::contract::TransportError;
use archipelago_protocol::time::Millis;
use bytes::{Bytes, BytesMut};

use super::conn::WaitKey;
use super::{Conn, Ending, Key, State};
use crate::channel::{Channel, HELD, StreamEnd};
use crate::mutants::Mutant;
use crate::wait::Look;

type Answer<T> = Look<Result<T, TransportError>>;

impl State {
    /// Takes bytes from the front of `data` as far as there is room.
    pub(crate) fn look_send(
        &mut self,
        (id, side): (u64, usize),
        key: Key,
        data: &mut Bytes,
        now: Millis,
        waker: &Waker,
    ) -> Answer<()> {
        if let Some(ended) = self.ended(id, side, key) {
            return ended;
        }
        if self.reader_gone(id, side, key) {
            return Look::Ready(Err(lost("nobody reads this stream any more")));
        }
        loop {
            match self.room(id, side, key).min(data.len()) {
                0 => break,
                take => self.send(id, side, key, data.split_to(take), now),
            }
        }
        if data.is_empty() {
            return Look::Ready(Ok(()));
        }
        if self.broken(Mutant::TakesSlowForDead) {
            self.suspect(id, side, now);
        }
        self.wait((id, side), WaitKey::Send(key), (now, HELD), waker)
    }

    fn reader_gone(&mut self, id: u64, side: usize, key: Key) -> bool {
        let channel = self.conns.get_mut(&id).and_then(|conn| conn.flows[side].channel(key));
        channel.is_none_or(|channel| channel.reader_gone)
    }

    fn room(&mut self, id: u64, side: usize, key: Key) -> usize {
        if self.broken(Mutant::TakesEverything) {
            return usize::MAX;
        }
        let (lane_window, stream_window) = (self.settings.lane_window, self.settings.stream_window);
        let stream_stops = self.broken(Mutant::StreamStopsLane);
        let lane_stops = self.broken(Mutant::LaneStopsStreams);
        let Some(conn) = self.conns.get_mut(&id) else { return 0 };
        let flow = &mut conn.flows[side];
        let full_stream = flow.streams.values().any(|stream| stream.room(stream_window) == 0);
        let full_lane = flow.lane.room(lane_window) == 0;
        match key {
            Key::Lane if full_stream && stream_stops => 0,
            Key::Stream(_) if full_lane && lane_stops => 0,
            Key::Lane => flow.lane.room(lane_window),
            Key::Stream(n) => flow.streams.get(&n).map_or(0, |stream| stream.room(stream_window)),
        }
    }

    /// Puts a batch on its way.
    fn send(&mut self, id: u64, side: usize, key: Key, data: Bytes, now: Millis) {
        let at = self.arrival(id, side, now);
        self.stats.bytes_taken += data.len() as u64;
        let len = data.len();
        let (data, breaks) = self.before_the_break(id, side, data);
        let passes = !data.is_empty() && !self.loses(id, side, key);
        if passes && let Some(conn) = self.conns.get_mut(&id) {
            let flow = &mut conn.flows[side];
            if let Some(channel) = flow.channel(key) {
                let arrives = channel.push(at, data.clone());
                flow.last = flow.last.max(arrives);
            }
            conn.sides[1 - side].wake(WaitKey::Recv(key), &mut self.to_wake);
            if key != Key::Lane {
                conn.sides[1 - side].wake(WaitKey::Next, &mut self.to_wake);
            }
            self.distort(id, side, key, &data);
        }
        if breaks {
            // What is lost fills the window as well: a broken way takes no more than another.
            if let Some(channel) = self.conns.get_mut(&id).and_then(|conn| conn.flows[side].channel(key)) {
                channel.swallow(len - data.len());
            }
            self.break_behind(id, side, at);
        }
    }

    /// The part of a batch that gets through before the connection breaks, and whether it breaks here.
    fn before_the_break(&mut self, id: u64, side: usize, data: Bytes) -> (Bytes, bool) {
        let Some(flow) = self.conns.get_mut(&id).map(|conn| &mut conn.flows[side]) else {
            return (data, false);
        };
        let Some(left) = flow.kill_after else { return (data, false) };
        let passes = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        flow.kill_after = Some(left - passes as u64);
        (data.slice(..passes), passes < data.len())
    }

    /// The receiver finds out behind the last byte that came through, the sender when that is heard of.
    fn break_behind(&mut self, id: u64, side: usize, at: Millis) {
        let Some(conn) = self.conns.get(&id) else { return };
        if conn.sides[side].breaks.is_none() {
            let mut times = [at; 2];
            times[1 - side] = conn.flows[side].last.max(at);
            self.break_at(id, times);
        }
    }

    /// What some mutants do to a batch before it is sent.
    fn loses(&mut self, id: u64, side: usize, key: Key) -> bool {
        if self.broken(Mutant::LosesBatches) {
            return self.rng.chance(20);
        }
        let ends_early = self.broken(Mutant::StreamEndsEarly) && key != Key::Lane;
        let channel = self.conns.get_mut(&id).and_then(|conn| conn.flows[side].channel(key));
        ends_early && channel.is_some_and(|channel| channel.sent >= 48 << 20)
    }

    /// What some mutants do to a batch that was sent.
    fn distort(&mut self, id: u64, side: usize, key: Key, data: &Bytes) {
        let (swaps, repeats) = (self.broken(Mutant::SwapsBatches), self.broken(Mutant::RepeatsBatches));
        let cuts = self.broken(Mutant::CutsLargeBatches) && data.len() > 64 << 10;
        let now_and_then = (swaps || repeats) && self.rng.chance(50);
        let Some(channel) = self.conns.get_mut(&id).and_then(|conn| conn.flows[side].channel(key)) else {
            return;
        };
        if swaps && now_and_then {
            channel.swap_last();
        }
        if repeats && now_and_then {
            channel.push(Millis::ZERO, data.clone());
        }
        if cuts {
            channel.cut_last();
        }
    }

    /// Ends a stream in good order. What a lane took is on the wire already.
    pub(crate) fn finish(&mut self, (id, side): (u64, usize), key: Key, now: Millis) -> Answer<()> {
        if let Some(ended) = self.ended(id, side, key) {
            return ended;
        }
        if self.reader_gone(id, side, key) {
            return Look::Ready(Err(lost("nobody reads this stream any more")));
        }
        if let Key::Stream(n) = key {
            self.end_stream(id, side, n, StreamEnd::Finished, now);
            // Nothing can follow, so its writer does not keep the place.
            if let Some(stream) = self.conns.get_mut(&id).and_then(|conn| conn.flows[side].channel(key)) {
                stream.writer_gone = true;
            }
        }
        Look::Ready(Ok(()))
    }

    fn end_stream(&mut self, id: u64, side: usize, n: u64, end: StreamEnd, now: Millis) {
        let at = self.arrival(id, side, now);
        let cuts = self.broken(Mutant::LosesLastByte);
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let flow = &mut conn.flows[side];
        let Some(stream) = flow.streams.get_mut(&n).filter(|stream| !stream.has_end()) else { return };
        if cuts {
            stream.cut_last();
        }
        stream.end(end, at);
        flow.last = flow.last.max(at);
        let other = &mut conn.sides[1 - side];
        other.wake(WaitKey::Recv(Key::Stream(n)), &mut self.to_wake);
        other.wake(WaitKey::Next, &mut self.to_wake);
    }

    /// Takes what has come.
    pub(crate) fn look_recv(
        &mut self,
        (id, side): (u64, usize),
        key: Key,
        into: &mut BytesMut,
        now: Millis,
        waker: &Waker,
    ) -> Answer<usize> {
        let forgets_writers = self.broken(Mutant::ForgetsWriters);
        let seems_whole = self.broken(Mutant::GivenUpSeemsWhole);
        let Some(conn) = self.conns.get_mut(&id) else { return Look::Ready(Err(lost("it has ended"))) };
        let Some(channel) = conn.flows[1 - side].channel(key) else { return Look::Ready(Ok(0)) };
        let count = channel.pull(now, into);
        if count > 0 {
            self.stats.bytes_read += count as u64;
            if !forgets_writers {
                conn.sides[1 - side].wake(WaitKey::Send(key), &mut self.to_wake);
                self.unblock_all(id, side);
            }
            return Look::Ready(Ok(count));
        }
        match channel.ended(now) {
            Some(StreamEnd::GivenUp) if !seems_whole => {
                return Look::Ready(Err(lost("the other side has given this stream up")));
            }
            Some(_) => return Look::Ready(Ok(0)),
            None => {}
        }
        let arrival = channel.next_arrival();
        match self.ended(id, side, key) {
            Some(ended) => ended,
            None => self.wait((id, side), WaitKey::Recv(key), (now, arrival), waker),
        }
    }

    /// With mutants that tie lanes and streams together, room for one is room for all.
    fn unblock_all(&mut self, id: u64, side: usize) {
        let tied = self.broken(Mutant::StreamStopsLane) || self.broken(Mutant::LaneStopsStreams);
        if let Some(conn) = self.conns.get_mut(&id).filter(|_| tied) {
            conn.sides[1 - side].wake_all(&mut self.to_wake);
        }
    }

    /// Opens a stream as soon as not too many are open.
    pub(crate) fn look_open(&mut self, (id, side): (u64, usize), now: Millis, waker: &Waker) -> Answer<u64> {
        if let Some(ended) = self.ended(id, side, Key::Lane) {
            return ended;
        }
        let most = self.settings.max_streams;
        match self.conns.get_mut(&id) {
            Some(conn) if conn.flows[side].streams.len() < most => Look::Ready(Ok(open_stream(conn, side))),
            _ => self.wait((id, side), WaitKey::Open, (now, HELD), waker),
        }
    }

    /// The first stream from the other side of which something has arrived.
    pub(crate) fn look_next(&mut self, (id, side): (u64, usize), now: Millis, waker: &Waker) -> Answer<u64> {
        if let Some(ended) = self.ended(id, side, Key::Lane) {
            return ended;
        }
        let Some(conn) = self.conns.get_mut(&id) else { return Look::Ready(Err(lost("it has ended"))) };
        let waiting = conn.flows[1 - side].streams.iter_mut().filter(|(_, stream)| !stream.accepted);
        let mut first = HELD;
        for (n, stream) in waiting {
            if stream.next_arrival() <= now {
                stream.accepted = true;
                return Look::Ready(Ok(*n));
            }
            first = first.min(stream.next_arrival());
        }
        self.wait((id, side), WaitKey::Next, (now, first), waker)
    }

    /// Nobody writes this stream any more; if it was not finished, it was given up.
    pub(crate) fn writer_drops(&mut self, (id, side): (u64, usize), n: u64, now: Millis) {
        let unseen = |stream: &Channel| stream.sent == 0 && !stream.has_end();
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let flow = &mut conn.flows[side];
        let Some(stream) = flow.streams.get_mut(&n) else { return };
        stream.writer_gone = true;
        stream.reader_gone |= unseen(stream);
        self.end_stream(id, side, n, StreamEnd::GivenUp, now);
        self.collect(id, side, n);
    }

    /// Nobody reads this stream any more.
    pub(crate) fn reader_drops(&mut self, (id, side): (u64, usize), n: u64) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let Some(stream) = conn.flows[1 - side].streams.get_mut(&n) else { return };
        stream.reader_gone = true;
        stream.forget_all();
        conn.sides[1 - side].wake(WaitKey::Send(Key::Stream(n)), &mut self.to_wake);
        self.collect(id, 1 - side, n);
    }

    fn collect(&mut self, id: u64, side: usize, n: u64) {
        if let Some(conn) = self.conns.get_mut(&id)
            && conn.flows[side].collect(n)
        {
            conn.sides[side].wake(WaitKey::Open, &mut self.to_wake);
        }
    }

    fn ended<T>(&self, id: u64, side: usize, key: Key) -> Option<Answer<T>> {
        let Some(conn) = self.conns.get(&id) else { return Some(Look::Ready(Err(lost("it has ended")))) };
        match &conn.sides[side].ended {
            Some(Ending::Lost(_)) if key != Key::Lane && self.broken(Mutant::StreamsIgnoreSilence) => {
                Some(Look::Until(HELD))
            }
            ended => ended.as_ref().map(|ending| Look::Ready(Err(ending.error()))),
        }
    }

    /// Waits for this, or until `at`, or until something happens to the connection.
    fn wait<T>(
        &mut self,
        (id, side): (u64, usize),
        key: WaitKey,
        (now, at): (Millis, Millis),
        waker: &Waker,
    ) -> Answer<T> {
        let limit = self.settings.silence_limit;
        match self.conns.get_mut(&id) {
            Some(conn) => {
                conn.sides[side].wait(key, waker);
                Look::Until(at.min(conn.deadline(side, limit, now)))
            }
            None => Look::Ready(Err(lost("it has ended"))),
        }
    }
}

fn open_stream(conn: &mut Conn, side: usize) -> u64 {
    conn.sides[side].last_stream += 1;
    let n = conn.sides[side].last_stream;
    conn.flows[side].streams.insert(n, Channel::default());
    n
}

fn lost(reason: &str) -> TransportError {
    TransportError::Lost { reason: reason.to_owned() }
}
