//! Lanes: in order, without a gap, nothing twice.

use archipelago_protocol::contract::{CloseCode, CloseReason};
use bytes::Bytes;
use futures_util::future::{join, join4};

use super::{A_WHILE, Pair, silence};
use crate::io::send_all;
use crate::party::{Party, greet};
use crate::pattern::{Pattern, uneven};
use crate::testbed::{Cut, Testbed};
use crate::time::{sleep, stays_pending, within};

/// What one side puts on a lane comes out on the other in the same order, without a gap.
pub async fn lane_keeps_order(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    both_ways(&mut pair).await;
    short_interruption(bed, &mut pair).await;
}

/// Both directions at once, in chunks of all sizes, while the other side reads at its own pace.
async fn both_ways(pair: &mut Pair) {
    let Pair { dialler, acceptor, .. } = pair;
    let (there, back) = (Pattern(1), Pattern(2));
    let all = join4(
        say_unevenly(&mut *dialler.outgoing, there),
        say_unevenly(&mut *acceptor.outgoing, back),
        hear_all(&mut *acceptor.incoming, there),
        hear_all(&mut *dialler.incoming, back),
    );
    within(std::time::Duration::from_secs(60), "4 MiB each way", all).await;
}

async fn say_unevenly(out: &mut dyn archipelago_protocol::contract::SendStream, pattern: Pattern) {
    let mut at = 0;
    for len in uneven(TOTAL, 40_000) {
        send_all(out, pattern.bytes(at, len)).await.expect("sends");
        at += len;
    }
}

async fn hear_all(incoming: &mut dyn archipelago_protocol::contract::RecvStream, pattern: Pattern) {
    let (mut at, mut rest) = (0, bytes::BytesMut::new());
    while at < TOTAL {
        let len = crate::io::recv_some(incoming, &mut rest).await.expect("receives");
        assert!(len > 0, "a lane does not end before its connection");
        pattern.check(at, &rest.split());
        at += len;
    }
    assert_eq!(at, TOTAL, "no more comes out than was put in");
}

/// An interruption shorter than the silence limit leaves no gap.
async fn short_interruption(bed: &dyn Testbed, pair: &mut Pair) {
    let pattern = Pattern(3);
    pair.dialler.say(pattern.bytes(0, 5_000)).await.expect("sends");
    pair.cable.cut(Cut::Both);
    pair.dialler.say(pattern.bytes(5_000, 5_000)).await.expect("sends into the silence");
    sleep(bed.silence_limit() / 4).await;
    pair.cable.heal();
    pair.dialler.say(pattern.bytes(10_000, 5_000)).await.expect("sends");
    let all = within(silence(bed), "what was held back", pair.acceptor.hear(15_000)).await;
    pattern.check(0, &all.expect("the connection survives"));
}

/// No byte comes out twice, and a new connection begins empty, whatever became of the one before.
///
/// Proves: R101
pub async fn at_most_once(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    one_dial_is_one_connection(&pair).await;
    exactly_what_was_sent(bed, &mut pair).await;
    new_connection_begins_empty(bed).await;
}

async fn one_dial_is_one_connection(pair: &Pair) {
    assert!(stays_pending(A_WHILE, pair.b.accept()).await, "one dial gives one connection");
}

async fn exactly_what_was_sent(bed: &dyn Testbed, pair: &mut Pair) {
    let Pair { dialler, acceptor, .. } = pair;
    let pattern = Pattern(4);
    let say = async {
        let mut at = 0;
        for len in uneven(300_000, 3_000) {
            dialler.say(pattern.bytes(at, len)).await.expect("sends");
            at += len;
        }
        dialler.streams.close(CloseReason::new(CloseCode::Done, "that was all"));
    };
    let ((), (heard, _)) = within(silence(bed), "300 kB and a close", join(say, acceptor.end())).await;
    pattern.check(0, &heard);
    assert_eq!(heard.len(), 300_000, "as much comes out as was put in");
}

/// Bytes and streams of a connection that broke are not seen by the next one between the same two.
async fn new_connection_begins_empty(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
    leave_unread(&mut pair.dialler).await;
    leave_unread(&mut pair.acceptor).await;
    pair.cable.cut(Cut::Both);
    leave_unread(&mut pair.dialler).await;
    leave_unread(&mut pair.acceptor).await;
    pair.both_lost(silence(bed)).await;
    pair.cable.heal();
    pair.connect_again().await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    for side in [dialler, acceptor] {
        let nothing = side.hear(1);
        assert!(stays_pending(A_WHILE, nothing).await, "bytes of the connection before");
        assert!(stays_pending(A_WHILE, side.streams.next()).await, "a stream of the connection before");
    }
    greet(&mut pair.dialler, &mut pair.acceptor).await;
}

async fn leave_unread(side: &mut Party) {
    let old = Bytes::from_static(&[0xAA; 1_000]);
    // Over a cut cable these may be taken or not; neither may show up later.
    let _ = side.say(old.clone()).await;
    let stream = crate::time::in_time(A_WHILE, side.streams.open()).await;
    if let Some(Ok(mut stream)) = stream {
        let _ = crate::time::in_time(A_WHILE, send_all(&mut *stream, old)).await;
    }
}

/// How much goes each way.
const TOTAL: usize = 4 << 20;
