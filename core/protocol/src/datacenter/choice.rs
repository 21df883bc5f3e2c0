//! Which datacenter something belongs to, or goes to.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use super::{DataCenterId, DataCenterInfo, DataCenterMap, MapEntry};
use crate::hash::{mix, stable_hash};
use crate::time::Millis;

/// Puts the datacenters that may have something into the order in which they are chosen.
///
/// # Every implementation
///
/// - *choice_is_pure*: equal questions get equal answers. Chance comes in with the question.
/// - *choice_is_among_candidates*: only datacenters that were given are named, each once. One that is left out is not chosen.
///
/// Whether two nodes choose the same is a matter of the policy: round trips differ from node to node, the key of an actor does not.
pub trait ChooseDataCenter: fmt::Debug + Send + Sync + 'static {
    /// The datacenters, best first. `candidates` are active and in the order of their ids.
    fn order(
        &self,
        wanted: &WantedDataCenter<'_>,
        candidates: &[DataCenterCandidate<'_>],
    ) -> Vec<DataCenterId>;

    /// Whether it looks at round trips. A node measures them only if one of its policies does. Default: it does.
    fn measures(&self) -> bool {
        true
    }
}

/// What a datacenter is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WantedDataCenter<'a> {
    /// The stable hash of the actor.
    pub actor: u64,
    /// Our own datacenter, if it has told about itself.
    pub asker: Option<&'a DataCenterInfo>,
    /// Chance, different for each question; zero where every asker must come to the same choice.
    pub random: u64,
}

/// A datacenter that could be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataCenterCandidate<'a> {
    /// What it says about itself.
    pub info: &'a DataCenterInfo,
    /// How long it takes to answer, in begun milliseconds, if that is known; zero for our own.
    pub round_trip: Option<Millis>,
}

/// The same datacenter for a key, whoever asks, as long as the datacenters are the same. One that comes or goes changes the
/// choice for its own share only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HomeByKey;

/// The one that answers fastest; those of which that is not known come last. Among equals as [`HomeByKey`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NearestFirst;

/// Those of our own zone, then of our region, then the others; among equals as [`NearestFirst`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegionFirst;

impl ChooseDataCenter for HomeByKey {
    fn order(
        &self,
        wanted: &WantedDataCenter<'_>,
        candidates: &[DataCenterCandidate<'_>],
    ) -> Vec<DataCenterId> {
        ranked(candidates, |one| by_key(wanted, one))
    }

    fn measures(&self) -> bool {
        false
    }
}

impl ChooseDataCenter for NearestFirst {
    fn order(
        &self,
        wanted: &WantedDataCenter<'_>,
        candidates: &[DataCenterCandidate<'_>],
    ) -> Vec<DataCenterId> {
        ranked(candidates, |one| distance(wanted, one))
    }
}

impl ChooseDataCenter for RegionFirst {
    fn order(
        &self,
        wanted: &WantedDataCenter<'_>,
        candidates: &[DataCenterCandidate<'_>],
    ) -> Vec<DataCenterId> {
        ranked(candidates, |one| (apart(wanted.asker, one.info), distance(wanted, one)))
    }
}

/// The candidates in the order of a policy, in which each stands once at most. `map` is where they are from, `round_trip` what
/// is known of the others.
pub fn in_order<'map>(
    policy: &dyn ChooseDataCenter,
    (actor, random): (u64, u64),
    map: &DataCenterMap,
    candidates: &[&'map MapEntry],
    round_trip: impl Fn(&DataCenterId) -> Option<Millis>,
) -> Vec<&'map MapEntry> {
    let distance = |id| if map.is_own(id) { Some(Millis::ZERO) } else { round_trip(id) };
    let candidate =
        |entry: &&'map MapEntry| DataCenterCandidate { info: &entry.info, round_trip: distance(entry.id()) };
    let asker = map.own.as_ref().and_then(|own| map.get(own)).map(|entry| &entry.info);
    let known: Vec<DataCenterCandidate<'_>> = candidates.iter().map(candidate).collect();
    let mut left = candidates.to_vec();
    let named = policy.order(&WantedDataCenter { actor, asker, random }, &known).into_iter();
    let take = |id: DataCenterId| Some(left.swap_remove(left.iter().position(|one| *one.id() == id)?));
    named.filter_map(take).collect()
}

fn by_key(wanted: &WantedDataCenter<'_>, one: &DataCenterCandidate<'_>) -> Reverse<u64> {
    Reverse(mix(wanted.actor ^ name_hash(one.info)))
}

fn distance(wanted: &WantedDataCenter<'_>, one: &DataCenterCandidate<'_>) -> (Millis, Reverse<u64>) {
    (one.round_trip.unwrap_or(Millis::MAX), by_key(wanted, one))
}

/// 0: the same zone; 1: the same region; 2: neither, or nobody has said.
fn apart(ours: Option<&DataCenterInfo>, theirs: &DataCenterInfo) -> u8 {
    let same = |a: &str, b: &str| !a.is_empty() && a == b;
    match ours {
        Some(ours) if !same(ours.region(), theirs.region()) => 2,
        Some(ours) => u8::from(!same(ours.zone(), theirs.zone())),
        None => 2,
    }
}

fn name_hash(info: &DataCenterInfo) -> u64 {
    stable_hash(info.id().as_str().as_bytes())
}

fn ranked<R: Ord>(
    candidates: &[DataCenterCandidate<'_>],
    rank: impl Fn(&DataCenterCandidate<'_>) -> R,
) -> Vec<DataCenterId> {
    let mut order: Vec<&DataCenterCandidate<'_>> = candidates.iter().collect();
    order.sort_by_cached_key(|one| (rank(one), one.info.id().clone()));
    order.into_iter().map(|one| one.info.id().clone()).collect()
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use super::super::DataCenterState;
    use super::*;

    fn info(name: &str, region: &str, zone: &str) -> DataCenterInfo {
        DataCenterInfo::new(name, region, zone).unwrap()
    }

    fn first(policy: &dyn ChooseDataCenter, actor: u64, all: &[DataCenterInfo]) -> DataCenterId {
        let candidates: Vec<_> =
            all.iter().map(|info| DataCenterCandidate { info, round_trip: None }).collect();
        let wanted = WantedDataCenter { actor, asker: None, random: 7 };
        policy.order(&wanted, &candidates)[0].clone()
    }

    /// Proves: R503
    #[test]
    fn the_home_of_a_key_is_the_same_for_everybody_and_moves_only_with_its_own_datacenter() {
        let all: Vec<_> = (0..4).map(|n| info(&format!("dc{n}"), "", "")).collect();
        let mut mine = 0;
        for key in 0..400 {
            let actor = mix(key);
            let home = first(&HomeByKey, actor, &all);
            assert_eq!(home, first(&HomeByKey, actor, &all));
            let fewer: Vec<_> = all.iter().filter(|one| one.name() != "dc3").cloned().collect();
            if home.as_str() == "dc3" {
                mine += 1;
            } else {
                assert_eq!(home, first(&HomeByKey, actor, &fewer), "only the share of dc3 moves");
            }
        }
        assert!((60..140).contains(&mine), "{mine} of 400 is no fair share of four");
    }

    /// Proves: C31
    #[test]
    fn the_nearest_is_the_one_that_answers_fastest_and_the_unknown_come_last() {
        let (a, b, c) = (info("a", "", ""), info("b", "", ""), info("c", "", ""));
        let trips = [None, Some(Millis(80)), Some(Millis(8))];
        let candidates: Vec<_> = [&a, &b, &c]
            .into_iter()
            .zip(trips)
            .map(|(info, round_trip)| DataCenterCandidate { info, round_trip })
            .collect();
        let wanted = WantedDataCenter { actor: 1, asker: None, random: 3 };
        let order = NearestFirst.order(&wanted, &candidates);
        assert_eq!(order, [c.id().clone(), b.id().clone(), a.id().clone()]);
        assert_eq!(order, NearestFirst.order(&wanted, &candidates), "equal questions, equal answers");
    }

    #[test]
    fn the_own_zone_and_region_come_before_what_is_nearer() {
        let ours = info("home", "eu", "a");
        let (zone, region, far) = (info("x", "eu", "a"), info("y", "eu", "b"), info("z", "us", "a"));
        let trips = [Millis(90), Millis(50), Millis(1)].map(Some);
        let candidates: Vec<_> = [&zone, &region, &far]
            .into_iter()
            .zip(trips)
            .map(|(info, round_trip)| DataCenterCandidate { info, round_trip })
            .collect();
        let wanted = WantedDataCenter { actor: 1, asker: Some(&ours), random: 3 };
        let order = RegionFirst.order(&wanted, &candidates);
        assert_eq!(order, [zone.id().clone(), region.id().clone(), far.id().clone()]);
    }

    #[test]
    fn datacenters_that_are_equally_near_share_the_actors_the_same_way_for_everybody() {
        let all: Vec<_> = (0..3).map(|n| info(&format!("dc{n}"), "eu", "")).collect();
        let mut firsts = [0; 3];
        for key in 0..300 {
            let near = first(&NearestFirst, mix(key), &all);
            assert_eq!(near, first(&HomeByKey, mix(key), &all));
            assert_eq!(near, first(&RegionFirst, mix(key), &all));
            firsts[all.iter().position(|one| *one.id() == near).unwrap()] += 1;
        }
        assert!(firsts.iter().all(|count| *count > 60), "{firsts:?}");
    }

    /// Names one that is not there, one twice, and leaves one out.
    #[derive(Debug)]
    struct Careless;

    impl ChooseDataCenter for Careless {
        fn order(
            &self,
            wanted: &WantedDataCenter<'_>,
            given: &[DataCenterCandidate<'_>],
        ) -> Vec<DataCenterId> {
            assert_eq!(wanted.asker.map(DataCenterInfo::name), Some("home"));
            let seen: Vec<_> = given.iter().map(|one| (one.info.name(), one.round_trip)).collect();
            assert_eq!(seen, [("a", None), ("b", Some(Millis(7))), ("home", Some(Millis::ZERO))]);
            ["b", "nowhere", "home", "b"].map(|name| DataCenterId::new(name).unwrap()).to_vec()
        }
    }

    #[test]
    fn what_a_policy_names_that_is_no_candidate_is_passed_over_and_whom_it_leaves_out_is_not_chosen() {
        let entry = |name| MapEntry { info: info(name, "", ""), standing: DataCenterState::Active };
        let own = DataCenterId::new("home").unwrap();
        let map = DataCenterMap::new(Some(own), vec![entry("a"), entry("b"), entry("home"), entry("z")]);
        let candidates: Vec<_> = map.entries.iter().filter(|entry| entry.id().as_str() != "z").collect();
        let trip = |id: &DataCenterId| (id.as_str() == "b").then_some(Millis(7));
        let order = in_order(&Careless, (1, 2), &map, &candidates, trip);
        assert_eq!(order.iter().map(|entry| entry.id().as_str()).collect::<Vec<_>>(), ["b", "home"]);
        assert!(
            Careless.measures() && NearestFirst.measures() && RegionFirst.measures() && !HomeByKey.measures()
        );
    }
}
