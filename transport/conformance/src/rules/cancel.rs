//! Futures that are dropped before they are ready.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use archipelago_protocol::contract::{Endpoint, Streams};
use bytes::Bytes;
use futures_util::future::join;

use super::{Pair, silence};
use crate::io::{finish, recv_until_end, send_all};
use crate::party::{CONNECT_LIMIT, Party, accept_good, greet};
use crate::pattern::Pattern;
use crate::testbed::Testbed;
use crate::time::{sleep, within};

/// Dropping the future of `accept`, `dial`, `open` or `next` loses no connection and no stream that was handed out, and
/// corrupts nothing.
pub async fn cancel_safe(bed: &dyn Testbed) {
    accept(bed).await;
    dial(bed).await;
    open_and_next(bed).await;
}

/// Every dial that succeeds is accepted, however often `accept` was dropped.
async fn accept(bed: &dyn Testbed) {
    let (a, b) = (bed.endpoint().await, bed.endpoint().await);
    let dials = async {
        let mut dialled = Vec::new();
        for n in 0..ROUNDS {
            let mut party = Party::new(a.dial(b.address()).await.expect("dials"));
            party.say(Bytes::copy_from_slice(&[n])).await.expect("sends");
            dialled.push(party);
        }
        dialled
    };
    let accepts = async {
        let mut accepted = Vec::new();
        let mut polls = 1;
        while accepted.len() < usize::from(ROUNDS) {
            if let Some(connection) = abandon(polls, b.accept()).await {
                accepted.push(Party::new(connection.expect("accepts")));
            }
            polls = polls % 4 + 1;
        }
        accepted
    };
    let both = join(dials, accepts);
    let what = "every connection is accepted although accept is dropped now and then";
    let (_dialled, accepted) = within(CONNECT_LIMIT * 2, what, both).await;
    let mut numbers = Vec::new();
    for mut party in accepted {
        numbers.push(within(CONNECT_LIMIT, "its first byte", party.hear(1)).await.expect("receives")[0]);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..ROUNDS), "every connection is accepted once");
}

/// A dial that is dropped leaves nothing behind that hinders the next.
async fn dial(bed: &dyn Testbed) {
    let (a, b) = (bed.endpoint().await, bed.endpoint().await);
    for polls in 1..=8 {
        // If it was quicker than that, it is dropped all the same.
        drop(abandon(polls, a.dial(b.address())).await);
    }
    let mut dialler = Party::new(within(CONNECT_LIMIT, "dials", a.dial(b.address())).await.expect("dials"));
    dialler.say(MARK).await.expect("sends");
    let what = "the connection among those that were given up";
    let mut acceptor = within(silence(bed) * 2, what, find_marked(&*b)).await;
    greet(&mut dialler, &mut acceptor).await;
}

async fn find_marked(endpoint: &dyn Endpoint) -> Party {
    loop {
        let mut party = accept_good(endpoint).await;
        // One that was given up has ended, or will within the silence limit.
        if party.hear(MARK.len()).await.is_ok_and(|heard| heard == MARK) {
            return party;
        }
    }
}

/// Every stream that was opened arrives once and whole, however often `open` and `next` were dropped.
async fn open_and_next(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let both = join(open_streams(&*pair.dialler.streams), next_streams(&*pair.acceptor.streams));
    within(CONNECT_LIMIT * 2, "every stream arrives although next is dropped now and then", both).await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
}

async fn open_streams(streams: &dyn Streams) {
    for n in 0..ROUNDS {
        let mut polls = 1;
        let mut writer = loop {
            if let Some(writer) = abandon(polls, streams.open()).await {
                break writer.expect("opens");
            }
            polls += 1;
        };
        send_all(&mut *writer, Bytes::copy_from_slice(&[n])).await.expect("sends");
        send_all(&mut *writer, Pattern(n.into()).bytes(0, 10_000)).await.expect("sends");
        finish(&mut *writer).await.expect("finishes");
    }
}

async fn next_streams(streams: &dyn Streams) {
    let (mut numbers, mut polls) = (Vec::new(), 1);
    while numbers.len() < usize::from(ROUNDS) {
        if let Some(reader) = abandon(polls, streams.next()).await {
            let (bytes, end) = recv_until_end(&mut *reader.expect("a stream")).await;
            end.expect("is finished in good order");
            Pattern(bytes[0].into()).check(0, &bytes[1..]);
            assert_eq!(bytes.len(), 10_001, "is whole");
            numbers.push(bytes[0]);
        }
        polls = polls % 4 + 1;
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..ROUNDS), "every stream arrives once");
}

/// Polls a future so many times, each time it wakes; then drops it and gives others a moment.
async fn abandon<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let value = {
        let (mut future, mut polled) = (pin!(future), 0);
        poll_fn(|cx| {
            polled += 1;
            match future.as_mut().poll(cx) {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending if polled >= polls => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    };
    if value.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    value
}

const ROUNDS: u8 = 12;
const MARK: Bytes = Bytes::from_static(b"the one that was not given up");
