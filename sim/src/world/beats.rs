//! Ground truth about sessions: when each lease write was sent, and which of them the store has applied.
//!
//! The node's own machine decides from answers, which may be lost; this sees the store itself. So it knows the
//! latest time until which a node may have had reason to serve, whatever went wrong on the way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Write, lease_id,
};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::Lease;
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
}

impl Beats {
    /// When the latest beat of `node` that the store has applied was sent, on the node's clock.
    pub(crate) fn confirmable(&self, node: NodeId) -> Option<Millis> {
        self.lock().applied.get(&lease_id(node)).copied()
    }

    fn note_sent(&self, id: &RecordId, write: &Write, now: Millis) {
        if let (Space::LEASES, Write::Put { value, .. }) = (id.space, write)
            && is_beat(value)
        {
            self.lock().sent.insert((id.clone(), value.clone()), now);
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
        let value = match (&self.side, &write) {
            (Side::Node(env), _) => {
                self.beats.note_sent(id, &write, env.clock().now());
                None
            }
            (Side::Store, Write::Put { value, .. }) => Some(value.clone()),
            (Side::Store, Write::Delete) => None,
        };
        let answer = self.inner.cas(id, expect, write, guard).await;
        if let (Ok(CasAnswer::Applied(_)), Some(value)) = (&answer, value) {
            self.beats.note_applied(id, &value);
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
