//! The directory of a node that has none.

use archipelago_protocol::contract::{
    Directory, DirectoryError, Listing, Move, OwnerRecord, PlacementDecision, PlacementScope, Revision,
    WatchScope, WatchStream,
};
use archipelago_protocol::identity::{Kind, NodeId, NodeInfo, OwnedKey, PartitionName, Placement};
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::session::{Beat, EndReason, LeaseAnswer, LeaseSeen, LeaseVersion, Session};
use async_trait::async_trait;

/// Grants nothing and knows nothing: a client has no access to a store.
pub(crate) struct NoDirectory;

type Answer<T> = Result<T, DirectoryError>;

fn none<T>() -> Answer<T> {
    Err(DirectoryError::Unavailable { backend: "client", source: "a client has no directory".into() })
}

#[async_trait]
impl Directory for NoDirectory {
    async fn open_session(&self, _: Session, _: u64) -> Answer<LeaseAnswer> {
        none()
    }

    async fn announce(&self, _: &NodeInfo) -> Answer<()> {
        none()
    }

    async fn beat(&self, _: Beat) -> Answer<LeaseAnswer> {
        none()
    }

    async fn lease(&self, _: NodeId) -> Answer<Option<LeaseSeen>> {
        none()
    }

    async fn close_session(&self, _: Session) -> Answer<()> {
        none()
    }

    async fn end_session(&self, _: NodeId, _: LeaseVersion, _: NodeId, _: EndReason) -> Answer<LeaseAnswer> {
        none()
    }

    async fn revoke(&self, _: &LeaseSeen, _: NodeId) -> Answer<LeaseAnswer> {
        none()
    }

    async fn pin_session(&self, _: Session) -> Answer<LeaseAnswer> {
        none()
    }

    async fn sessions(&self) -> Answer<Listing<NodeInfo>> {
        none()
    }

    async fn claim(&self, _: &OwnedKey, _: Session, _: Option<OwnerRecord>) -> Answer<PlacementDecision> {
        none()
    }

    async fn claim_range(
        &self,
        _: &OwnedKey,
        _: &[PartitionName],
        _: Session,
        _: Option<OwnerRecord>,
    ) -> Answer<PlacementDecision> {
        none()
    }

    async fn retire(&self, _: &Placement) -> Answer<()> {
        none()
    }

    async fn reassert(&self, _: &OwnerRecord) -> Answer<OwnerRecord> {
        none()
    }

    async fn transfer(&self, _: &Placement, _: Session, _: Option<Move>) -> Answer<Placement> {
        none()
    }

    async fn release(&self, _: &Placement) -> Answer<()> {
        none()
    }

    async fn lookup(&self, _: &OwnedKey) -> Answer<Option<OwnerRecord>> {
        none()
    }

    async fn placements(&self, _: PlacementScope) -> Answer<Listing<OwnerRecord>> {
        none()
    }

    async fn evict(&self, _: NodeId) -> Answer<usize> {
        none()
    }

    async fn collect(&self, _: NodeId) -> Answer<bool> {
        none()
    }

    async fn settle_layout(&self, _: &Kind, _: KindLayout) -> Answer<KindLayout> {
        none()
    }

    async fn watch(&self, _: WatchScope, _: Option<Revision>) -> Answer<WatchStream> {
        none()
    }
}
