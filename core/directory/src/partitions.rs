//! Partitions in the store: claimed only once every partition that they were made of has been retired.
//!
//! Two partitions with a key in common have different owner records, so no compare-and-swap on one keeps the other from
//! being owned. What does is that a retired record is final: whoever has read it once, however late, knows that nobody
//! owns that partition or ever will.

use archipelago_protocol::contract::{DirectoryError, OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{NodeId, OwnedKey, PartitionName, Placement};
use archipelago_protocol::session::Session;

use crate::directory::StoreDirectory;
use crate::leases::unasked_guard;
use crate::owners::{at, decode_some};
use crate::record::{Expect, Write};
use crate::store::CasAnswer;
use crate::value::{OwnerState, encode_retired, owner_id};

impl StoreDirectory {
    pub(crate) async fn claim_partition(
        &self,
        key: &OwnedKey,
        parents: &[PartitionName],
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError> {
        let OwnedKey::Range { kind, .. } = key else { return Err(not_a_partition()) };
        for parent in parents {
            let parent = OwnedKey::Range { kind: kind.clone(), partition: parent.clone() };
            self.require_retired(&parent, session.id).await?;
        }
        self.claim_key(key, session, expected).await
    }

    /// Goes on only once `parent` is retired. One that nobody owns, or only a session that has ended, is retired here
    /// (EVIDENCE); a late claim of it then finds that out.
    async fn require_retired(&self, parent: &OwnedKey, by: NodeId) -> Result<(), DirectoryError> {
        let mut state = self.read_owner_state(parent).await?;
        for _ in 0..RETIRE_ROUNDS {
            let over = match state {
                Some(OwnerState::Retired) => return Ok(()),
                Some(OwnerState::Owned(held)) if !self.has_ended(held.session()).await? => {
                    return Err(DirectoryError::NotRetired { parent: Box::new(held) });
                }
                Some(OwnerState::Owned(held)) => at(&held.placement),
                None => Expect::Absent,
            };
            match self.cas(&owner_id(parent), over, retired(by)?, None).await? {
                CasAnswer::Applied(_) => return Ok(()),
                CasAnswer::Conflict(current) => state = decode_some(current.as_ref())?,
                CasAnswer::GuardFailed => return Err(unasked_guard()),
            }
        }
        let current = state.and_then(OwnerState::owned).map(Box::new);
        Err(DirectoryError::Conflict { current })
    }

    pub(crate) async fn retire_own(&self, owned: &Placement) -> Result<(), DirectoryError> {
        if !matches!(owned.key, OwnedKey::Range { .. }) {
            return Err(not_a_partition());
        }
        self.replace(owned, owned.node, retired(owned.node)?).await.map(drop)
    }
}

/// Without a tag: the record belongs to nobody, so no eviction of a session finds it.
fn retired(by: NodeId) -> Result<Write, DirectoryError> {
    Ok(Write::Put { tag: None, value: encode_retired(by)?, ttl: None })
}

fn not_a_partition() -> DirectoryError {
    DirectoryError::Invalid { what: "the key is no partition of a range-partitioned kind", source: None }
}

const RETIRE_ROUNDS: usize = 6;
