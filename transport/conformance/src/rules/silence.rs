//! Silence, and what is no silence.

use std::future::poll_fn;

use archipelago_protocol::contract::TransportError;
use bytes::Bytes;
use futures_util::future::join4;

use super::{Pair, is_lost, silence};
use crate::io::{recv_until_end, send_all};
use crate::party::{Party, greet};
use crate::pattern::Pattern;
use crate::testbed::{Cut, Testbed};
use crate::time::{now, sleep, within};

/// A peer that vanished without a word ends the connection as lost within the silence limit, on both sides, also if
/// nothing is being sent; a peer that only has nothing to say does not.
pub async fn silence_is_noticed(bed: &dyn Testbed) {
    nothing_to_say(bed).await;
    while_idle(bed).await;
    while_sending(bed).await;
    one_way(bed, Cut::Towards).await;
    one_way(bed, Cut::Back).await;
}

/// A connection that nobody uses lives on.
async fn nothing_to_say(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    sleep(bed.silence_limit() * 3).await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
}

async fn while_idle(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
    pair.cable.cut(Cut::Both);
    pair.both_lost(silence(bed)).await;
    for side in [&mut pair.dialler, &mut pair.acceptor] {
        for (operation, error) in side.every_answer().await {
            assert!(is_lost(&error), "{operation} on a lost connection: {error}");
        }
    }
}

/// Those who send, on the lane or on a stream, and those who wait for a stream's bytes are told as well.
async fn while_sending(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, cable, .. } = &mut pair;
    let mut writer = dialler.streams.open().await.expect("opens");
    send_all(&mut *writer, Pattern(1).bytes(0, 1_000)).await.expect("sends");
    let mut reader = within(silence(bed), "the stream", acceptor.streams.next()).await.expect("a stream");
    cable.cut(Cut::Both);
    let all = join4(
        send_until_error(&mut *dialler.outgoing),
        send_until_error(&mut *writer),
        recv_until_end(&mut *reader),
        acceptor.streams.next(),
    );
    let what = "those who send or wait notice the silence";
    let (lane, stream, (heard, read), next) = within(silence(bed), what, all).await;
    Pattern(1).check(0, &heard);
    let read = read.expect_err("a stream that was cut does not end in good order");
    let next = next.map(|_| ()).expect_err("no stream comes over a lost connection");
    for (who, error) in [("lane", lane), ("stream", stream), ("reader", read), ("next", next)] {
        assert!(is_lost(&error), "{who}: {error}");
    }
}

async fn send_until_error(out: &mut dyn archipelago_protocol::contract::SendStream) -> TransportError {
    loop {
        let mut data = Bytes::from_static(&[7; 10_000]);
        if let Err(error) = poll_fn(|cx| out.poll_send(cx, &mut data)).await {
            return error;
        }
        // Over a cut cable bytes are taken until a window is full.
        sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The side that hears nothing notices within the limit, the other one when it hears nothing in turn.
async fn one_way(bed: &dyn Testbed, cut: Cut) {
    let mut pair = Pair::new(bed).await;
    greet(&mut pair.dialler, &mut pair.acceptor).await;
    let Pair { dialler, acceptor, cable, .. } = &mut pair;
    cable.cut(cut);
    let (deaf, other) = if cut == Cut::Towards { (acceptor, dialler) } else { (dialler, acceptor) };
    let begin = now();
    let both = futures_util::future::join(lost(deaf), lost(other));
    let (deaf_at, _) = within(silence(bed) * 2, "both sides notice a one-way silence", both).await;
    assert!(deaf_at - begin <= silence(bed), "the side that hears nothing took {:?}", deaf_at - begin);
}

/// When the connection was found lost.
async fn lost(side: &mut Party) -> tokio::time::Instant {
    let (_, error) = side.end().await;
    assert!(is_lost(&error), "{error}");
    now()
}
