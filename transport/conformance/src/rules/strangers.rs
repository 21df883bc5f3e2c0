//! Those who are no nodes: noise, and clients that only take up room.

use std::pin::pin;

use archipelago_protocol::contract::TransportError;
use bytes::Bytes;
use futures_util::future::{Either, select};

use super::{Pair, SLACK, silence};
use crate::io::recv_some;
use crate::party::{CONNECT_LIMIT, Party, accept_good, connect, greet};
use crate::pattern::Pattern;
use crate::testbed::Testbed;
use crate::time::{in_time, now, within};

/// Bytes that are not of this transport end that one connection with a reason; the endpoint goes on.
pub async fn garbage_is_refused(bed: &dyn Testbed) {
    at_the_door(bed).await;
    into_a_connection(bed).await;
}

async fn at_the_door(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    for garbage in garbage() {
        let len = garbage.len();
        if bed.send_garbage(pair.b.address(), garbage).await {
            let accepted = within(bed.dial_limit() + SLACK, "garbage is refused", pair.b.accept()).await;
            match accepted {
                Err(TransportError::Refused { reason } | TransportError::Lost { reason }) => {
                    assert!(!reason.is_empty(), "says why it refused {len} bytes of garbage");
                }
                other => panic!("{len} bytes of garbage were answered with {other:?}"),
            }
        }
        greet(&mut pair.dialler, &mut pair.acceptor).await;
        let (mut dialler, mut acceptor) = connect(&*pair.a, pair.b.address(), &*pair.b).await;
        greet(&mut dialler, &mut acceptor).await;
    }
}

/// Garbage in the middle of a connection ends that one with a reason, or is thrown away; it is never delivered.
async fn into_a_connection(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
    let (mut beside, mut beside_too) = connect(&*pair.a, pair.b.address(), &*pair.b).await;
    pair.cable.inject(Pattern(99).bytes(0, 4_000));
    let Pair { dialler, acceptor, .. } = &mut pair;
    match in_time(silence(bed), recv_some(&mut *acceptor.incoming, &mut acceptor.rest)).await {
        Some(Ok(_)) => panic!("garbage was delivered"),
        Some(Err(error)) => {
            assert_ended(&error);
            let (_, error) = within(silence(bed), "the other side is told", dialler.end()).await;
            assert_ended(&error);
        }
        None => greet(dialler, acceptor).await,
    }
    greet(&mut beside, &mut beside_too).await;
    pair.connect_again().await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
}

#[track_caller]
fn assert_ended(error: &TransportError) {
    let said = match error {
        TransportError::Closed(reason) => !reason.text.is_empty(),
        TransportError::Lost { reason } | TransportError::Refused { reason } => !reason.is_empty(),
        _ => false,
    };
    assert!(said, "garbage ended the connection, and the reason is {error:?}");
}

fn garbage() -> [Bytes; 4] {
    [
        Bytes::from_static(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"),
        Bytes::from_static(&[0; 64]),
        Bytes::from_static(&[0xff; 1_200]),
        Pattern(77).bytes(0, 1_200),
    ]
}

/// A client that connects and says nothing delays nobody else and is dropped in time.
pub async fn slow_dialers_block_nobody(bed: &dyn Testbed) {
    let (a, b) = (bed.endpoint().await, bed.endpoint().await);
    let mut mutes = Vec::new();
    for _ in 0..MUTES {
        mutes.push(bed.connect_and_say_nothing(b.address()).await);
    }
    let begin = now();
    let mut connections: Vec<(Party, Party)> = Vec::new();
    for _ in 0..3 {
        connections.push(connect(&*a, b.address(), &*b).await);
    }
    let taken = now() - begin;
    assert!(taken < bed.dial_limit(), "{MUTES} silent clients delayed others by {taken:?}");
    // Somebody has to accept for the time to run: what it answers about them does not matter.
    let all_dropped = async {
        for mute in &mut mutes {
            mute.dropped().await;
        }
    };
    let limit = bed.dial_limit() + SLACK;
    let (all_dropped, accepting) = (pin!(all_dropped), pin!(accept_good(&*b)));
    let first = within(limit, "silent clients are dropped", select(all_dropped, accepting)).await;
    assert!(matches!(first, Either::Left(_)), "a silent client was let in");
    for (dialler, acceptor) in &mut connections {
        within(CONNECT_LIMIT, "others go on", greet(dialler, acceptor)).await;
    }
}

const MUTES: usize = 16;
