//! Back-pressure.

use archipelago_protocol::contract::{RecvStream, SendStream};
use bytes::{Bytes, BytesMut};
use futures_util::future::{join, join4};

use super::{A_WHILE, Pair, silence};
use crate::io::recv_some;
use crate::party::greet;
use crate::pattern::Pattern;
use crate::testbed::Testbed;
use crate::time::{in_time, sleep, within};

/// With a peer that does not read, sending becomes pending after a bounded number of bytes, and goes on when it reads
/// again, however long that takes.
///
/// Proves: R123
pub async fn full_means_wait(bed: &dyn Testbed) {
    lane(bed).await;
    both_lanes(bed).await;
    stream(bed).await;
}

async fn lane(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    let mut filled = fill(bed, &mut *dialler.outgoing, Pattern(21)).await;
    // A peer that is slow is not a peer that is gone.
    sleep(bed.silence_limit() * 2).await;
    drain(bed, &mut filled, &mut *dialler.outgoing, &mut *acceptor.incoming).await;
    greet(dialler, acceptor).await;
}

async fn both_lanes(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    let mut there = fill(bed, &mut *dialler.outgoing, Pattern(22)).await;
    let mut back = fill(bed, &mut *acceptor.outgoing, Pattern(23)).await;
    let (len_there, len_back) = (there.len(), back.len());
    let all = join4(
        there.send_rest(&mut *dialler.outgoing),
        back.send_rest(&mut *acceptor.outgoing),
        read_pattern(&mut *acceptor.incoming, Pattern(22), len_there),
        read_pattern(&mut *dialler.incoming, Pattern(23), len_back),
    );
    within(silence(bed) * 4, "two full lanes go on", all).await;
    greet(dialler, acceptor).await;
}

async fn stream(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    let Pair { dialler, acceptor, .. } = &mut pair;
    let mut writer = dialler.streams.open().await.expect("opens");
    let mut filled = fill(bed, &mut *writer, Pattern(24)).await;
    let mut reader = within(silence(bed), "the stream", acceptor.streams.next()).await.expect("a stream");
    drain(bed, &mut filled, &mut *writer, &mut *reader).await;
    greet(dialler, acceptor).await;
}

/// What was sent until nothing more was taken.
struct Filled {
    pattern: Pattern,
    taken: usize,
    /// What `poll_send` has left.
    left: Bytes,
}

impl Filled {
    fn len(&self) -> usize {
        self.taken + self.left.len()
    }

    async fn send_rest(&mut self, out: &mut dyn SendStream) {
        let left = &mut self.left;
        std::future::poll_fn(|cx| out.poll_send(cx, left)).await.expect("goes on when it is read");
    }
}

/// Sends until it stays pending.
async fn fill(bed: &dyn Testbed, out: &mut dyn SendStream, pattern: Pattern) -> Filled {
    let mut taken = 0;
    loop {
        let mut left = pattern.bytes(taken, STEP);
        let sent = in_time(A_WHILE, std::future::poll_fn(|cx| out.poll_send(cx, &mut left))).await;
        taken += STEP - left.len();
        assert!(taken <= bed.window(), "{taken} bytes taken and nobody reads");
        match sent {
            Some(sent) => sent.expect("sends"),
            None => return Filled { pattern, taken, left },
        }
    }
}

/// Reads all of it, while what was left is sent.
async fn drain(
    bed: &dyn Testbed,
    filled: &mut Filled,
    out: &mut dyn SendStream,
    incoming: &mut dyn RecvStream,
) {
    let (pattern, len) = (filled.pattern, filled.len());
    let both = join(filled.send_rest(out), read_pattern(incoming, pattern, len));
    within(silence(bed) * 4, "sending goes on when the peer reads", both).await;
}

async fn read_pattern(incoming: &mut dyn RecvStream, pattern: Pattern, len: usize) {
    let (mut at, mut rest) = (0, BytesMut::new());
    while at < len {
        assert_ne!(
            recv_some(incoming, &mut rest).await.expect("receives"),
            0,
            "ends after {at} of {len} bytes"
        );
        pattern.check(at, &rest);
        at += rest.split().len();
    }
    assert_eq!(at, len, "what was left in `data` is sent once");
}

const STEP: usize = 64 << 10;
