//! One search under way.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::{DataCenterId, MapEntry};
use super::events::{AskId, Discovered, SeekerId};
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
    /// The questions that are not answered.
    pub(super) open: BTreeMap<AskId, Question>,
    /// When its first endpoint was asked.
    pub(super) asked_at: Millis,
    /// When the next endpoint is asked besides.
    pub(super) hedge_at: Option<Millis>,
    /// Which endpoint could not say, and when it is asked again.
    pub(super) again: Option<(Millis, NodeAddress)>,
    /// How often the datacenter could not say.
    pub(super) unsettled: u32,
    pub(super) stand: Stand,
}

/// A question that is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) endpoint: NodeAddress,
    pub(super) asked_at: Millis,
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
            again: None,
            unsettled: 0,
            stand: Stand::Waiting,
        })
    }

    pub(super) fn next_endpoint(&mut self) -> Option<NodeAddress> {
        self.unasked.pop()
    }

    pub(super) const fn has_more(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// Whether it says nothing at all, not even that it cannot say.
    pub(super) const fn is_mute(&self) -> bool {
        matches!(self.stand, Stand::Waiting) && self.unsettled == 0
    }

    /// It could not say: how long to wait before it is asked again.
    pub(super) fn pause(&mut self, first: Millis, most: Millis) -> Millis {
        let pause = Millis(first.0.saturating_mul(1 << self.unsettled.min(16))).min(most);
        self.unsettled = self.unsettled.saturating_add(1);
        pause
    }
}

impl<K> Flight<K> {
    /// Whether every datacenter has answered or is given up.
    pub(super) fn is_over(&self) -> bool {
        self.parties.iter().all(|party| party.stand != Stand::Waiting)
    }

    /// What is to be told if it ends now, and nobody has said yes.
    pub(super) fn conclusion<P>(&self) -> Discovered<P> {
        let left = self.parties.iter().filter(|party| party.stand != Stand::No);
        let (mute, others): (Vec<&Party>, Vec<&Party>) = left.partition(|party| party.unsettled == 0);
        let id = |party: &Party| party.datacenter.clone();
        let mut silent: Vec<DataCenterId> =
            mute.into_iter().map(id).chain(self.skipped.iter().cloned()).collect();
        let mut undecided: Vec<DataCenterId> = others.into_iter().map(id).collect();
        if silent.is_empty() && undecided.is_empty() {
            return Discovered::NotFound;
        }
        silent.sort();
        undecided.sort();
        Discovered::Unreachable { silent, undecided }
    }

    /// When it must be looked at next.
    pub(super) fn wake_at(&self) -> Millis {
        let hedges = self.parties.iter().filter_map(|party| party.hedge_at);
        let again = self.parties.iter().filter_map(|party| party.again.as_ref().map(|(at, _)| *at));
        hedges.chain(again).chain(self.seekers.values().copied()).fold(self.deadline, Millis::min)
    }
}

/// How many endpoints of a datacenter one search asks at most.
const ENDPOINTS: usize = 3;
