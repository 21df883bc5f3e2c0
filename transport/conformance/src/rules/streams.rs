//! Streams beside the lane.

use std::time::Duration;

use archipelago_protocol::contract::{RecvStream, Streams};
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, join, join_all, select};

use super::{Pair, silence};
use crate::io::{finish, recv_some, recv_until, recv_until_end, send_all};
use crate::party::{Party, greet};
use crate::pattern::Pattern;
use crate::testbed::Testbed;
use crate::time::{in_time, within};

/// A stream delivers what was sent on it, whole and in order, or its reader gets an error; and while it carries a large
/// transfer the lane goes on.
pub async fn streams_stand_beside(bed: &dyn Testbed) {
    many_at_once(bed).await;
    given_up(bed).await;
    lane_goes_on(bed).await;
    neither_blocks_the_other(bed).await;
}

/// Streams in both directions at once, each whole; empty ones too.
async fn many_at_once(bed: &dyn Testbed) {
    let pair = Pair::new(bed).await;
    let (near, far) = (&*pair.dialler.streams, &*pair.acceptor.streams);
    let all = join(
        join(join_all((0..STREAMS).map(|n| send_stream(near, n))), receive_streams(far)),
        join(join_all((0..STREAMS).map(|n| send_stream(far, n))), receive_streams(near)),
    );
    within(Duration::from_secs(30), "streams in both directions", all).await;
}

/// Sends a stream whose first byte is its number, which says how long it is.
async fn send_stream(streams: &dyn Streams, number: u8) {
    let mut writer = streams.open().await.expect("opens");
    send_all(&mut *writer, Bytes::copy_from_slice(&[number])).await.expect("sends");
    send_all(&mut *writer, Pattern(number.into()).bytes(0, length(number))).await.expect("sends");
    finish(&mut *writer).await.expect("finishes");
}

async fn receive_streams(streams: &dyn Streams) {
    let mut numbers = Vec::new();
    for _ in 0..STREAMS {
        let mut reader = streams.next().await.expect("a stream");
        let (bytes, end) = recv_until_end(&mut *reader).await;
        end.expect("the stream is finished in good order");
        let number = bytes[0];
        Pattern(number.into()).check(0, &bytes[1..]);
        assert_eq!(bytes.len(), 1 + length(number), "stream {number} is whole");
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..STREAMS), "every stream once: {numbers:?}");
}

const fn length(number: u8) -> usize {
    number as usize * 40_000
}

/// A stream whose writer gives up is an error for its reader, never a shorter stream. A reader that gives up hurts nobody.
async fn given_up(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    for len in [1, 30_000] {
        let mut writer = dialler.streams.open().await.expect("opens");
        send_all(&mut *writer, Pattern(1).bytes(0, len)).await.expect("sends");
        let mut reader = within(silence(bed), "the stream", acceptor.streams.next()).await.expect("a stream");
        drop(writer);
        let (bytes, end) = within(silence(bed), "the reader is told", recv_until_end(&mut *reader)).await;
        Pattern(1).check(0, &bytes);
        assert!(end.is_err(), "a stream that was given up seems to be whole");
    }
    let mut writer = dialler.streams.open().await.expect("opens");
    send_all(&mut *writer, Pattern(1).bytes(0, 1_000)).await.expect("sends");
    drop(within(silence(bed), "the stream", acceptor.streams.next()).await.expect("a stream"));
    greet(dialler, acceptor).await;
}

/// Bytes go back and forth on the lane while a large transfer is under way, and while it stands still half-way.
async fn lane_goes_on(bed: &dyn Testbed) {
    let pair = Pair::new(bed).await;
    let mut writer = pair.dialler.streams.open().await.expect("opens");
    let (mut near, mut far) = (pair.dialler, pair.acceptor);
    let send = async {
        send_all(&mut *writer, Pattern(9).bytes(0, LARGE)).await.expect("sends");
        finish(&mut *writer).await.expect("finishes");
    };
    let receive = async {
        let mut reader = far.streams.next().await.expect("a stream");
        let half = receive_half(&mut *reader).await;
        within(silence(bed), "the lane while a stream stands still", ping(&mut near, &mut far, 50)).await;
        let rest = receive_rest(&mut *reader, half);
        pings_during(rest, &mut near, &mut far).await
    };
    let all = join(send, receive);
    let ((), pings) = within(Duration::from_secs(60), "a large stream beside the lane", all).await;
    assert!(pings >= 5, "only {pings} round trips on the lane during a large transfer");
}

/// How many round trips the lane makes until `transfer` is done.
async fn pings_during(transfer: impl Future<Output = ()>, near: &mut Party, far: &mut Party) -> usize {
    let (mut transfer, mut pings) = (std::pin::pin!(transfer), 0);
    loop {
        let one = std::pin::pin!(ping(near, far, 1));
        match select(one, transfer.as_mut()).await {
            Either::Left(_) => pings += 1,
            Either::Right(((), one)) => {
                one.await;
                return pings;
            }
        }
    }
}

async fn ping(near: &mut Party, far: &mut Party, times: usize) {
    for _ in 0..times {
        near.say(Bytes::from_static(b"ping")).await.expect("sends");
        assert_eq!(far.hear(4).await.expect("receives"), "ping");
        far.say(Bytes::from_static(b"pong")).await.expect("sends");
        assert_eq!(near.hear(4).await.expect("receives"), "pong");
    }
}

/// Receives half of the transfer, and says how much that was: a little more may have come.
async fn receive_half(reader: &mut dyn RecvStream) -> usize {
    let mut half = BytesMut::new();
    recv_until(reader, &mut half, |bytes| bytes.len() >= LARGE / 2).await.expect("receives");
    Pattern(9).check(0, &half);
    half.len()
}

async fn receive_rest(reader: &mut dyn RecvStream, from: usize) {
    let (mut at, mut rest) = (from, BytesMut::new());
    while recv_some(reader, &mut rest).await.expect("the stream goes on") > 0 {
        Pattern(9).check(at, &rest);
        at += rest.split().len();
    }
    assert_eq!(at, LARGE, "the stream is whole");
}

/// A stream that nobody reads does not stop the lane, and a lane that nobody reads does not stop a stream.
async fn neither_blocks_the_other(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    let mut full = dialler.streams.open().await.expect("opens");
    let more_than_fits = Bytes::from(vec![0xEE; bed.window() + 1]);
    let filled = in_time(super::A_WHILE, send_all(&mut *full, more_than_fits.clone())).await;
    assert!(filled.is_none(), "more than the window is taken and nobody reads");
    within(silence(bed), "the lane beside a full stream", ping(dialler, acceptor, 10)).await;
    let _ = in_time(super::A_WHILE, dialler.say(more_than_fits)).await;
    let beside = join(send_stream(&*dialler.streams, 7), receive_numbered(&*acceptor.streams, 7));
    within(silence(bed) * 2, "a stream beside a full lane", beside).await;
}

/// Receives the stream of this number, past others that are left unread.
async fn receive_numbered(streams: &dyn Streams, number: u8) {
    let mut others = Vec::new();
    loop {
        let mut reader = streams.next().await.expect("a stream");
        let mut bytes = BytesMut::new();
        recv_some(&mut *reader, &mut bytes).await.expect("receives");
        if bytes[0] == number {
            let (rest, end) = recv_until_end(&mut *reader).await;
            end.expect("is finished in good order");
            assert_eq!(bytes.len() + rest.len(), 1 + length(number), "is whole");
            return;
        }
        others.push(reader);
    }
}

const STREAMS: u8 = 8;
const LARGE: usize = 32 << 20;
