//! Ground truth about sessions and ownership: when each lease write was sent, and which writes the store has applied.
//!
//! The node's own machine decides from answers, which may be lost; this sees the store itself. So it knows the
//! latest time until which a node may have had reason to serve, whatever went wrong on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_directory::{
    CasAnswer, Expect, Guard, OwnerValue, Position, Read, Record, RecordId, Records, Space, Store,
    StoreError, StoreWatch, Write, lease_id,
};
use archipelago_protocol::contract::Move;
use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::session::{EndReason, Lease};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use bytes::Bytes;

use crate::env::SimEnvironment;

/// The lease writes of all sessions.
#[derive(Default)]
pub(crate) struct Beats {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// When, on its sender's clock, each value was sent.
    sent: BTreeMap<(RecordId, Bytes), Millis>,
    /// When the latest applied value was sent.
    applied: BTreeMap<RecordId, Millis>,
    /// The sessions that have ended, and why.
    ended: BTreeMap<NodeId, EndReason>,
    /// The sessions that somebody has revoked.
    revoked: BTreeSet<NodeId>,
    /// Sessions that were written to after their end.
    revived: Vec<NodeId>,
    /// Who owns what.
    owners: BTreeMap<RecordId, Ownership>,
}

/// What the store says about the owner of something.
struct Ownership {
    tag: String,
    version: u64,
    /// How it came there, if it was handed over.
    moved: Option<Move>,
}

impl Beats {
    /// When the latest beat of `node` that the store has applied was sent, on the node's clock.
    pub(crate) fn confirmable(&self, node: NodeId) -> Option<Millis> {
        self.lock().applied.get(&lease_id(node)).copied()
    }

    /// Why the session of `node` has ended, if it has.
    pub(crate) fn ended(&self, node: NodeId) -> Option<EndReason> {
        self.lock().ended.get(&node).copied()
    }

    /// How many sessions somebody else has ended.
    pub(crate) fn ended_by_others(&self) -> usize {
        self.lock().ended.values().filter(|why| **why != EndReason::Closed).count()
    }

    /// How many sessions somebody has revoked.
    pub(crate) fn revoked(&self) -> usize {
        self.lock().revoked.len()
    }

    /// A session that lived on after its end, if there is one.
    pub(crate) fn revived(&self) -> Option<NodeId> {
        self.lock().revived.first().copied()
    }

    /// Whether the store says that `node` owns what this record is about, since `generation`.
    pub(crate) fn is_owner(&self, record: &RecordId, node: NodeId, generation: Generation) -> bool {
        let inner = self.lock();
        let owner = inner.owners.get(record);
        owner.is_some_and(|owner| owner.tag == node.to_string() && owner.version == generation.as_u64())
    }

    /// How what this record is about came to its owner, if it was handed over.
    pub(crate) fn moved(&self, record: &RecordId) -> Option<Move> {
        self.lock().owners.get(record)?.moved
    }

    fn note_lease(&self, id: &RecordId, value: &Bytes) {
        let (Ok(node), Ok(lease)) = (id.key.parse::<NodeId>(), serde_json::from_slice::<Lease>(value)) else {
            return;
        };
        let mut inner = self.lock();
        let over = inner.ended.contains_key(&node);
        match lease {
            Lease::Ended { why, .. } => {
                inner.ended.entry(node).or_insert(why);
            }
            _ if over => inner.revived.push(node),
            Lease::Revoked { .. } => drop(inner.revoked.insert(node)),
            _ => {}
        }
    }

    fn note_owner(&self, id: &RecordId, write: &Write, version: u64) {
        let mut inner = self.lock();
        match write {
            Write::Put { tag: Some(tag), value, .. } => {
                let moved = serde_json::from_slice::<OwnerValue>(value).ok().and_then(|owner| owner.moved);
                inner.owners.insert(id.clone(), Ownership { tag: tag.clone(), version, moved })
            }
            Write::Put { .. } | Write::Delete => inner.owners.remove(id),
        };
    }

    fn note_sent(&self, id: &RecordId, write: &Write, now: Millis) {
        if let (Space::LEASES, Write::Put { value, .. }) = (id.space, write)
            && is_beat(value)
        {
            self.lock().sent.insert((id.clone(), value.clone()), now);
        }
    }

    fn note_write(&self, id: &RecordId, write: &Write, version: u64) {
        match (id.space, write) {
            (Space::LEASES, Write::Put { value, .. }) => {
                self.note_applied(id, value);
                self.note_lease(id, value);
            }
            (Space::OWNERS, write) => self.note_owner(id, write, version),
            _ => {}
        }
    }

    fn note_applied(&self, id: &RecordId, value: &Bytes) {
        let mut inner = self.lock();
        if let Some(at) = inner.sent.get(&(id.clone(), value.clone())).copied() {
            let latest = inner.applied.entry(id.clone()).or_insert(at);
            *latest = at.max(*latest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opening counts as a beat, closing does not.
fn is_beat(value: &Bytes) -> bool {
    matches!(serde_json::from_slice(value), Ok(Lease::Live { .. }))
}

/// Where a tap sits.
pub(crate) enum Side {
    /// In front of everything that can go wrong: notes when a node sends.
    Node(Arc<SimEnvironment>),
    /// Right at the store: notes what is applied.
    Store,
}

/// A store that notes lease writes in passing.
pub(crate) struct Tap {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) beats: Arc<Beats>,
    pub(crate) side: Side,
}

#[async_trait]
impl Store for Tap {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn checks_guards(&self) -> bool {
        self.inner.checks_guards()
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.inner.get(id, read).await
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        let applied = match &self.side {
            Side::Node(env) => {
                self.beats.note_sent(id, &write, env.clock().now());
                None
            }
            Side::Store => Some(write.clone()),
        };
        let answer = self.inner.cas(id, expect, write, guard).await;
        if let (Ok(CasAnswer::Applied(version)), Some(write)) = (&answer, applied) {
            self.beats.note_write(id, &write, version.0);
        }
        answer
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        self.inner.list(space, tag).await
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        self.inner.watch(space, after).await
    }
}
