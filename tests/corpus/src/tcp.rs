//! The bytes of a TCP connection: the preamble, and the chunks that lane and streams are divided into.
//!
//! The decoders of the transport are reached as a stranger reaches them, over a connection to an endpoint of this process.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use archipelago_protocol::contract::{CloseCode, CloseReason, Endpoint, Transport, TransportError};
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::memory;
use crate::talk::listen;

/// Everything that a stranger says: if the first byte is even, a good preamble and the rest of the bytes, else only the
/// rest of the bytes.
pub(crate) fn tcp(bytes: &[u8]) -> bool {
    let Some((how, rest)) = bytes.split_first() else { return false };
    let said = if how % 2 == 0 { [&PREAMBLE[..], rest].concat() } else { rest.to_vec() };
    RIG.with(|rig| {
        let rig = rig.get_or_init(Rig::new);
        memory::within(said.len(), MEMORY, || rig.hear(&said))
    })
}

/// Talks that a peer could have: `PREAMBLE` and chunks.
pub(crate) fn talks() -> Vec<Vec<u8>> {
    let stream = [chunk(2, 1, b""), chunk(3, 1, b"data"), chunk(4, 1, b"")].concat();
    let given_up = [chunk(2, 1, b""), chunk(5, 1, b""), chunk(2, 2, b"")].concat();
    let control = [chunk(7, 0, &[9, 0, 0, 0]), chunk(8, 0, b""), chunk(9, 0, b""), chunk(6, 1, b"")].concat();
    let too_much = chunk(1, 0, &[7; 5_000]);
    let good = [chunk(1, 0, b"hello"), stream, control, chunk(10, 0, b"\x00\x00bye")];
    let mut talks = vec![good.concat(), given_up, too_much, chunk(1, 7, b"no lane"), vec![99; 9]];
    talks.iter_mut().for_each(|talk| talk.insert(0, 0));
    talks.push([&[1][..], &PREAMBLE].concat());
    talks.push(b"\x01GET / HTTP/1.1\r\n\r\n".to_vec());
    talks
}

fn chunk(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &stream.to_le_bytes(), &(payload.len() as u32).to_le_bytes(), payload].concat()
}

thread_local! {
    static RIG: OnceCell<Rig> = const { OnceCell::new() };
}

struct Rig {
    runtime: Runtime,
    endpoint: Box<dyn Endpoint>,
    at: SocketAddr,
}

impl Rig {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let transport = TcpTransport::new(settings(), Security::Insecure);
        let at = "127.0.0.1:0".parse().expect("an address");
        let endpoint = runtime.block_on(transport.open(&at)).expect("loopback can be listened at");
        let at = endpoint.address().to_string().parse().expect("an IP address");
        Self { runtime, endpoint, at }
    }

    /// Lets a stranger say these bytes. Both sides come to an end, and this side in good order.
    #[expect(clippy::disallowed_methods, reason = "a real transport is tested against real time")]
    fn hear(&self, said: &[u8]) -> bool {
        let both = async { tokio::join!(stranger(self.at, said), listen(&*self.endpoint)) };
        let limited = self.runtime.block_on(async { tokio::time::timeout(LIMIT, both).await });
        let (answered, (heard, end)) = limited.expect("a talk comes to its end");
        assert!(heard <= said.len(), "{heard} bytes were heard of {}", said.len());
        assert!(!end.to_string().is_empty());
        told(&answered, said, &end);
        !matches!(
            end,
            TransportError::Refused { .. }
                | TransportError::Closed(CloseReason { code: CloseCode::Protocol, .. })
        )
    }
}

/// Who breaks the rules of the transport is told so.
fn told(answered: &[u8], said: &[u8], end: &TransportError) {
    let TransportError::Closed(reason) = end else { return };
    let own_words = said.windows(reason.text.len().max(1)).any(|part| part == reason.text.as_bytes());
    if reason.code == CloseCode::Protocol && !own_words {
        let close = [&reason.code.as_u16().to_le_bytes(), reason.text.as_bytes()].concat();
        assert!(answered.ends_with(&chunk(10, 0, &close)), "not told: {reason}");
        assert!(reason.text.len() <= CloseReason::MAX_TEXT);
    }
}

/// Says everything, and listens to what the other side says. That one may hang up in the middle.
#[expect(clippy::disallowed_methods, reason = "a stranger has a socket of its own")]
async fn stranger(at: SocketAddr, said: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(at).await.expect("somebody listens");
    let _ = socket.write_all(said).await;
    let _ = socket.shutdown().await;
    let mut answered = Vec::new();
    let _ = socket.read_to_end(&mut answered).await;
    answered
}

fn settings() -> TcpSettings {
    let number = |number| NonZeroU32::new(number).expect("not zero");
    TcpSettings {
        lane_window: number(4_096),
        stream_window: number(1_024),
        max_streams: number(4),
        handshake_limit: LIMIT / 2,
        ..TcpSettings::default()
    }
}

/// Magic, version 1, and windows of 64 KiB, 64 KiB and 4 streams.
const PREAMBLE: [u8; 20] = *b"\xa7rchip\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x04\x00\x00\x00";
const LIMIT: Duration = Duration::from_secs(5);
/// A connection has a buffer of 128 KiB, and all its windows; this side's own socket is counted as well.
const MEMORY: (usize, usize) = (4, 1 << 20);
