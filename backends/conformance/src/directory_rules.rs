//! The rules of [`Directory`], each as a function that panics when it is broken.

use std::collections::BTreeSet;
use std::sync::Arc;

use archipelago_directory::{Expect, RecordId, Store, StoreDirectory, Timer, Write, lease_id};
use archipelago_protocol::contract::{Directory, OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey, Placement};
use archipelago_protocol::session::{Beat, EndReason, LeaseAnswer, LeaseSeen, LeaseVersion, Session};
use archipelago_protocol::time::Millis;

mod endings;
mod kinds;
mod ownership;
mod partitions;
mod races;
mod sessions;
mod watching;

pub use endings::*;
pub use kinds::*;
pub use ownership::*;
pub use partitions::*;
pub use races::*;
pub use sessions::*;
pub use watching::*;

pub use crate::linearizability::ownership_is_linearizable;

/// A fresh directory, and the store underneath, with which a rule plays the engine's part.
#[derive(Clone)]
pub struct Fixture {
    /// The directory under test.
    pub directory: Arc<dyn Directory>,
    /// The store underneath.
    pub store: Arc<dyn Store>,
    /// The clock that rules about time go by.
    pub timer: Arc<dyn Timer>,
}

impl Fixture {
    /// The directory above `store`. A store behind a network needs a timer that really waits.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>) -> Self {
        let directory = Arc::new(StoreDirectory::new(Arc::clone(&store), Arc::clone(&timer)));
        Self { directory, store, timer }
    }

    /// Opens and announces session `id`; answers its first version.
    pub(crate) async fn open(&self, id: u64) -> LeaseVersion {
        let version = applied(self.directory.open_session(session(id), NONCE).await.expect("opens"));
        self.directory.announce(&info(id)).await.expect("announces");
        version
    }

    pub(crate) async fn lease(&self, id: u64) -> LeaseSeen {
        self.directory.lease(NodeId::new(id)).await.expect("reads").expect("stands")
    }

    /// Ends session `id` as an observer that has waited long enough.
    pub(crate) async fn end(&self, id: u64) {
        let seen = self.lease(id).await;
        let by = NodeId::new(OBSERVER);
        let answer = self.directory.end_session(seen.id, seen.version, by, EndReason::Silent).await;
        applied(answer.expect("ends"));
    }

    /// Claims `key` for `id` without having looked, and is placed.
    pub(crate) async fn place(&self, key: &OwnedKey, id: u64) -> Placement {
        match self.directory.claim(key, session(id), None).await.expect("claims") {
            PlacementDecision::Placed(placement) => placement,
            other => panic!("{key} for {id}: {other:?}"),
        }
    }

    pub(crate) async fn owner(&self, key: &OwnedKey) -> Option<OwnerRecord> {
        self.directory.lookup(key).await.expect("looks up")
    }

    /// Deletes the lease of `id` behind everybody's back, as an engine's TTL may at any time.
    pub(crate) async fn expire(&self, id: u64) {
        self.remove(&lease_id(NodeId::new(id))).await;
    }

    pub(crate) async fn remove(&self, id: &RecordId) {
        let record = self.store.get(id, archipelago_directory::Read::Linearizable).await.expect("reads");
        let expect = record.map_or(Expect::Absent, |record| record.expect());
        self.store.cas(id, expect, Write::Delete, None).await.expect("deletes");
    }
}

pub(crate) fn session(id: u64) -> Session {
    Session { id: NodeId::new(id), ttl: Millis(6_000) }
}

pub(crate) fn info(id: u64) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        name: format!("node-{id}"),
        address: NodeAddress::new("127.0.0.1", 4_700).expect("valid"),
        roles: BTreeSet::new(),
        version: "0.1.0".into(),
        kinds: Default::default(),
    }
}

pub(crate) fn beat(id: u64, seq: u64, expect: LeaseVersion) -> Beat {
    beat_of(session(id), seq, expect)
}

pub(crate) fn beat_of(session: Session, seq: u64, expect: LeaseVersion) -> Beat {
    Beat { session, seq, nonce: NONCE + seq, expect }
}

pub(crate) fn shard(kind: &str, n: u32) -> OwnedKey {
    OwnedKey::shard(Kind::new(kind).expect("valid"), n)
}

pub(crate) fn applied(answer: LeaseAnswer) -> LeaseVersion {
    match answer {
        LeaseAnswer::Applied(version) => version,
        LeaseAnswer::Found(found) => panic!("not applied, found {found:?}"),
    }
}

pub(crate) fn found(answer: LeaseAnswer) -> Option<LeaseSeen> {
    match answer {
        LeaseAnswer::Applied(version) => panic!("applied as {version:?}"),
        LeaseAnswer::Found(found) => found,
    }
}

pub(crate) const NONCE: u64 = 77;
pub(crate) const OBSERVER: u64 = 99;
