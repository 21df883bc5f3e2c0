//! What the chunks mean: the lane, the streams, and the end of one connection.
//!
//! [`Mux`] does no I/O. [`super::connection`] feeds it what has come and writes what it has put into `outgoing`.

use std::task::Waker;

use bytes::BytesMut;

use crate::bell::ReadBell;
use crate::chunk::{self, Header, Kind, Malformed};
use crate::end::End;
use crate::inbox::Inbox;
use crate::incoming::Piece;
use crate::outgoing::Outgoing;
use crate::preamble::Offer;
use crate::receivers::{Outcome, Receivers};
use crate::senders::Senders;

/// The state of one connection, without its socket.
#[derive(Debug)]
pub(crate) struct Mux {
    pub(crate) outgoing: Outgoing,
    pub(crate) lane_in: Inbox,
    pub(crate) lane_out: LaneOut,
    pub(crate) senders: Senders,
    pub(crate) receivers: Receivers,
    /// The other side has closed the connection, with this reason.
    pub(crate) closed: Option<End>,
    /// How many bytes of small chunks may wait. An honest peer keeps far below.
    small_limit: usize,
}

/// The lane to the other side.
#[derive(Debug)]
pub(crate) struct LaneOut {
    pub(crate) credit: u64,
    /// Waits for credit.
    waker: Option<Waker>,
    /// Waits for room in the socket: streams let it go first.
    pub(crate) waits_for_room: bool,
}

impl Mux {
    /// `ours` is what this side allows, `theirs` what the other side does: it may say anything, so that this side opens no more
    /// than [`MOST_STREAMS`] of the streams it is offered.
    pub(crate) fn new(ours: Offer, theirs: Offer) -> Self {
        let offered = theirs.max_streams.min(MOST_STREAMS);
        Self {
            outgoing: Outgoing::default(),
            lane_in: Inbox::new(ours.lane_window),
            lane_out: LaneOut { credit: theirs.lane_window.into(), waker: None, waits_for_room: false },
            senders: Senders::new(offered, theirs.stream_window),
            receivers: Receivers::new(ours.max_streams, ours.stream_window),
            closed: None,
            small_limit: SMALL_LIMIT + SMALL_PER_STREAM * ours.max_streams.max(offered) as usize,
        }
    }

    /// Takes a piece of what has come. Bytes of the lane go to `sink`, where there is one.
    pub(crate) fn handle(
        &mut self,
        piece: Piece<'_>,
        sink: Option<&mut BytesMut>,
        bell: &ReadBell,
    ) -> Result<(), Malformed> {
        match piece {
            Piece::Begin(Header { kind: Kind::Lane, len, .. }) => self.lane_in.begin(len),
            Piece::Begin(header) => self.receivers.on_begin(header.stream, header.len),
            Piece::Data(Header { kind: Kind::Lane, .. }, bytes) => {
                self.on_lane(bytes, sink, bell);
                Ok(())
            }
            Piece::Data(header, bytes) => {
                self.receivers.on_data(header.stream, bytes);
                Ok(())
            }
            Piece::Control(header, payload) => self.on_control(header, payload),
        }
    }

    /// Puts in the credit for what was read of the lane.
    pub(crate) fn give_lane_credit(&mut self) {
        if let Some(credit) = self.lane_in.credit() {
            self.outgoing.put_control(Kind::Credit, 0, &credit.to_le_bytes());
        }
    }

    /// Puts in the credit for what was read of a stream.
    pub(crate) fn give_stream_credit(&mut self, stream: u32) {
        if let Some(credit) = self.receivers.credit(stream) {
            self.outgoing.put_control(Kind::Credit, stream, &credit.to_le_bytes());
        }
    }

    /// This side is done with a stream that the other side has opened.
    pub(crate) fn release(&mut self, stream: u32) {
        if self.receivers.release(stream) {
            self.outgoing.put_control(Kind::Released, stream, &[]);
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.lane_out.wake();
        self.senders.wake_all();
        self.receivers.wake_all();
    }

    fn on_lane(&mut self, bytes: &[u8], sink: Option<&mut BytesMut>, bell: &ReadBell) {
        match sink {
            // What came earlier goes first.
            Some(sink) if self.lane_in.is_empty() => {
                sink.extend_from_slice(bytes);
                self.lane_in.pass(bytes.len());
            }
            _ => {
                self.lane_in.push(bytes);
                bell.wake_leader();
            }
        }
    }

    fn on_control(&mut self, header: Header, payload: &[u8]) -> Result<(), Malformed> {
        let stream = header.stream;
        match header.kind {
            Kind::Open => self.receivers.on_open(stream)?,
            Kind::End => self.receivers.on_outcome(stream, Outcome::Finished)?,
            Kind::Reset => self.receivers.on_outcome(stream, Outcome::GivenUp)?,
            Kind::Released => self.senders.on_released(stream)?,
            Kind::Credit if stream == 0 => self.lane_out.on_credit(chunk::decode_credit(payload)?),
            Kind::Credit => self.senders.on_credit(stream, chunk::decode_credit(payload)?),
            Kind::Ping => self.outgoing.put_pong(),
            Kind::Pong => {}
            Kind::Close => self.closed = Some(End::ByPeer(chunk::decode_close(payload)?)),
            Kind::Lane | Kind::Data => return Err(Malformed("data that is no data")),
        }
        if self.outgoing.small_len() > self.small_limit {
            return Err(Malformed("too much that waits for an answer"));
        }
        Ok(())
    }
}

impl LaneOut {
    pub(crate) fn wait(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
    }

    fn on_credit(&mut self, amount: u32) {
        self.credit = self.credit.saturating_add(amount.into());
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

const SMALL_LIMIT: usize = 64 << 10;
const SMALL_PER_STREAM: usize = 256;
/// Streams that this side opens at once, whatever the other side allows.
const MOST_STREAMS: u32 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer { lane_window: 100, stream_window: 50, max_streams: 2 };

    fn control(mux: &mut Mux, kind: Kind, stream: u32, payload: &[u8]) -> Result<(), Malformed> {
        let header = Header { kind, stream, len: payload.len() as u32 };
        mux.handle(Piece::Control(header, payload), None, &ReadBell::default())
    }

    #[test]
    fn lane_bytes_go_to_the_reader_unless_older_ones_wait() {
        let (mut mux, bell) = (Mux::new(OFFER, OFFER), ReadBell::default());
        let header = Header { kind: Kind::Lane, stream: 0, len: 3 };
        let mut sink = BytesMut::new();
        mux.handle(Piece::Data(header, b"one"), Some(&mut sink), &bell).unwrap();
        mux.handle(Piece::Data(header, b"two"), None, &bell).unwrap();
        mux.handle(Piece::Data(header, b"six"), Some(&mut sink), &bell).unwrap();
        mux.lane_in.read(&mut sink);
        assert_eq!(sink, "onetwosix");
    }

    #[test]
    fn a_lane_beyond_its_window_is_refused() {
        let mut mux = Mux::new(OFFER, OFFER);
        let begin = Piece::Begin(Header { kind: Kind::Lane, stream: 0, len: 101 });
        assert!(mux.handle(begin, None, &ReadBell::default()).is_err());
    }

    #[test]
    fn credit_and_close_are_understood() {
        let mut mux = Mux::new(OFFER, OFFER);
        control(&mut mux, Kind::Credit, 0, &7_u32.to_le_bytes()).unwrap();
        assert_eq!(mux.lane_out.credit, 107);
        control(&mut mux, Kind::Close, 0, &[1, 0, b'x']).unwrap();
        assert!(matches!(mux.closed, Some(End::ByPeer(reason)) if reason.text == "x"));
    }

    #[test]
    fn a_peer_that_provokes_answers_and_reads_none_is_refused() {
        let mut mux = Mux::new(OFFER, OFFER);
        let flood = (1..1_000_000).try_for_each(|stream| {
            control(&mut mux, Kind::Open, stream, &[])?;
            mux.release(stream);
            control(&mut mux, Kind::End, stream, &[])
        });
        assert!(flood.is_err());
    }

    #[test]
    fn a_peer_that_allows_any_number_of_streams_makes_no_more_wait_for_that() {
        let greedy = Offer { max_streams: u32::MAX, ..OFFER };
        let mut mux = Mux::new(OFFER, greedy);
        let flood = (1..10_000_000).try_for_each(|stream| {
            control(&mut mux, Kind::Open, stream, &[])?;
            control(&mut mux, Kind::Reset, stream, &[])?;
            mux.release(stream);
            Ok::<_, Malformed>(())
        });
        assert!(flood.is_err());
        assert!(mux.outgoing.small_len() < 2 << 20, "{}", mux.outgoing.small_len());
    }

    #[test]
    fn as_many_streams_as_may_be_open_at_once_may_wait_for_a_peer_that_does_not_read() {
        let mut mux = Mux::new(OFFER, Offer { max_streams: u32::MAX, ..OFFER });
        while let Some(stream) = mux.senders.open() {
            mux.outgoing.put_control(Kind::Open, stream, &[]);
            mux.outgoing.put_control(Kind::Reset, stream, &[]);
        }
        assert_eq!(control(&mut mux, Kind::Ping, 0, &[]), Ok(()));
    }
}
