//! Who is on the other side.

use archipelago_protocol::contract::{Endpoint, PeerIdentity, TransportError};
use futures_util::future::join;

use crate::party::{CONNECT_LIMIT, connect, greet};
use crate::testbed::Testbed;
use crate::time::within;

/// Where the transport is secured, a connection exists only after both sides have proven themselves; who cannot is
/// refused, and both sides are told why. Where it is not, nobody seems to be proven.
pub async fn peer_is_proven(bed: &dyn Testbed) {
    let (a, b) = (bed.endpoint().await, bed.endpoint().await);
    let (mut dialler, mut acceptor) = connect(&*a, b.address(), &*b).await;
    greet(&mut dialler, &mut acceptor).await;
    assert_eq!(dialler.peer, bed.identity(&*b), "who was dialled");
    assert_eq!(acceptor.peer, bed.identity(&*a), "who has dialled");
    let stranger = bed.stranger().await;
    if bed.secured() {
        for peer in [&dialler.peer, &acceptor.peer] {
            assert!(peer.fingerprint.is_some() && !peer.names.is_empty(), "proven as somebody: {peer:?}");
        }
        let stranger = stranger.expect("a secured transport has strangers");
        refused(&*stranger, &*a).await;
        refused(&*a, &*stranger).await;
        // Nobody else suffers from it.
        let (mut dialler, mut acceptor) = connect(&*b, a.address(), &*a).await;
        greet(&mut dialler, &mut acceptor).await;
    } else {
        assert!(stranger.is_none(), "without security there are no strangers");
        assert_eq!(dialler.peer, PeerIdentity::default(), "nobody has proven anything");
        assert_eq!(acceptor.peer, PeerIdentity::default(), "nobody has proven anything");
    }
}

/// Both sides learn that there is no connection, and why.
async fn refused(from: &dyn Endpoint, to: &dyn Endpoint) {
    let both = join(from.dial(to.address()), to.accept());
    let (dialled, accepted) = within(CONNECT_LIMIT, "both sides are told of a refusal", both).await;
    for (side, answer) in [("dial", dialled), ("accept", accepted)] {
        match answer {
            Err(TransportError::Refused { reason }) => assert!(!reason.is_empty(), "{side} says why"),
            other => panic!("{side} with wrong credentials: {other:?}"),
        }
    }
}
