//! The properties of the session protocol, on the ground truth, after every step.

use std::collections::BTreeSet;
use std::sync::Arc;

use archipelago_directory::{
    Change, OwnerValue, Position, Read, Record, RecordId, Space, Store, StoreWatch, lease_id, owner_id,
};
use archipelago_protocol::identity::{NodeId, OwnedKey, Placement};
use archipelago_protocol::session::Lease;
use archipelago_protocol::time::Millis;
use futures_util::{FutureExt, StreamExt};

use super::node::Node;

pub(super) struct Checker {
    seed: u64,
    store: Arc<dyn Store>,
    leases: StoreWatch,
    ended: BTreeSet<RecordId>,
}

impl Checker {
    pub(super) fn new(seed: u64, store: Arc<dyn Store>) -> Self {
        let leases = store.watch(Space::LEASES, Position(0)).now_or_never();
        let leases = leases.expect("answers at once").expect("watches");
        Self { seed, store, leases, ended: BTreeSet::new() }
    }

    /// Checks everything; answers how many open gates it saw.
    pub(super) fn check(&mut self, now: Millis, nodes: &[Node]) -> u32 {
        self.ended_never_comes_back();
        let keys: BTreeSet<&OwnedKey> = nodes.iter().flat_map(|node| node.serving.keys()).collect();
        let mut open = 0;
        for key in keys {
            let gates: Vec<&Placement> = nodes.iter().filter_map(|node| node.gate_open(now, key)).collect();
            assert!(gates.len() <= 1, "seed {}: P1 at_most_one_server at {now}: {gates:?}", self.seed);
            gates.iter().for_each(|placement| self.server_is_recorded(now, placement));
            open += u32::try_from(gates.len()).unwrap_or(u32::MAX);
        }
        open
    }

    /// Whether the session was seen to have ended.
    pub(super) fn has_ended(&self, session: NodeId) -> bool {
        self.ended.contains(&lease_id(session))
    }

    /// P2, and P3: whoever serves is in the record, at its generation, and its session has not ended.
    fn server_is_recorded(&self, now: Millis, served: &Placement) {
        let seed = self.seed;
        let record = self.get(&owner_id(&served.key));
        let recorded = record.is_some_and(|record| {
            let value: OwnerValue = serde_json::from_slice(&record.value).expect("an owner record");
            value.session == served.node.to_string() && record.version.0 == served.generation.as_u64()
        });
        assert!(recorded, "seed {seed}: P2 server_is_recorded at {now}: {served:?}");
        let ended = self.get(&lease_id(served.node)).is_some_and(|record| lease(&record).has_ended());
        assert!(!ended, "seed {seed}: P3 ended_session_is_silent at {now}: {served:?}");
    }

    /// P4.
    fn ended_never_comes_back(&mut self) {
        while let Some(Some(change)) = self.leases.next().now_or_never() {
            let Change::Put { record, .. } = change.expect("the ground truth is not compacted") else {
                continue;
            };
            let id = record.id.clone();
            match lease(&record) {
                Lease::Ended { .. } => drop(self.ended.insert(id)),
                Lease::Live { .. } => {
                    assert!(!self.ended.contains(&id), "seed {}: P4 ended_never_comes_back: {id}", self.seed)
                }
                Lease::Missing { .. } | Lease::Revoked { .. } => {}
            }
        }
    }

    fn get(&self, id: &RecordId) -> Option<Record> {
        self.store.get(id, Read::Linearizable).now_or_never().expect("answers at once").expect("reads")
    }
}

fn lease(record: &Record) -> Lease {
    serde_json::from_slice(&record.value).expect("a lease")
}
