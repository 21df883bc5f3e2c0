//! Ownership in the store: one record per key, replaced only by a compare-and-swap that names what it replaces.
//!
//! The record of another session is replaced or removed only after its lease was *read* as ended (EVIDENCE). A record
//! that already names the claimer is written anew (RECAS), so a node serves only what its own write gave it.

use archipelago_protocol::contract::{
    DirectoryError, Listing, Move, OwnerRecord, PlacementDecision, PlacementScope, Revision,
};
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use archipelago_protocol::session::{Claim, ClaimAction, ClaimEvent, Lease, LeaseAnswer, Session};

use crate::directory::StoreDirectory;
use crate::leases::{not_ended, unasked_guard};
use crate::mutants::{Mutant, bent, broken};
use crate::record::{Expect, Guard, Record, RecordId, Seen, Space, Version, Write};
use crate::store::{CasAnswer, Read};
use crate::value::{OwnerState, OwnerValue, decode_owner_state, encode, node_record_id, owner_id};

impl StoreDirectory {
    /// Claims anything but a partition: of partitions, one overlaps others, so more must be looked at first.
    pub(crate) async fn claim_plain(
        &self,
        key: &OwnedKey,
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError> {
        if matches!(key, OwnedKey::Range { .. }) {
            return Err(DirectoryError::Invalid {
                what: "a partition is claimed with its parents",
                source: None,
            });
        }
        self.claim_key(key, session, expected).await
    }

    pub(crate) async fn claim_key(
        &self,
        key: &OwnedKey,
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError> {
        let (mut claim, mut action) = Claim::start(session, expected);
        loop {
            let event = match action {
                ClaimAction::ReadHolder(holder) => {
                    ClaimEvent::HolderRead(bent(holder.id, self.read_lease(holder.id).await?))
                }
                ClaimAction::Pin(holder) => ClaimEvent::Pinned(self.pin(holder).await?),
                ClaimAction::ReadOwner => {
                    ClaimEvent::OwnerRead(claimable(key, self.read_owner_state(key).await?)?)
                }
                ClaimAction::Write { over, guarded } => {
                    self.write_claim(key, session, over.as_ref(), guarded).await?
                }
                ClaimAction::ReadOwn => ClaimEvent::OwnRead(self.read_lease(session.id).await?),
                ClaimAction::Decided(decision) => return Ok(decision),
                ClaimAction::SessionLost => return Err(DirectoryError::SessionLost { id: session.id }),
                ClaimAction::Contested(current) => {
                    return Err(DirectoryError::Conflict { current: current.map(Box::new) });
                }
            };
            action = claim.handle(event);
        }
    }

    async fn write_claim(
        &self,
        key: &OwnedKey,
        session: Session,
        over: Option<&OwnerRecord>,
        guarded: bool,
    ) -> Result<ClaimEvent, DirectoryError> {
        let expect = over.map_or(Expect::Absent, |record| at(&record.placement));
        let guard =
            guarded.then(|| Guard { id: node_record_id(session.id), tag: Some(session.id.to_string()) });
        match self.cas(&owner_id(key), expect, put(&OwnerValue::new(session, None))?, guard).await? {
            CasAnswer::Applied(version) => Ok(ClaimEvent::Applied(placement(key, session.id, version))),
            CasAnswer::Conflict(current) => {
                Ok(ClaimEvent::Conflict(claimable(key, decode_some(current.as_ref())?)?))
            }
            CasAnswer::GuardFailed => Ok(ClaimEvent::GuardFailed),
        }
    }

    /// Whether the lease was read as ended. An absent one is written down first (PIN): absence proves nothing.
    pub(crate) async fn has_ended(&self, session: Session) -> Result<bool, DirectoryError> {
        if let Some(seen) = self.read_lease(session.id).await? {
            return Ok(seen.lease.has_ended());
        }
        match self.pin(session).await? {
            LeaseAnswer::Found(Some(seen)) => Ok(seen.lease.has_ended()),
            LeaseAnswer::Found(None) | LeaseAnswer::Applied(_) => Ok(false),
        }
    }

    pub(crate) async fn pin(&self, session: Session) -> Result<LeaseAnswer, DirectoryError> {
        self.write_lease(session.id, Expect::Absent, &Lease::Missing { ttl: session.ttl }).await
    }

    pub(crate) async fn recast(&self, record: &OwnerRecord) -> Result<OwnerRecord, DirectoryError> {
        let mut value = OwnerValue::new(record.session(), record.moved);
        value.since = Some(record.since);
        let placement = self.replace(&record.placement, record.placement.node, put(&value)?).await?;
        Ok(OwnerRecord { placement, ..record.clone() })
    }

    pub(crate) async fn give_away(
        &self,
        placement: &Placement,
        to: Session,
        moved: Option<Move>,
    ) -> Result<Placement, DirectoryError> {
        self.replace(placement, to.id, put(&OwnerValue::new(to, moved))?).await
    }

    pub(crate) async fn give_up(&self, placement: &Placement) -> Result<(), DirectoryError> {
        if broken(Mutant::ReleasesByKey) {
            return self.delete_whoever_has(&owner_id(&placement.key)).await;
        }
        self.replace(placement, placement.node, Write::Delete).await.map(drop)
    }

    /// Writes over exactly the generation that the caller owns.
    pub(crate) async fn replace(
        &self,
        owned: &Placement,
        node: NodeId,
        write: Write,
    ) -> Result<Placement, DirectoryError> {
        match self.cas(&owner_id(&owned.key), at(owned), write, None).await? {
            CasAnswer::Applied(version) => Ok(placement(&owned.key, node, version)),
            CasAnswer::Conflict(current) => {
                let current = decode_some(current.as_ref())?.and_then(OwnerState::owned);
                Err(DirectoryError::Conflict { current: current.map(Box::new) })
            }
            CasAnswer::GuardFailed => Err(unasked_guard()),
        }
    }

    pub(crate) async fn find_owner(&self, key: &OwnedKey) -> Result<Option<OwnerRecord>, DirectoryError> {
        let owned = self.read_owner_state(key).await?.and_then(OwnerState::owned);
        let Some(record) = owned else { return Ok(None) };
        let lease = self.read_lease(record.placement.node).await?;
        Ok(Some(record).filter(|_| !lease.is_some_and(|seen| seen.lease.has_ended())))
    }

    pub(crate) async fn read_owner_state(
        &self,
        key: &OwnedKey,
    ) -> Result<Option<OwnerState>, DirectoryError> {
        decode_some(self.get(&owner_id(key), Read::Linearizable).await?.as_ref())
    }

    pub(crate) async fn list_owners(
        &self,
        scope: PlacementScope,
    ) -> Result<Listing<OwnerRecord>, DirectoryError> {
        let (tag, kind) = match scope {
            PlacementScope::Node(node) => (Some(node.to_string()), None),
            PlacementScope::Kind(kind) => (None, Some(kind)),
            PlacementScope::All => (None, None),
        };
        let listed = self.list(Space::OWNERS, tag.as_deref()).await?;
        let states = listed.records.iter().map(decode_owner_state).collect::<Result<Vec<_>, _>>()?;
        let mut records: Vec<OwnerRecord> = states.into_iter().filter_map(OwnerState::owned).collect();
        records.retain(|record| kind.is_none() || record.key().kind() == kind.as_ref());
        Ok(Listing { records, revision: Revision(listed.position.0) })
    }

    pub(crate) async fn remove_owned_by(&self, id: NodeId) -> Result<usize, DirectoryError> {
        if !self.read_lease(id).await?.is_some_and(|seen| seen.lease.has_ended()) {
            return Err(not_ended());
        }
        let owned = self.list(Space::OWNERS, Some(&id.to_string())).await?;
        if broken(Mutant::DeletesByKey) {
            return self.delete_whoever_has_them(&owned.records).await;
        }
        self.store.delete_all(&owned.records).await.map_err(|error| self.error(error))
    }
}

impl StoreDirectory {
    /// A deliberate bug: who owns a key by now is not asked.
    async fn delete_whoever_has_them(&self, records: &[Record]) -> Result<usize, DirectoryError> {
        for record in records {
            if let Some(now) = self.get(&record.id, Read::Linearizable).await? {
                self.cas(&record.id, now.expect(), Write::Delete, None).await?;
            }
        }
        Ok(records.len())
    }

    /// A deliberate bug: the generation that was given up is not named, so a release that comes late takes what is another's.
    async fn delete_whoever_has(&self, id: &RecordId) -> Result<(), DirectoryError> {
        loop {
            let Some(now) = self.get(id, Read::Linearizable).await? else { return Ok(()) };
            match self.cas(id, now.expect(), Write::Delete, None).await {
                Ok(CasAnswer::Applied(_)) => return Ok(()),
                Ok(_) | Err(DirectoryError::Unknown { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn put(value: &OwnerValue) -> Result<Write, DirectoryError> {
    Ok(Write::Put { tag: Some(value.session.clone()), value: encode(value)?, ttl: None })
}

pub(crate) fn at(owned: &Placement) -> Expect {
    let version = Version(owned.generation.as_u64());
    Expect::At(Seen { version, tag: Some(owned.node.to_string()) })
}

fn placement(key: &OwnedKey, node: NodeId, version: Version) -> Placement {
    Placement { key: key.clone(), node, generation: Generation::new(version.0) }
}

pub(crate) fn decode_some(record: Option<&Record>) -> Result<Option<OwnerState>, DirectoryError> {
    record.map(decode_owner_state).transpose()
}

/// The record that a claim would replace; a retired key is never claimed again.
fn claimable(key: &OwnedKey, state: Option<OwnerState>) -> Result<Option<OwnerRecord>, DirectoryError> {
    match state {
        Some(OwnerState::Retired) => Err(DirectoryError::Retired { key: key.clone() }),
        state => Ok(state.and_then(OwnerState::owned)),
    }
}
