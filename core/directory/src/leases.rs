//! Sessions in the store: the lease, where beats and ends are written, and the poster that everybody watches.
//!
//! Each write is one compare-and-swap on one record. The lease alone has authority; a poster that is missing or was
//! left behind costs a look, never a key.

use std::collections::BTreeSet;

use archipelago_protocol::contract::{DirectoryError, Listing, Revision};
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::session::{EndReason, Lease, LeaseAnswer, LeaseSeen, LeaseVersion, Session, times};
use archipelago_protocol::time::Millis;

use crate::directory::{StoreDirectory, at};
use crate::mutants::bent_if_absent;
use crate::record::{Expect, Space, Write};
use crate::store::{CasAnswer, Read};
use crate::value::{decode_key, decode_lease, decode_node, encode, lease_id, node_record_id};

impl StoreDirectory {
    pub(crate) async fn write_lease(
        &self,
        id: NodeId,
        expect: Expect,
        lease: &Lease,
    ) -> Result<LeaseAnswer, DirectoryError> {
        let write = Write::Put { tag: None, value: encode(lease)?, ttl: engine_ttl(lease) };
        match self.cas(&lease_id(id), expect, write, None).await? {
            CasAnswer::Applied(version) => Ok(LeaseAnswer::Applied(LeaseVersion(version.0))),
            CasAnswer::Conflict(current) => {
                Ok(LeaseAnswer::Found(current.as_ref().map(decode_lease).transpose()?))
            }
            CasAnswer::GuardFailed => Err(unasked_guard()),
        }
    }

    pub(crate) async fn read_lease(&self, id: NodeId) -> Result<Option<LeaseSeen>, DirectoryError> {
        let record = self.get(&lease_id(id), Read::Linearizable).await?;
        Ok(bent_if_absent(id, record.as_ref().map(decode_lease).transpose()?))
    }

    /// Ends the holder's own session, whatever its record says: the holder has stopped, so the end is true. Absence is
    /// left alone, as everywhere: what has no version cannot be replaced safely.
    pub(crate) async fn close(&self, session: Session) -> Result<(), DirectoryError> {
        let ended = Lease::Ended { why: EndReason::Closed, by: session.id };
        let mut found = self.read_lease(session.id).await?;
        for _ in 0..CLOSE_ROUNDS {
            let Some(seen) = found.filter(|seen| !seen.lease.has_ended()) else { break };
            match self.write_lease(session.id, at(seen.version), &ended).await? {
                LeaseAnswer::Applied(_) => break,
                LeaseAnswer::Found(newer) => found = newer,
            }
        }
        self.try_take_down(session.id).await;
        Ok(())
    }

    pub(crate) async fn put_up(&self, info: &NodeInfo) -> Result<(), DirectoryError> {
        let (id, tag, value) = (node_record_id(info.id), Some(info.id.to_string()), encode(info)?);
        let mut expect = Expect::Absent;
        for _ in 0..POSTER_ROUNDS {
            let write = Write::Put { tag: tag.clone(), value: value.clone(), ttl: None };
            match self.cas(&id, expect, write, None).await? {
                CasAnswer::Applied(_) => return Ok(()),
                CasAnswer::Conflict(Some(record)) if record.value == value => return Ok(()),
                CasAnswer::Conflict(current) => {
                    expect = current.map_or(Expect::Absent, |record| record.expect())
                }
                CasAnswer::GuardFailed => return Err(unasked_guard()),
            }
        }
        Err(DirectoryError::Conflict { current: None })
    }

    /// Takes a poster down. Whoever finds a poster of an ended session does this, so failing is no loss.
    pub(crate) async fn try_take_down(&self, id: NodeId) {
        if let Err(error) = self.take_down(id).await {
            tracing::debug!(session = %id, %error, "poster left behind");
        }
    }

    pub(crate) async fn take_down(&self, id: NodeId) -> Result<(), DirectoryError> {
        let id = node_record_id(id);
        if let Some(record) = self.get(&id, Read::Linearizable).await? {
            self.cas(&id, record.expect(), Write::Delete, None).await?;
        }
        Ok(())
    }

    /// The posters, without those whose lease says that it has ended.
    pub(crate) async fn announced(&self) -> Result<Listing<NodeInfo>, DirectoryError> {
        let posters = self.list(Space::NODES, None).await?;
        let leases = self.list(Space::LEASES, None).await?;
        let ended: BTreeSet<NodeId> = leases
            .records
            .iter()
            .filter(|record| decode_lease(record).is_ok_and(|seen| seen.lease.has_ended()))
            .filter_map(|record| decode_key(record).ok())
            .collect();
        let nodes = posters.records.iter().map(decode_node).collect::<Result<Vec<_>, _>>()?;
        let records = nodes.into_iter().filter(|info| !ended.contains(&info.id)).collect();
        Ok(Listing { records, revision: Revision(posters.position.0) })
    }

    /// Removes what an ended session left, once it owns nothing. Of an absent lease only a poster can be left: its holder
    /// finds the absence with its next beat and is lost.
    pub(crate) async fn remove_ended(&self, id: NodeId) -> Result<bool, DirectoryError> {
        let lease = self.read_lease(id).await?;
        if lease.as_ref().is_some_and(|seen| !seen.lease.has_ended()) {
            return Err(not_ended());
        }
        if !self.list(Space::OWNERS, Some(&id.to_string())).await?.records.is_empty() {
            return Ok(false);
        }
        self.take_down(id).await?;
        if let Some(seen) = lease {
            self.cas(&lease_id(id), at(seen.version), Write::Delete, None).await?;
        }
        Ok(true)
    }
}

pub(crate) fn not_ended() -> DirectoryError {
    DirectoryError::Invalid { what: "the session has not ended", source: None }
}

pub(crate) fn unasked_guard() -> DirectoryError {
    DirectoryError::Invalid { what: "the store checked a guard that nobody asked for", source: None }
}

/// Live leases go by themselves when nobody is left to end them; `Missing` and `Revoked` are counted from, so they stay.
fn engine_ttl(lease: &Lease) -> Option<Millis> {
    match lease {
        Lease::Live { ttl, .. } => Some(times::engine_ttl(*ttl)),
        Lease::Ended { .. } => Some(times::KEEP_ENDED),
        Lease::Missing { .. } | Lease::Revoked { .. } => None,
    }
}

/// A close meets at most the holder's own late beats and one end.
const CLOSE_ROUNDS: usize = 8;
const POSTER_ROUNDS: usize = 4;
