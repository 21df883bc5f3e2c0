//! Any [`Store`] as a [`Directory`].
//!
//! [`StoreDirectory`] keeps no state of its own: every decision is made on what a compare-and-swap names, so any number
//! of directories may stand above one store. Sessions are in `leases`, ownership in `owners`, partitions in `partitions`,
//! how kinds are divided in `layouts`, watching in `watch`.

use std::sync::Arc;

use archipelago_protocol::contract::{
    Directory, DirectoryError, Listing, Move, OwnerRecord, PlacementDecision, PlacementScope, Revision,
    WatchScope, WatchStream,
};
use archipelago_protocol::identity::{Kind, NodeId, NodeInfo, OwnedKey, PartitionName, Placement};
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::session::{Beat, EndReason, Lease, LeaseAnswer, LeaseSeen, LeaseVersion, Session};
use async_trait::async_trait;

use crate::record::{Expect, Guard, Record, RecordId, Write};
use crate::store::{CasAnswer, Read, Records, Store, StoreError};
use crate::timer::Timer;
use crate::watch::watch_scope;

/// The directory above a store.
#[derive(Clone)]
pub struct StoreDirectory {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<dyn Timer>,
}

impl StoreDirectory {
    /// A directory above `store`; `timer` paces the mending of broken watches.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>) -> Self {
        Self { store, timer }
    }

    /// The store underneath.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, DirectoryError> {
        self.store.get(id, read).await.map_err(|error| self.error(error))
    }

    pub(crate) async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, DirectoryError> {
        self.store.cas(id, expect, write, guard).await.map_err(|error| self.error(error))
    }

    pub(crate) async fn list(
        &self,
        space: crate::Space,
        tag: Option<&str>,
    ) -> Result<Records, DirectoryError> {
        self.store.list(space, tag).await.map_err(|error| self.error(error))
    }

    /// The same error one floor up; what the caller does next stays the same.
    pub(crate) fn error(&self, error: StoreError) -> DirectoryError {
        let backend = self.store.name();
        match error {
            StoreError::Unavailable { source } => DirectoryError::Unavailable { backend, source },
            StoreError::Unknown { source } => DirectoryError::Unknown { backend, source },
            StoreError::Compacted => {
                DirectoryError::Invalid { what: "the store compacted what is no history", source: None }
            }
            StoreError::Fatal { source } => {
                DirectoryError::Invalid { what: "the store cannot serve this", source: Some(source) }
            }
        }
    }
}

#[async_trait]
impl Directory for StoreDirectory {
    async fn open_session(&self, session: Session, nonce: u64) -> Result<LeaseAnswer, DirectoryError> {
        let lease = Lease::Live { seq: 0, nonce, ttl: session.ttl };
        self.write_lease(session.id, Expect::Absent, &lease).await
    }

    async fn announce(&self, info: &NodeInfo) -> Result<(), DirectoryError> {
        self.put_up(info).await
    }

    async fn beat(&self, beat: Beat) -> Result<LeaseAnswer, DirectoryError> {
        let lease = Lease::Live { seq: beat.seq, nonce: beat.nonce, ttl: beat.session.ttl };
        self.write_lease(beat.session.id, at(beat.expect), &lease).await
    }

    async fn lease(&self, id: NodeId) -> Result<Option<LeaseSeen>, DirectoryError> {
        self.read_lease(id).await
    }

    async fn close_session(&self, session: Session) -> Result<(), DirectoryError> {
        self.close(session).await
    }

    async fn end_session(
        &self,
        id: NodeId,
        version: LeaseVersion,
        by: NodeId,
        why: EndReason,
    ) -> Result<LeaseAnswer, DirectoryError> {
        let answer = self.write_lease(id, at(version), &Lease::Ended { why, by }).await?;
        if matches!(answer, LeaseAnswer::Applied(_)) {
            self.try_take_down(id).await;
        }
        Ok(answer)
    }

    async fn revoke(&self, seen: &LeaseSeen, by: NodeId) -> Result<LeaseAnswer, DirectoryError> {
        match seen.lease {
            Lease::Live { ttl, .. } => {
                self.write_lease(seen.id, at(seen.version), &Lease::Revoked { ttl, by }).await
            }
            _ => Ok(LeaseAnswer::Found(Some(seen.clone()))),
        }
    }

    async fn pin_session(&self, session: Session) -> Result<LeaseAnswer, DirectoryError> {
        self.pin(session).await
    }

    async fn sessions(&self) -> Result<Listing<NodeInfo>, DirectoryError> {
        self.announced().await
    }

    async fn claim(
        &self,
        key: &OwnedKey,
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError> {
        self.claim_plain(key, session, expected).await
    }

    async fn claim_range(
        &self,
        key: &OwnedKey,
        parents: &[PartitionName],
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError> {
        self.claim_partition(key, parents, session, expected).await
    }

    async fn retire(&self, placement: &Placement) -> Result<(), DirectoryError> {
        self.retire_own(placement).await
    }

    async fn reassert(&self, record: &OwnerRecord) -> Result<OwnerRecord, DirectoryError> {
        self.recast(record).await
    }

    async fn transfer(
        &self,
        placement: &Placement,
        to: Session,
        moved: Option<Move>,
    ) -> Result<Placement, DirectoryError> {
        self.give_away(placement, to, moved).await
    }

    async fn release(&self, placement: &Placement) -> Result<(), DirectoryError> {
        self.give_up(placement).await
    }

    async fn lookup(&self, key: &OwnedKey) -> Result<Option<OwnerRecord>, DirectoryError> {
        self.find_owner(key).await
    }

    async fn placements(&self, scope: PlacementScope) -> Result<Listing<OwnerRecord>, DirectoryError> {
        self.list_owners(scope).await
    }

    async fn evict(&self, ended: NodeId) -> Result<usize, DirectoryError> {
        self.remove_owned_by(ended).await
    }

    async fn collect(&self, ended: NodeId) -> Result<bool, DirectoryError> {
        self.remove_ended(ended).await
    }

    async fn settle_layout(&self, kind: &Kind, layout: KindLayout) -> Result<KindLayout, DirectoryError> {
        self.settle(kind, layout).await
    }

    async fn watch(&self, scope: WatchScope, from: Option<Revision>) -> Result<WatchStream, DirectoryError> {
        Ok(watch_scope(self, scope, from))
    }
}

/// Leases have no tag: the version says it all.
pub(crate) fn at(version: LeaseVersion) -> Expect {
    Expect::At(crate::Seen { version: crate::Version(version.0), tag: None })
}
