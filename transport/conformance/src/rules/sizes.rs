//! What the layer above relies on: messages of every size, and streams of many megabytes.

use std::time::Duration;

use archipelago_protocol::contract::{RecvStream, SendStream};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::join;

use super::Pair;
use crate::io::{finish, recv_exact, recv_some, recv_until, send_all};
use crate::pattern::{Pattern, uneven};
use crate::testbed::Testbed;
use crate::time::within;

/// A message of every size from 0 bytes to 1 MiB comes out as it was put in, however it was cut, on lanes and streams.
pub async fn messages_of_every_size(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    for cut in [Cutting::Whole, Cutting::Header, Cutting::Uneven] {
        let (out, incoming) = (&mut *dialler.outgoing, &mut *acceptor.incoming);
        let all = join(send_messages(out, cut), receive_messages(incoming));
        within(LIMIT, "messages on a lane", all).await;
        let mut writer = dialler.streams.open().await.expect("opens");
        let send = async {
            send_messages(&mut *writer, cut).await;
            finish(&mut *writer).await.expect("finishes");
        };
        let receive = async {
            let mut reader = acceptor.streams.next().await.expect("a stream");
            receive_messages(&mut *reader).await;
            let end = recv_some(&mut *reader, &mut BytesMut::new()).await.expect("is finished in good order");
            assert_eq!(end, 0, "nothing comes after the last message");
        };
        within(LIMIT, "messages on a stream", join(send, receive)).await;
    }
}

/// Where a message is cut when it is sent.
#[derive(Clone, Copy, Debug)]
enum Cutting {
    /// Nowhere.
    Whole,
    /// In the middle of its header, after it, and before its last byte; with nothing at all in between.
    Header,
    /// Anywhere.
    Uneven,
}

async fn send_messages(out: &mut dyn SendStream, cut: Cutting) {
    for (n, len) in lengths().enumerate() {
        let mut message = BytesMut::with_capacity(4 + len);
        message.put_u32(u32::try_from(len).expect("at most a MiB"));
        message.put(Pattern(n as u64).bytes(0, len));
        let mut message = message.freeze();
        for at in cuts(cut, message.len()) {
            send_all(out, message.split_to(at)).await.expect("sends");
        }
        send_all(out, message).await.expect("sends");
    }
}

/// The lengths of the pieces before the last one.
fn cuts(cut: Cutting, len: usize) -> Vec<usize> {
    match cut {
        Cutting::Whole => vec![],
        Cutting::Header => vec![0, 1, 0, 2, 1, (len - 4).saturating_sub(1)],
        Cutting::Uneven => {
            let mut pieces: Vec<usize> = uneven(len, 9_000).collect();
            pieces.pop();
            pieces
        }
    }
}

async fn receive_messages(incoming: &mut dyn RecvStream) {
    let mut rest = BytesMut::new();
    for (n, len) in lengths().enumerate() {
        let header = recv_exact(incoming, &mut rest, 4).await.expect("receives");
        assert_eq!(*header, u32::try_from(len).expect("at most a MiB").to_be_bytes(), "header {n}");
        let message = recv_exact(incoming, &mut rest, len).await.expect("receives");
        assert_eq!(message.len(), len, "message {n} is whole");
        Pattern(n as u64).check(0, &message);
    }
    assert!(rest.is_empty(), "nothing comes after the last message");
}

/// Every small length, and around every power of two up to 1 MiB.
fn lengths() -> impl Iterator<Item = usize> {
    let small = 0..70;
    let powers = (7..=20).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    small.chain(powers.filter(|len| *len <= 1 << 20))
}

/// A stream of 64 MiB comes out whole and in order.
pub async fn large_stream(bed: &dyn Testbed) {
    let pair = Pair::new(bed).await;
    let send = async {
        let mut writer = pair.dialler.streams.open().await.expect("opens");
        let mut at = 0;
        while at < LARGE {
            send_all(&mut *writer, Pattern(64).bytes(at, CHUNK)).await.expect("sends");
            at += CHUNK;
        }
        finish(&mut *writer).await.expect("finishes");
    };
    let receive = async {
        let mut reader = pair.acceptor.streams.next().await.expect("a stream");
        let mut at = 0;
        let mut rest = BytesMut::new();
        while recv_until(&mut *reader, &mut rest, |bytes| bytes.len() >= CHUNK).await.expect("receives")
            || !rest.is_empty()
        {
            let piece: Bytes = rest.split().freeze();
            Pattern(64).check(at, &piece);
            at += piece.len();
        }
        assert_eq!(at, LARGE, "the stream is whole");
    };
    within(LIMIT, "64 MiB on one stream", join(send, receive)).await;
}

const LIMIT: Duration = Duration::from_secs(90);
const LARGE: usize = 64 << 20;
const CHUNK: usize = 1 << 20;
