//! Dialling, and dialling again.

use archipelago_protocol::contract::{CloseCode, CloseReason, TransportError};
use bytes::Bytes;

use super::{Pair, SLACK, is_lost, silence};
use crate::party::{Party, connect, greet};
use crate::testbed::{Cut, Testbed};
use crate::time::within;

/// After a connection has ended, by either side or by a fault, the same two endpoints can make another.
pub async fn dials_again(bed: &dyn Testbed) {
    let mut pair = Pair::new(bed).await;
    after_a_close(bed, &mut pair).await;
    after_a_drop(bed, &mut pair).await;
    after_a_fault(bed, &mut pair).await;
    the_other_way_round(&pair).await;
    nobody_there(bed, &pair).await;
}

async fn after_a_close(bed: &dyn Testbed, pair: &mut Pair) {
    for dialler_closes in [true, false] {
        greet(&mut pair.dialler, &mut pair.acceptor).await;
        let reason = CloseReason::new(CloseCode::Done, "once more");
        let Pair { dialler, acceptor, .. } = pair;
        let (closing, other) = if dialler_closes { (dialler, acceptor) } else { (acceptor, dialler) };
        closing.streams.close(reason.clone());
        let (_, end) = within(silence(bed), "the other side is told of a close", other.end()).await;
        assert!(matches!(end, TransportError::Closed(ref told) if *told == reason), "{end}");
        pair.connect_again().await;
        greet(&mut pair.dialler, &mut pair.acceptor).await;
    }
}

/// Dropping all parts of a connection ends it.
async fn after_a_drop(bed: &dyn Testbed, pair: &mut Pair) {
    for dialler_drops in [true, false] {
        let (dialler, acceptor) = connect(&*pair.a, pair.cable.address(), &*pair.b).await;
        let (dropped, mut left) = if dialler_drops { (dialler, acceptor) } else { (acceptor, dialler) };
        drop(dropped);
        let (_, end) = within(silence(bed), "the other side notices a drop", left.end()).await;
        assert!(matches!(end, TransportError::Closed(_)) || is_lost(&end), "{end}");
    }
    greet(&mut pair.dialler, &mut pair.acceptor).await;
}

async fn after_a_fault(bed: &dyn Testbed, pair: &mut Pair) {
    pair.cable.cut(Cut::Both);
    pair.both_lost(silence(bed)).await;
    let dial =
        within(bed.dial_limit() + SLACK, "a dial into silence ends", pair.a.dial(pair.cable.address()));
    assert_unavailable(dial.await);
    pair.cable.heal();
    // The dial that was given up may still reach the other side, as a connection that ends at once.
    let dial = within(bed.dial_limit() + SLACK, "a dial after healing", pair.a.dial(pair.cable.address()));
    let mut dialler = Party::new(dial.await.expect("reaches the other side again"));
    dialler.say(MARK).await.expect("sends");
    let mut acceptor = within(silence(bed) * 2, "the new connection", marked(pair)).await;
    greet(&mut dialler, &mut acceptor).await;
    (pair.dialler, pair.acceptor) = (dialler, acceptor);
}

/// The connection over which the mark comes.
async fn marked(pair: &Pair) -> Party {
    loop {
        let mut accepted = crate::party::accept_good(&*pair.b).await;
        if accepted.hear(MARK.len()).await.is_ok_and(|heard| heard == MARK) {
            return accepted;
        }
    }
}

async fn the_other_way_round(pair: &Pair) {
    let (mut dialler, mut acceptor) = connect(&*pair.b, pair.a.address(), &*pair.a).await;
    greet(&mut dialler, &mut acceptor).await;
}

async fn nobody_there(bed: &dyn Testbed, pair: &Pair) {
    let gone = bed.endpoint().await;
    let address = gone.address().clone();
    gone.close(CloseReason::new(CloseCode::Stopping, "gone")).await;
    drop(gone);
    let dial = within(bed.dial_limit() + SLACK, "a dial to nobody ends", pair.a.dial(&address));
    assert_unavailable(dial.await);
}

#[track_caller]
fn assert_unavailable(dialled: Result<archipelago_protocol::contract::Connection, TransportError>) {
    match dialled {
        Err(TransportError::Unavailable { reason, .. }) => assert!(!reason.is_empty(), "says why"),
        other => panic!("nobody answers there, and yet: {other:?}"),
    }
}

const MARK: Bytes = Bytes::from_static(b"the dial after the fault");
