//! How far away the other datacenters are.
//!
//! One endpoint of each is asked for a sign of life again and again, always the same one as long as it answers. The round trip
//! to a datacenter is the median of the last few answers: a single slow one changes nothing, and a way that has become longer
//! or shorter for good shows after three. Who does not answer three times in a row is of unknown distance. When to ask and what
//! follows is decided here; whoever asks measures, and says what came of it.
//!
//! Invariant: no more is kept than a few numbers for each datacenter of the map.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use super::controller::jittered;
use super::{DataCenterId, DataCenterMap, MapEntry};
use crate::hash::mix;
use crate::identity::NodeAddress;
use crate::time::Millis;

/// The measured distances of the other datacenters, as one node sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Distances {
    all: BTreeMap<DataCenterId, Distance>,
}

/// What happens to the distances.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DistanceEvent<'a> {
    /// It is time to ask.
    Look {
        /// The datacenters there are.
        map: &'a DataCenterMap,
        /// Chance, for the choice of endpoints and of the next time.
        random: u64,
    },
    /// An endpoint has answered.
    Answered {
        /// Of which datacenter.
        datacenter: DataCenterId,
        /// How long after it was asked.
        after: Duration,
    },
    /// An endpoint has not answered within [`Distances::PATIENCE`], or could not be asked.
    Silent {
        /// Of which datacenter.
        datacenter: DataCenterId,
    },
}

/// What is to be done to know the distances.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DistanceAction {
    /// Ask this endpoint for a sign of life.
    Ask {
        /// Of which datacenter.
        datacenter: DataCenterId,
        /// Where.
        endpoint: NodeAddress,
    },
    /// The round trip to a datacenter is this now; none if it is not known any more.
    Measured {
        /// Which.
        datacenter: DataCenterId,
        /// How long it takes.
        round_trip: Option<Duration>,
    },
    /// Say [`Look`](DistanceEvent::Look) at this time.
    LookAt(Millis),
}

impl Distances {
    /// Between two questions to a datacenter, more or less [`JITTER_PERCENT`](super::JITTER_PERCENT).
    pub const INTERVAL: Millis = Millis(5_000);
    /// How long an answer may take: never so long that the next question begins before.
    pub const PATIENCE: Millis = Millis(4_000);

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: DistanceEvent<'_>) -> Vec<DistanceAction> {
        let mut out = Vec::new();
        match event {
            DistanceEvent::Look { map, random } => self.on_look(now, map, random, &mut out),
            DistanceEvent::Answered { datacenter, after } => {
                self.on(datacenter, |distance| distance.answered(after), &mut out);
            }
            DistanceEvent::Silent { datacenter } => self.on(datacenter, Distance::missed, &mut out),
        }
        out
    }

    /// How long a datacenter takes to answer; none if that is not known.
    pub fn round_trip(&self, datacenter: &DataCenterId) -> Option<Duration> {
        self.all.get(datacenter)?.round_trip()
    }

    fn on_look(&mut self, now: Millis, map: &DataCenterMap, random: u64, out: &mut Vec<DistanceAction>) {
        self.all.retain(|id, distance| {
            let stays = map.asked().any(|entry| entry.id() == id);
            if !stays && distance.round_trip().is_some() {
                out.push(DistanceAction::Measured { datacenter: id.clone(), round_trip: None });
            }
            stays
        });
        for (nth, entry) in (0_u64..).zip(map.asked()) {
            let distance = self.all.entry(entry.id().clone()).or_default();
            if let Some(endpoint) = distance.next_endpoint(entry, mix(random ^ nth)) {
                out.push(DistanceAction::Ask { datacenter: entry.id().clone(), endpoint });
            }
        }
        out.push(DistanceAction::LookAt(now + jittered(Self::INTERVAL, random)));
    }

    /// Something has happened to one distance, unless its datacenter has gone meanwhile.
    fn on(
        &mut self,
        datacenter: DataCenterId,
        change: impl FnOnce(&mut Distance),
        out: &mut Vec<DistanceAction>,
    ) {
        let Some(distance) = self.all.get_mut(&datacenter) else { return };
        let before = distance.round_trip();
        change(distance);
        let round_trip = distance.round_trip();
        if round_trip != before {
            out.push(DistanceAction::Measured { datacenter, round_trip });
        }
    }
}

/// The distance of one datacenter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Distance {
    /// Who is asked.
    endpoint: Option<NodeAddress>,
    /// The last answers, the oldest first.
    trips: VecDeque<Duration>,
    /// How often in a row there was none.
    silent: u32,
}

impl Distance {
    /// Whom to ask: the same as last time, or after silence the one that follows it.
    fn next_endpoint(&mut self, entry: &MapEntry, random: u64) -> Option<NodeAddress> {
        let all = entry.info.endpoints();
        let count = all.len().max(1);
        let place = self.endpoint.as_ref().and_then(|known| all.iter().position(|one| one == known));
        let next = match place {
            Some(place) if self.silent == 0 => place,
            Some(place) => (place + 1) % count,
            None => usize::try_from(random % count as u64).unwrap_or(0),
        };
        self.endpoint = all.get(next).cloned();
        self.endpoint.clone()
    }

    fn answered(&mut self, after: Duration) {
        self.silent = 0;
        if self.trips.len() == KEPT {
            self.trips.pop_front();
        }
        self.trips.push_back(after);
    }

    fn missed(&mut self) {
        self.silent = self.silent.saturating_add(1);
        if self.silent >= SILENCES {
            self.trips.clear();
        }
    }

    /// The median; the smaller of the two in the middle of an even number.
    fn round_trip(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.trips.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }
}

/// So many answers count.
const KEPT: usize = 5;

/// So many times in a row a datacenter may be silent before its distance is not known any more.
const SILENCES: u32 = 3;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::super::{DataCenterInfo, DataCenterState};
    use super::*;

    fn id(name: &str) -> DataCenterId {
        DataCenterId::new(name).unwrap()
    }

    fn map(others: &[(&str, usize)]) -> DataCenterMap {
        let entry = |name: &str, count: usize| {
            let ports = 1..=u16::try_from(count).unwrap();
            let endpoints = ports.map(|port| NodeAddress::new(name, port).unwrap()).collect();
            let info = DataCenterInfo::new(name, "", "").unwrap().with_endpoints(endpoints).unwrap();
            MapEntry { info, standing: DataCenterState::Active }
        };
        let others = others.iter().map(|(name, count)| entry(name, *count));
        DataCenterMap::new(Some(id("home")), others.chain([entry("home", 1)]).collect())
    }

    fn look(distances: &mut Distances, map: &DataCenterMap) -> Vec<DistanceAction> {
        distances.handle(Millis(1_000), DistanceEvent::Look { map, random: 7 })
    }

    fn asked(actions: &[DistanceAction]) -> Vec<NodeAddress> {
        let ask = |action: &DistanceAction| match action {
            DistanceAction::Ask { endpoint, .. } => Some(endpoint.clone()),
            _ => None,
        };
        actions.iter().filter_map(ask).collect()
    }

    fn answer(distances: &mut Distances, name: &str, millis: u64) -> Option<u64> {
        let after = Duration::from_millis(millis);
        distances.handle(Millis(0), DistanceEvent::Answered { datacenter: id(name), after });
        distances.round_trip(&id(name)).map(|trip| u64::try_from(trip.as_millis()).unwrap())
    }

    fn silence(distances: &mut Distances, name: &str) -> Vec<DistanceAction> {
        distances.handle(Millis(0), DistanceEvent::Silent { datacenter: id(name) })
    }

    #[test]
    fn the_same_endpoint_of_each_other_datacenter_is_asked_again_and_again() {
        let (mut distances, map) = (Distances::default(), map(&[("a", 3), ("b", 1), ("none", 0)]));
        let first = look(&mut distances, &map);
        assert_eq!(asked(&first).iter().map(NodeAddress::host).collect::<Vec<_>>(), ["a", "b"]);
        let Some(DistanceAction::LookAt(next)) = first.last() else { panic!("{first:?}") };
        assert!((5_500..=6_500).contains(&next.0), "{next}");
        for random in 0..10 {
            let again = distances.handle(Millis(0), DistanceEvent::Look { map: &map, random });
            assert_eq!(asked(&again), asked(&first));
        }
    }

    #[test]
    fn a_single_slow_answer_changes_nothing_and_a_longer_way_shows_after_three() {
        let mut distances = Distances::default();
        look(&mut distances, &map(&[("a", 1)]));
        assert_eq!(answer(&mut distances, "a", 10), Some(10));
        (0..4).for_each(|_| assert_eq!(answer(&mut distances, "a", 10), Some(10)));
        assert_eq!(answer(&mut distances, "a", 900), Some(10));
        assert_eq!(answer(&mut distances, "a", 10), Some(10));
        assert_eq!([80, 80].map(|trip| answer(&mut distances, "a", trip)), [Some(10), Some(80)]);
    }

    #[test]
    fn who_is_silent_is_asked_elsewhere_and_after_three_times_its_distance_is_unknown() {
        let (mut distances, map) = (Distances::default(), map(&[("a", 2)]));
        let first = asked(&look(&mut distances, &map));
        answer(&mut distances, "a", 10);
        assert_eq!(silence(&mut distances, "a"), []);
        assert_ne!(asked(&look(&mut distances, &map)), first, "the other endpoint may answer");
        assert_eq!(silence(&mut distances, "a"), []);
        let unknown = DistanceAction::Measured { datacenter: id("a"), round_trip: None };
        assert_eq!(silence(&mut distances, "a"), vec![unknown]);
        assert_eq!(answer(&mut distances, "a", 30), Some(30), "what was true before counts no more");
    }

    #[test]
    fn a_datacenter_that_has_gone_is_forgotten_and_a_late_answer_of_it_counts_nothing() {
        let mut distances = Distances::default();
        look(&mut distances, &map(&[("a", 1)]));
        answer(&mut distances, "a", 10);
        let gone = look(&mut distances, &map(&[]));
        assert_eq!(gone[0], DistanceAction::Measured { datacenter: id("a"), round_trip: None });
        assert_eq!(answer(&mut distances, "a", 10), None);
    }

    proptest! {
        #[test]
        fn a_round_trip_is_one_of_the_last_few_and_what_is_kept_is_bounded(trips in proptest::collection::vec(0_u64..50, 1..40)) {
            let mut distances = Distances::default();
            look(&mut distances, &map(&[("a", 1)]));
            for (count, trip) in (1..).zip(&trips) {
                let median = answer(&mut distances, "a", *trip).unwrap();
                let last = &trips[usize::saturating_sub(count, KEPT)..count];
                prop_assert!(last.contains(&median));
                let below = last.iter().filter(|one| **one < median).count();
                let above = last.iter().filter(|one| **one > median).count();
                prop_assert!(below <= last.len() / 2 && above <= last.len() / 2);
                prop_assert!(distances.all[&id("a")].trips.len() <= KEPT);
            }
        }
    }
}
