//! A peer made by hand, over plain TCP: it speaks the protocol, and says what no node would say.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use archipelago_protocol::identity::{Kind, Namespace, NodeAddress, NodeId, NodeInfo};
use archipelago_protocol::link::{Frame, FrameError, next_frame, write_frame};
use archipelago_protocol::message::{TypeHint, wire_id};
use archipelago_protocol::peer::{
    AttemptId, Handshake, Hello, KindEntry, LaneEnds, PeerKind, Seat, Versions,
};
use bytes::{Buf, BytesMut};

/// Between the control arbiters.
pub const CONTROL: LaneEnds = LaneEnds { from: Seat::Control, to: Seat::Control };
/// Between the first data arbiters.
pub const DATA: LaneEnds = LaneEnds { from: Seat::Data(0), to: Seat::Data(0) };

/// What the stranger says about itself: node `n`, with as many kinds as it likes.
///
/// # Panics
///
/// Never, for numbers that fit a port.
pub fn hello(n: u64, cluster: &str, kinds: usize, lane: LaneEnds) -> Hello {
    let message = || (wire_id("m"), TypeHint::new("m").expect("a plain name"));
    let entry =
        |i| KindEntry { name: Kind::new(&format!("k{i}")).expect("a plain name"), messages: vec![message()] };
    let address = NodeAddress::new("10.9.9.9", u16::try_from(n).expect("a port")).expect("a plain address");
    Hello {
        versions: Versions { oldest: 1, newest: 1 },
        cluster: cluster.into(),
        namespace: Namespace::new("default").expect("a plain name"),
        datacenter: "local".into(),
        node: NodeInfo {
            id: NodeId::new(1_000_000 + n),
            name: "stranger".into(),
            address,
            roles: BTreeSet::new(),
            version: "0".into(),
            kinds: BTreeSet::new(),
        },
        kind: PeerKind::Member,
        lane,
        attempt: AttemptId(1),
        expects: None,
        seats: vec![1, 2],
        kinds: (0..kinds).map(entry).collect(),
        store: None,
        extensions: vec![],
    }
}

/// One chunk of the lane, as the TCP transport writes it.
pub fn chunk(payload: &[u8]) -> Vec<u8> {
    chunk_of(LANE, 0, payload)
}

fn chunk_of(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("a short chunk");
    [&[kind][..], &stream.to_le_bytes(), &len.to_le_bytes(), payload].concat()
}

/// Greets, and gives back the socket and what the node said.
///
/// # Panics
///
/// If the node does not answer.
pub fn greet(port: u16, hello: Hello, window: u32) -> (TcpStream, Handshake) {
    greet_in_words(port, &Handshake::Hello(hello).encode().expect("a short hello"), window)
}

/// The same, with any bytes for a hello.
///
/// # Panics
///
/// If the node does not answer.
pub fn greet_in_words(port: u16, words: &[u8], window: u32) -> (TcpStream, Handshake) {
    let mut socket = knock(port, window);
    socket.write_all(&chunk(words)).expect("the node reads");
    let mut lane = BytesMut::new();
    loop {
        let (kind, body) = next_chunk(&mut socket).expect("the node answers");
        if kind == LANE {
            lane.extend_from_slice(&body);
        }
        if let Some(words) = Handshake::take(&mut lane).expect("the node speaks the protocol") {
            return (socket, words);
        }
    }
}

/// Connects and says nothing that the transport would pass on.
///
/// # Panics
///
/// If the node does not answer.
pub fn knock(port: u16, window: u32) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the node listens");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket has a limit");
    let mut preamble = b"\xa7rchip\x01\x00".to_vec();
    for number in [window, 1 << 20, 4_u32] {
        preamble.extend(number.to_le_bytes());
    }
    socket.write_all(&preamble).expect("the node reads");
    socket.read_exact(&mut [0; 20]).expect("the node answers");
    socket
}

fn next_chunk(socket: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    socket.read_exact(&mut head)?;
    let len = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
    let mut body = vec![0; len as usize];
    socket.read_exact(&mut body)?;
    Ok((head[0], body))
}

/// The port of the first data arbiter, as the node tells anybody who asks.
///
/// # Panics
///
/// If the node does not.
pub fn data_port(control: u16) -> u16 {
    let probe = Hello { attempt: AttemptId(0), ..hello(7, "archipelago", 0, CONTROL) };
    match greet(control, probe, 1 << 20) {
        (_, Handshake::Welcome(welcome)) => welcome.hello.seats[1],
        (_, words) => panic!("{words:?}"),
    }
}

/// A stranger with a lane to the first data arbiter of a node.
#[derive(Debug)]
pub struct Stranger {
    socket: TcpStream,
    theirs: Hello,
    lane: BytesMut,
    streams: u32,
    last_words: Option<String>,
}

impl Stranger {
    /// Meets the node whose control arbiter listens at `control`, for the `attempt`th time.
    ///
    /// # Panics
    ///
    /// If it is not let in.
    pub fn meet(control: u16, attempt: u64) -> Self {
        Self::meet_as(control, Hello { attempt: AttemptId(attempt), ..hello(8, "archipelago", 1, DATA) })
    }

    /// Meets it as a light client, the `n`th stranger.
    ///
    /// # Panics
    ///
    /// If it is not let in.
    pub fn client(control: u16, n: u64) -> Self {
        Self::meet_as(control, Hello { kind: PeerKind::Client, ..hello(n, "archipelago", 0, DATA) })
    }

    fn meet_as(control: u16, hello: Hello) -> Self {
        match greet(data_port(control), hello, 1 << 20) {
            (socket, Handshake::Welcome(welcome)) => {
                let (lane, theirs) = (BytesMut::new(), welcome.hello);
                Self { socket, theirs, lane, streams: 0, last_words: None }
            }
            (_, words) => panic!("{words:?}"),
        }
    }

    /// The numbers of a kind and of one of its messages.
    ///
    /// # Panics
    ///
    /// If the node has none of these names.
    pub fn numbers(&self, kind: &str, message: &str) -> (u16, u16) {
        let number = |at: Option<usize>| u16::try_from(at.expect("it is there")).expect("few of them");
        let at = self.theirs.kinds.iter().position(|entry| entry.name.as_str().ends_with(kind));
        let messages = &self.theirs.kinds[usize::from(number(at))].messages;
        let is_it = |name: &str| name.rsplit(|c: char| !c.is_alphanumeric()).next() == Some(message);
        (number(at), number(messages.iter().position(|(_, name)| is_it(name.as_str()))))
    }

    /// Says something on the lane. A node that has gone does not hear it.
    ///
    /// # Panics
    ///
    /// If the frame is too long.
    pub fn say(&mut self, frame: &Frame<'_>) {
        let mut lane = BytesMut::new();
        let encode = |out: &mut BytesMut| {
            frame.encode(out);
            Ok::<_, FrameError>(())
        };
        write_frame(&mut lane, 1 << 20, encode).expect("a short frame");
        drop(self.socket.write_all(&chunk(&lane)));
    }

    /// Says the beginning of a frame, and never the rest.
    pub fn say_half(&mut self) {
        drop(self.socket.write_all(&chunk(&[9, 0, 0, 0, 1])));
    }

    /// Sends a frame on a stream of its own, and says that it has `len` bytes.
    pub fn stream(&mut self, transfer: u64, len: usize, frame: &[u8]) {
        self.streams += 1;
        let body = [&transfer.to_le_bytes()[..], &(len as u64).to_le_bytes(), frame].concat();
        let chunks = [(OPEN, &[][..]), (STREAM, &body), (END, &[])];
        for (kind, payload) in chunks {
            drop(self.socket.write_all(&chunk_of(kind, self.streams, payload)));
        }
    }

    /// The next frame on the lane that `wanted` finds something in; `None` if the node ends the connection or says
    /// nothing for ten seconds.
    pub fn hear<T>(&mut self, wanted: impl Fn(Frame<'_>) -> Option<T>) -> Option<T> {
        self.hear_within(Duration::from_secs(10), wanted)
    }

    /// The same, with another limit.
    ///
    /// # Panics
    ///
    /// If the limit is zero.
    pub fn hear_within<T>(&mut self, limit: Duration, wanted: impl Fn(Frame<'_>) -> Option<T>) -> Option<T> {
        self.socket.set_read_timeout(Some(limit)).expect("a limit");
        let until = Instant::now() + limit;
        while Instant::now() < until {
            while let Ok(Some((frame, used))) = next_frame(&self.lane, 2 << 20) {
                let found = Frame::decode(frame).ok().and_then(&wanted);
                self.lane.advance(used);
                if found.is_some() {
                    return found;
                }
            }
            match next_chunk(&mut self.socket) {
                Ok((LANE, body)) => self.lane.extend_from_slice(&body),
                Ok((PING, body)) => drop(self.socket.write_all(&chunk_of(PONG, 0, &body))),
                Ok((CLOSE, body)) => {
                    self.last_words = Some(String::from_utf8_lossy(&body).into_owned());
                    return None;
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Why the node ended the connection; `None` if it did not.
    pub fn last_words(&mut self) -> Option<String> {
        self.hear(|_| None::<()>);
        self.last_words.take()
    }
}

const LANE: u8 = 1;
const OPEN: u8 = 2;
const STREAM: u8 = 3;
const END: u8 = 4;
const PING: u8 = 8;
const PONG: u8 = 9;
const CLOSE: u8 = 10;
