//! Rules about sessions.

use archipelago_directory::{Read, node_record_id};
use archipelago_protocol::contract::{DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::session::{EndReason, Lease};
use archipelago_protocol::time::Millis;

use super::{Fixture, NONCE, OBSERVER, applied, beat, found, info, session, shard};

/// Opening writes only where there is no lease; an id that has ended is not opened again.
pub async fn open_creates_only(f: Fixture) {
    let version = f.open(1).await;
    let seen = f.lease(1).await;
    assert_eq!(seen.lease, Lease::Live { seq: 0, nonce: NONCE, ttl: Millis(6_000) });
    assert_eq!(seen.version, version);
    let again = f.directory.open_session(session(1), NONCE + 1).await.expect("answers");
    assert_eq!(found(again), Some(seen));
    f.end(1).await;
    let revived = f.directory.open_session(session(1), NONCE + 2).await.expect("answers");
    assert!(found(revived).expect("stands").lease.has_ended());
}

/// A beat replaces exactly the version it names.
pub async fn beat_names_its_version(f: Fixture) {
    let first = f.open(1).await;
    let second = applied(f.directory.beat(beat(1, 1, first)).await.expect("beats"));
    assert!(second > first);
    let late = f.directory.beat(beat(1, 2, first)).await.expect("answers");
    let shown = found(late).expect("stands");
    assert_eq!(shown.lease, Lease::Live { seq: 1, nonce: NONCE + 1, ttl: Millis(6_000) });
    assert_eq!(shown.version, second);
    f.expire(1).await;
    let orphan = f.directory.beat(beat(1, 3, second)).await.expect("answers");
    assert_eq!(found(orphan), None, "a beat never creates the record anew");
}

/// An end and a revocation lose against a beat that came in between (H2, mutant 7).
pub async fn end_names_its_version(f: Fixture) {
    let first = f.open(1).await;
    let seen = f.lease(1).await;
    let second = applied(f.directory.beat(beat(1, 1, first)).await.expect("beats"));
    let by = NodeId::new(OBSERVER);
    let end = f.directory.end_session(NodeId::new(1), first, by, EndReason::Silent).await;
    assert_eq!(found(end.expect("answers")).expect("stands").version, second);
    assert_eq!(found(f.directory.revoke(&seen, by).await.expect("answers")).expect("stands").version, second);
    let end = f.directory.end_session(NodeId::new(1), second, by, EndReason::Silent).await;
    applied(end.expect("ends"));
}

/// Nothing is written over an ended lease.
pub async fn ended_is_final(f: Fixture) {
    let version = f.open(1).await;
    f.end(1).await;
    let ended = f.lease(1).await;
    assert!(ended.lease.has_ended());
    let by = NodeId::new(OBSERVER);
    found(f.directory.beat(beat(1, 1, version)).await.expect("answers"));
    found(f.directory.open_session(session(1), NONCE).await.expect("answers"));
    found(f.directory.pin_session(session(1)).await.expect("answers"));
    found(f.directory.revoke(&ended, by).await.expect("answers"));
    f.directory.close_session(session(1)).await.expect("closes");
    assert_eq!(f.lease(1).await, ended);
}

/// After a revocation no beat is applied; the keys stay with the session until it has ended.
pub async fn revoked_stops_beats(f: Fixture) {
    let version = f.open(1).await;
    f.open(2).await;
    let placed = f.place(&shard("Account", 1), 1).await;
    applied(f.directory.revoke(&f.lease(1).await, NodeId::new(OBSERVER)).await.expect("revokes"));
    let shown = found(f.directory.beat(beat(1, 1, version)).await.expect("answers")).expect("stands");
    assert_eq!(shown.lease, Lease::Revoked { ttl: Millis(6_000), by: NodeId::new(OBSERVER) });
    let claim = f.directory.claim(&placed.key, session(2), None).await.expect("answers");
    assert!(matches!(claim, PlacementDecision::Raced { .. }), "{claim:?}");
}

/// After a close the session's keys are free at once, and it is listed no more.
///
/// Proves: R170
pub async fn close_is_immediate(f: Fixture) {
    let version = f.open(1).await;
    f.open(2).await;
    let placed = f.place(&shard("Account", 1), 1).await;
    applied(f.directory.beat(beat(1, 1, version)).await.expect("beats"));
    f.directory.close_session(session(1)).await.expect("closes");
    let taken = f.place(&placed.key, 2).await;
    assert!(taken.generation > placed.generation);
    assert_eq!(f.directory.sessions().await.expect("lists").records, [info(2)]);
    f.expire(2).await;
    f.directory.close_session(session(2)).await.expect("answers");
    assert_eq!(f.directory.lease(NodeId::new(2)).await.expect("reads"), None, "absence is left alone");
}

/// An absent lease is written down as missing; one that is there is not touched.
pub async fn pin_writes_absence_down(f: Fixture) {
    f.open(1).await;
    let live = f.lease(1).await;
    assert_eq!(found(f.directory.pin_session(session(1)).await.expect("answers")), Some(live));
    f.expire(1).await;
    let version = applied(f.directory.pin_session(session(1)).await.expect("pins"));
    let pinned = f.lease(1).await;
    assert_eq!((pinned.version, pinned.lease), (version, Lease::Missing { ttl: Millis(6_000) }));
}

/// A node is listed from its announcement until its session has ended; its poster is JSON.
///
/// Proves: R166, R171, R173
pub async fn sessions_lists_the_announced(f: Fixture) {
    applied(f.directory.open_session(session(1), NONCE).await.expect("opens"));
    assert_eq!(f.directory.sessions().await.expect("lists").records, []);
    f.directory.announce(&info(1)).await.expect("announces");
    f.directory.announce(&info(1)).await.expect("announces twice");
    let poster = f.store.get(&node_record_id(NodeId::new(1)), Read::Linearizable).await.expect("reads");
    let json: NodeInfo = serde_json::from_slice(&poster.expect("stands").value).expect("JSON");
    assert_eq!(json, info(1));
    f.open(2).await;
    let mut listed = f.directory.sessions().await.expect("lists").records;
    listed.sort_by_key(|node| node.id);
    assert_eq!(listed, [info(1), info(2)]);
    f.end(1).await;
    f.directory.announce(&info(1)).await.expect("announces too late");
    assert_eq!(f.directory.sessions().await.expect("lists").records, [info(2)]);
}

/// An ended lease is collected with the poster, but not before its last owner record is gone.
pub async fn collect_waits_for_the_last_record(f: Fixture) {
    f.open(1).await;
    f.place(&shard("Account", 1), 1).await;
    let early = f.directory.collect(NodeId::new(1)).await;
    assert!(matches!(early, Err(DirectoryError::Invalid { .. })), "{early:?}");
    f.end(1).await;
    assert!(!f.directory.collect(NodeId::new(1)).await.expect("answers"));
    assert_eq!(f.directory.evict(NodeId::new(1)).await.expect("evicts"), 1);
    assert!(f.directory.collect(NodeId::new(1)).await.expect("collects"));
    assert_eq!(f.directory.lease(NodeId::new(1)).await.expect("reads"), None);
}
