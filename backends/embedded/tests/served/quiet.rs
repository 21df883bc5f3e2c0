//! A server that has just started grants nothing for W (H14).

use std::collections::BTreeSet;
use std::sync::Arc;

use archipelago_directory::{CasAnswer, Expect, RecordId, Space, Store, StoreDirectory, StoreError, Timer};
use archipelago_embedded::EmbeddedConfig;
use archipelago_protocol::contract::{Directory, DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey};
use archipelago_protocol::session::{LeaseAnswer, Session, times};
use archipelago_protocol::time::Millis;

use crate::rig::{Rig, create, now, owner, put, read};

fn quiet() -> (Rig, Millis) {
    let wait = times::observer_wait(times::DEFAULT_TTL);
    (Rig::with(EmbeddedConfig::default(), wait), wait)
}

/// Remote and local claimers alike: the keys may be served by a node that neither of them can see.
#[test]
fn nothing_is_granted_for_w_after_the_start() {
    let (rig, wait) = quiet();
    let stores: [Arc<dyn Store>; 2] = [rig.remote.clone(), rig.local.clone()];
    for length in [Millis::ZERO, wait - Millis(1)] {
        rig.clock.advance(length);
        for store in &stores {
            let answer = now(store.cas(&owner("k"), Expect::Absent, put("a", "1"), None));
            let Err(StoreError::Unavailable { source }) = answer else { panic!("{answer:?}") };
            assert!(source.to_string().contains("started recently"), "{source}");
        }
    }
    assert_eq!(read(&*rig.remote, "k"), None, "reads work");
    rig.clock.advance(Millis(1));
    create(&*rig.remote, "k", put("a", "1"));
    create(&*rig.local, "l", put("a", "1"));
}

/// Sessions open and beat meanwhile, so that the cluster is complete when the time is over.
#[test]
fn sessions_open_while_claims_wait() {
    let (rig, wait) = quiet();
    let timer: Arc<dyn Timer> = Arc::new(rig.clock.clone());
    let session = Session { id: NodeId::new(7), ttl: times::DEFAULT_TTL };
    let key = OwnedKey::shard(Kind::new("Account").unwrap(), 1);
    for store in [rig.remote.clone() as Arc<dyn Store>, rig.local.clone()] {
        let directory = StoreDirectory::new(store, Arc::clone(&timer));
        if now(directory.lease(session.id)).unwrap().is_none() {
            assert!(matches!(now(directory.open_session(session, 1)).unwrap(), LeaseAnswer::Applied(_)));
            now(directory.announce(&info(session))).unwrap();
        }
        let refused = now(directory.claim(&key, session, None));
        assert!(matches!(refused, Err(DirectoryError::Unavailable { .. })), "{refused:?}");
    }
    rig.clock.advance(wait);
    let directory = StoreDirectory::new(rig.remote, timer);
    let granted = now(directory.claim(&key, session, None)).unwrap();
    assert!(matches!(granted, PlacementDecision::Placed(_)), "{granted:?}");
}

/// The holder of a lease that an earlier store gave learns at once that it is gone, and does not wait for its deadline.
#[test]
fn a_beat_on_a_forgotten_lease_finds_it_absent() {
    let (rig, _) = quiet();
    let lease = RecordId::new(Space::LEASES, "7");
    let record = archipelago_directory::Record {
        id: lease.clone(),
        tag: None,
        value: bytes::Bytes::new(),
        version: archipelago_directory::Version(5),
    };
    let answer = now(rig.local.cas(&lease, record.expect(), put("a", "beat"), None)).unwrap();
    assert_eq!(answer, CasAnswer::Conflict(None));
}

/// A batch is refused as a whole, also if some of it could have been written.
#[test]
fn a_batch_of_deletes_is_refused_as_a_whole() {
    let (rig, _) = quiet();
    let poster = RecordId::new(Space::NODES, "7");
    now(rig.remote.cas(&poster, Expect::Absent, put("7", "here"), None)).unwrap();
    let mut records = now(rig.remote.list(Space::NODES, None)).unwrap().records;
    records.push(archipelago_directory::Record { id: owner("k"), ..records[0].clone() });
    let answer = now(rig.remote.delete_all(&records));
    assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    assert_eq!(now(rig.remote.list(Space::NODES, None)).unwrap().records.len(), 1);
}

fn info(session: Session) -> NodeInfo {
    let address = NodeAddress::new("127.0.0.1", 4_700).unwrap();
    let (roles, kinds) = (BTreeSet::new(), BTreeSet::new());
    NodeInfo { id: session.id, name: "n".into(), address, roles, version: "0".into(), kinds }
}
