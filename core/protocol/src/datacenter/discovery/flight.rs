//! One search under way.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::{DataCenterId, MapEntry};
use super::events::{AskId, SeekerId};
use crate::identity::NodeAddress;
use crate::time::Millis;

/// The number of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FlightId(pub(super) u64);

/// One search: single for its key, however many wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight<K> {
    pub(super) key: K,
    pub(super) deadline: Millis,
    /// Who waits, each until its own deadline.
    pub(super) seekers: BTreeMap<SeekerId, Millis>,
    pub(super) parties: Vec<Party>,
    /// The datacenters that were not even asked.
    pub(super) skipped: Vec<DataCenterId>,
}

/// One datacenter of a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Party {
    pub(super) datacenter: DataCenterId,
    /// The endpoints that have not been asked, the next one last.
    unasked: Vec<NodeAddress>,
    /// The questions that are not answered, and since when.
    pub(super) open: BTreeMap<AskId, Millis>,
    /// When its first endpoint was asked.
    pub(super) asked_at: Millis,
    /// When the next endpoint is asked besides.
    pub(super) hedge_at: Option<Millis>,
    pub(super) stand: Stand,
}

/// Where a datacenter stands in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stand {
    Waiting,
    No,
    Silent,
}

impl Party {
    /// The endpoints are asked from one on that chance has chosen, in their order.
    pub(super) fn new(now: Millis, entry: &MapEntry, random: u64) -> Option<Self> {
        let all = entry.info.endpoints();
        let first = usize::try_from(random % all.len().max(1) as u64).unwrap_or(0);
        let order = all.iter().cycle().skip(first).take(all.len().min(ENDPOINTS));
        let mut unasked: Vec<NodeAddress> = order.cloned().collect();
        unasked.reverse();
        (!unasked.is_empty()).then(|| Self {
            datacenter: entry.id().clone(),
            unasked,
            open: BTreeMap::new(),
            asked_at: now,
            hedge_at: None,
            stand: Stand::Waiting,
        })
    }

    pub(super) fn next_endpoint(&mut self) -> Option<NodeAddress> {
        self.unasked.pop()
    }

    pub(super) const fn has_more(&self) -> bool {
        !self.unasked.is_empty()
    }
}

impl<K> Flight<K> {
    /// Whether every datacenter has answered or is given up.
    pub(super) fn is_over(&self) -> bool {
        self.parties.iter().all(|party| party.stand != Stand::Waiting)
    }

    /// The datacenters that have not said anything.
    pub(super) fn silent(&self) -> Vec<DataCenterId> {
        let silent = self.parties.iter().filter(|party| party.stand != Stand::No);
        let mut all: Vec<DataCenterId> = silent.map(|party| party.datacenter.clone()).collect();
        all.extend(self.skipped.iter().cloned());
        all.sort();
        all
    }

    /// When it must be looked at next.
    pub(super) fn wake_at(&self) -> Millis {
        let hedges = self.parties.iter().filter_map(|party| party.hedge_at);
        hedges.chain(self.seekers.values().copied()).fold(self.deadline, Millis::min)
    }
}

/// How many endpoints of a datacenter one search asks at most.
const ENDPOINTS: usize = 3;
