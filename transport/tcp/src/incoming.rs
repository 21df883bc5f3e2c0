//! What has come from the socket, divided into chunks again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::chunk::{HEADER, Header, Malformed};

/// The way in of one connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    buffer: Box<[u8]>,
    /// The part of the buffer that was not looked at yet.
    start: usize,
    end: usize,
    /// The chunk of data whose payload is coming.
    current: Option<Header>,
}

/// A piece of what has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A chunk of data begins; its payload follows in pieces.
    Begin(Header),
    /// Some of the payload of the chunk that has begun.
    Data(Header, &'a [u8]),
    /// A whole chunk that is not data.
    Control(Header, &'a [u8]),
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER].into_boxed_slice(), start: 0, end: 0, current: None }
    }

    /// Reads from the socket once, behind what is there. Zero: the other side has ended the socket.
    pub(crate) fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        ready!(Pin::new(socket).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// Reads from the socket once and throws it away, with everything that is there.
    pub(crate) fn poll_discard<S: AsyncRead + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        (self.start, self.end) = (0, 0);
        self.poll_fill(socket, cx)
    }

    /// The next piece; none if more has to come first.
    pub(crate) fn next(&mut self) -> Result<Option<Piece<'_>>, Malformed> {
        if let Some(header) = self.current {
            return Ok(self.next_data(header));
        }
        let rest = &self.buffer[self.start..self.end];
        let Some((header, payload)) = rest.split_first_chunk::<HEADER>() else { return Ok(None) };
        let header = Header::decode(header)?;
        if header.is_data() {
            self.start += HEADER;
            self.current = Some(header);
            return Ok(Some(Piece::Begin(header)));
        }
        let len = header.len as usize;
        if payload.len() < len {
            return Ok(None);
        }
        let from = self.start + HEADER;
        self.start = from + len;
        Ok(Some(Piece::Control(header, &self.buffer[from..from + len])))
    }

    fn next_data(&mut self, header: Header) -> Option<Piece<'_>> {
        let count = (self.end - self.start).min(header.len as usize);
        if count == 0 {
            return None;
        }
        let left = header.len - count as u32;
        self.current = (left > 0).then_some(Header { len: left, ..header });
        let from = self.start;
        self.start += count;
        Some(Piece::Data(header, &self.buffer[from..from + count]))
    }
}

/// How much is read at once. One read of a busy lane brings hundreds of messages.
const BUFFER: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Kind;

    fn feed(incoming: &mut Incoming, mut bytes: &[u8]) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(incoming.poll_fill(&mut bytes, &mut cx), Poll::Ready(Ok(_))));
    }

    #[test]
    fn chunks_come_out_however_the_bytes_are_cut() {
        let mut wire = Vec::new();
        wire.extend_from_slice(&Header { kind: Kind::Lane, stream: 0, len: 5 }.encode());
        wire.extend_from_slice(b"hello");
        wire.extend_from_slice(&Header { kind: Kind::Credit, stream: 0, len: 4 }.encode());
        wire.extend_from_slice(&[1, 2, 3, 4]);
        wire.extend_from_slice(&Header { kind: Kind::Data, stream: 7, len: 2 }.encode());
        wire.extend_from_slice(b"xy");
        for cut in 1..wire.len() {
            let mut incoming = Incoming::new();
            let (mut data, mut control) = (Vec::new(), Vec::new());
            for part in wire.chunks(cut) {
                feed(&mut incoming, part);
                while let Some(piece) = incoming.next().unwrap() {
                    match piece {
                        Piece::Begin(_) => {}
                        Piece::Data(header, bytes) => {
                            data.extend(bytes.iter().map(|byte| (header.stream, *byte)))
                        }
                        Piece::Control(header, payload) => control.push((header.kind, payload.to_vec())),
                    }
                }
            }
            let text: Vec<u8> = data.iter().map(|(_, byte)| *byte).collect();
            assert_eq!(text, b"helloxy", "{cut}");
            assert_eq!(data.last(), Some(&(7, b'y')));
            assert_eq!(control, [(Kind::Credit, vec![1, 2, 3, 4])]);
        }
    }

    #[test]
    fn garbage_is_malformed_and_never_a_panic() {
        let mut state = 7_u64;
        for _ in 0..2_000 {
            let mut bytes = vec![0; 64];
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 40) as u8;
            }
            bytes[0] %= 12;
            let mut incoming = Incoming::new();
            feed(&mut incoming, &bytes);
            while let Ok(Some(_)) = incoming.next() {}
        }
    }
}
