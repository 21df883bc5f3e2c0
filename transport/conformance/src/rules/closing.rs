//! A close and its reason.

use archipelago_protocol::contract::{CloseCode, CloseReason, TransportError};
use bytes::Bytes;
use futures_util::future::join;

use super::{A_WHILE, Pair, silence};
use crate::io::{finish, recv_some, recv_until_end, send_all};
use crate::party::{Party, connect};
use crate::pattern::Pattern;
use crate::testbed::Testbed;
use crate::time::{in_time, within};

/// A close reaches the other side with its code and text, after everything sent before it; from then on every operation
/// on the connection answers with it.
pub async fn close_says_why(bed: &dyn Testbed) {
    either_side(bed).await;
    after_everything_sent(bed).await;
    streams_too(bed).await;
    endpoint_closes_all(bed).await;
}

async fn either_side(bed: &dyn Testbed) {
    let long = "ü".repeat(CloseReason::MAX_TEXT);
    let reasons = [
        CloseReason::new(CloseCode::Done, ""),
        CloseReason::new(CloseCode::Protocol, "that was no frame"),
        CloseReason::new(CloseCode::Other(40_000), long),
    ];
    let mut pair = Pair::new(bed).await;
    for (n, reason) in reasons.into_iter().enumerate() {
        let Pair { dialler, acceptor, .. } = &mut pair;
        let (closing, other) = if n % 2 == 0 { (dialler, acceptor) } else { (acceptor, dialler) };
        // Somebody waits on each side already, and must be woken.
        let close = async {
            crate::time::sleep(A_WHILE / 4).await;
            closing.streams.close(reason.clone());
            assert_closed(&closing.end().await.1, &reason);
        };
        let ((), (_, told)) =
            within(silence(bed), "both sides learn of a close", join(close, other.end())).await;
        assert_closed(&told, &reason);
        assert_every_answer(other, &reason).await;
        assert_every_answer(closing, &reason).await;
        pair.connect_again().await;
    }
}

/// Also if the other side reads nothing until long after, and no more would have fitted.
async fn after_everything_sent(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let (pattern, mut taken) = (Pattern(11), 0);
    while in_time(A_WHILE, pair.dialler.say(pattern.bytes(taken, STEP))).await.is_some() {
        taken += STEP;
        assert!(taken <= bed.window() + STEP, "takes more than its window");
    }
    let reason = CloseReason::new(CloseCode::Stopping, "after all that");
    pair.dialler.streams.close(reason.clone());
    crate::time::sleep(A_WHILE).await;
    let (heard, told) = within(silence(bed) * 4, "everything, then the close", pair.acceptor.end()).await;
    pattern.check(0, &heard);
    // Of the chunk that did not fit whole, a part may have been taken.
    assert!(
        (taken..taken + STEP).contains(&heard.len()),
        "{} of {taken} bytes before the close",
        heard.len()
    );
    assert_closed(&told, &reason);
}

/// A stream that was finished before the close is whole, one that was not ends with the reason.
async fn streams_too(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    let mut readers = Vec::new();
    let mut writers = Vec::new();
    for n in 0..2 {
        let mut writer = dialler.streams.open().await.expect("opens");
        send_all(&mut *writer, Pattern(n).bytes(0, STEP)).await.expect("sends");
        writers.push(writer);
        readers.push(acceptor.streams.next().await.expect("a stream"));
    }
    finish(&mut *writers[0]).await.expect("finishes");
    let reason = CloseReason::new(CloseCode::Replaced, "by another");
    dialler.streams.close(reason.clone());
    for reader in readers {
        within(silence(bed), "a stream ends with its connection", stream_end(reader, &reason)).await;
    }
    for writer in &mut writers[1..] {
        let late = send_all(&mut **writer, Bytes::from_static(b"late")).await;
        assert_closed(&late.expect_err("no stream outlives its connection"), &reason);
    }
}

/// Streams may come in any order: which one it is shows at its first byte.
async fn stream_end(mut reader: Box<dyn archipelago_protocol::contract::RecvStream>, reason: &CloseReason) {
    let (bytes, end) = recv_until_end(&mut *reader).await;
    let finished = bytes.first() == Pattern(0).bytes(0, 1).first();
    Pattern(u64::from(!finished)).check(0, &bytes);
    match end {
        Ok(()) => assert!(finished && bytes.len() == STEP, "an unfinished stream seems to be whole"),
        Err(error) => {
            assert!(!finished, "what was finished before the close is whole: {error}");
            assert_closed(&error, reason);
        }
    }
}

async fn endpoint_closes_all(bed: &dyn Testbed) {
    let (closing, other) = (bed.endpoint().await, bed.endpoint().await);
    let (mut near, mut far) = connect(&*closing, other.address(), &*other).await;
    let (mut far_too, mut near_too) = connect(&*other, closing.address(), &*closing).await;
    let reason = CloseReason::new(CloseCode::Stopping, "the node stops");
    let close = async {
        crate::time::sleep(A_WHILE / 4).await;
        within(silence(bed), "an endpoint closes", closing.close(reason.clone())).await;
    };
    let ((), waiting) = join(close, closing.accept()).await;
    assert!(matches!(waiting, Err(TransportError::Ended)), "accept is told of the end: {waiting:?}");
    for side in [&mut far, &mut far_too, &mut near, &mut near_too] {
        let (_, told) = within(silence(bed), "every connection is closed", side.end()).await;
        assert_closed(&told, &reason);
        assert_every_answer(side, &reason).await;
    }
    let accepted = within(silence(bed), "accept after the end", closing.accept()).await;
    assert!(matches!(accepted, Err(TransportError::Ended)), "{accepted:?}");
    let dialled = within(silence(bed), "dial after the end", closing.dial(other.address())).await;
    assert!(matches!(dialled, Err(TransportError::Ended)), "{dialled:?}");
}

async fn assert_every_answer(side: &mut Party, reason: &CloseReason) {
    for (operation, error) in side.every_answer().await {
        assert!(matches!(&error, TransportError::Closed(told) if told == reason), "{operation}: {error}");
    }
    let mut into = bytes::BytesMut::new();
    let again = recv_some(&mut *side.incoming, &mut into).await;
    assert_closed(&again.expect_err("it stays closed"), reason);
}

#[track_caller]
fn assert_closed(error: &TransportError, reason: &CloseReason) {
    assert!(matches!(error, TransportError::Closed(told) if told == reason), "{error}, not {reason}");
}

/// How much is sent at a time.
const STEP: usize = 50_000;
