use alloc::vec::Vec;

use super::super::hello::{LaneEnds, Seat, Versions, Welcome};
use super::super::samples::hello;
use super::*;
use crate::identity::{Namespace, NodeId};

/// What both sides answer when the second is changed; they must agree on the reason.
fn refused(change: impl Fn(&mut Hello)) -> (RefusalReason, Vec<String>) {
    let (ours, mut theirs) = (hello(1), hello(2));
    change(&mut theirs);
    let (here, there) = (negotiate(&ours, &theirs).unwrap_err(), negotiate(&theirs, &ours).unwrap_err());
    assert_eq!(here.reason, there.reason);
    (here.reason, Vec::from([here.text, there.text]))
}

fn names_both(texts: &[String], ours: &str, theirs: &str) -> bool {
    texts.iter().all(|text| text.contains(ours) && text.contains(theirs))
}

#[test]
fn two_members_of_one_cluster_speak_the_newest_common_version() {
    let (ours, mut theirs) = (hello(1), hello(2));
    assert_eq!(negotiate(&ours, &theirs), Ok(3));
    theirs.versions = Versions { oldest: 2, newest: 9 };
    assert_eq!(negotiate(&ours, &theirs), Ok(3));
    theirs.versions = Versions { oldest: 1, newest: 2 };
    assert_eq!((negotiate(&ours, &theirs), negotiate(&theirs, &ours)), (Ok(2), Ok(2)));
}

#[test]
fn who_has_no_version_in_common_is_refused() {
    for range in [(4, 9), (0, 0), (3, 1)] {
        let (reason, texts) = refused(|hello| hello.versions = Versions { oldest: range.0, newest: range.1 });
        assert_eq!(reason, RefusalReason::Version);
        assert!(names_both(&texts, "1 to 3", &alloc::format!("{} to {}", range.0, range.1)), "{texts:?}");
    }
}

#[test]
fn another_cluster_or_namespace_is_refused_for_every_kind_of_peer() {
    for kind in [PeerKind::Member, PeerKind::Client, PeerKind::Datacenter] {
        let (reason, texts) = refused(|hello| (hello.kind, hello.cluster) = (kind, "shop".into()));
        assert_eq!(reason, RefusalReason::Cluster);
        assert!(names_both(&texts, "\"bank\"", "\"shop\""), "{texts:?}");
        let test = Namespace::new("test").unwrap();
        let (reason, texts) = refused(|hello| (hello.kind, hello.namespace) = (kind, test.clone()));
        assert_eq!(reason, RefusalReason::Namespace);
        assert!(names_both(&texts, "\"prod\"", "\"test\""), "{texts:?}");
    }
}

#[test]
fn members_share_a_datacenter_and_other_peers_need_not() {
    let (reason, texts) = refused(|hello| hello.datacenter = "south".into());
    assert_eq!(reason, RefusalReason::Datacenter);
    assert!(names_both(&texts, "\"north\"", "\"south\""), "{texts:?}");
    for kind in [PeerKind::Client, PeerKind::Datacenter] {
        let theirs = Hello { kind, datacenter: "south".into(), ..hello(2) };
        assert_eq!(negotiate(&hello(1), &theirs), Ok(3));
    }
}

#[test]
fn members_share_a_store_and_are_told_what_to_set() {
    for store in [Some("embedded:7".into()), None] {
        let (reason, texts) = refused(|hello| hello.store = store.clone());
        assert_eq!(reason, RefusalReason::Store);
        let advice = "the embedded backend cannot span processes; set backend.kind or embedded.serve";
        assert!(names_both(&texts, "\"etcd:1\"", advice), "{texts:?}");
    }
    let (_, texts) = refused(|hello| hello.store = Some("etcd:2".into()));
    assert!(names_both(&texts, "\"etcd:2\"", "the same backend.kind, and the same place"), "{texts:?}");
    let client = Hello { kind: PeerKind::Client, store: None, kinds: Vec::new(), ..hello(2) };
    assert_eq!(negotiate(&hello(1), &client), Ok(3), "a client has neither store nor kinds");
}

#[test]
fn a_node_that_dialled_itself_notices() {
    let (reason, texts) = refused(|hello| hello.node.id = NodeId::new(1));
    assert_eq!(reason, RefusalReason::Ourselves);
    assert!(names_both(&texts, "0000000000000001", "10.0.0.7:4710"), "{texts:?}");
}

#[test]
fn a_node_at_the_address_of_another_is_refused() {
    let (reason, texts) = refused(|hello| hello.expects = Some(NodeId::new(9)));
    assert_eq!(reason, RefusalReason::Addressee);
    assert!(names_both(&texts, "0000000000000009", "0000000000000001"), "{texts:?}");
    let theirs = Hello { expects: Some(NodeId::new(1)), ..hello(2) };
    assert_eq!(negotiate(&hello(1), &theirs), Ok(3));
}

#[test]
fn a_connection_joins_the_seats_that_both_sides_mean() {
    let lane = LaneEnds { from: Seat::Data(2), to: Seat::Data(0) };
    let (reason, texts) = refused(|hello| hello.lane = lane);
    assert_eq!(reason, RefusalReason::Seat);
    assert!(names_both(&texts, "data 2", "control"), "{texts:?}");
    let (ours, theirs) = (Hello { lane, ..hello(1) }, Hello { lane: lane.mirrored(), ..hello(2) });
    assert_eq!(negotiate(&ours, &theirs), Ok(3));
}

#[test]
fn two_clients_have_nothing_to_say_to_each_other() {
    let client = |id| Hello { kind: PeerKind::Client, ..hello(id) };
    assert_eq!(negotiate(&client(1), &client(2)).unwrap_err().reason, RefusalReason::Kind);
    assert_eq!(negotiate(&client(1), &hello(2)), Ok(3));
}

#[test]
fn a_kind_of_peer_from_the_future_is_refused() {
    let theirs = Hello { kind: PeerKind::Other(7), ..hello(2) };
    assert_eq!(negotiate(&hello(1), &theirs).unwrap_err().reason, RefusalReason::Kind);
}

#[test]
fn a_welcome_is_checked_like_a_hello() {
    let welcome = Welcome { version: 2, hello: hello(2) };
    assert_eq!(welcome.check(&hello(1)), Ok(2));
    assert_eq!(welcome.check(&hello(2)).unwrap_err().reason, RefusalReason::Ourselves);
    let wrong = Welcome { version: 4, ..welcome };
    assert_eq!(wrong.check(&hello(1)).unwrap_err().reason, RefusalReason::Version);
}
