//! Which datacenter something belongs to, or goes to.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use super::{DataCenterId, DataCenterInfo};
use crate::hash::{mix, stable_hash};
use crate::time::Millis;

/// Puts the datacenters that may have something into the order in which they are chosen.
///
/// # Every implementation
///
/// - *choice_is_pure*: equal questions get equal answers. Chance comes in with the question.
/// - *choice_is_among_candidates*: only datacenters that were given are named, each once.
pub trait ChooseDataCenter: fmt::Debug + Send + Sync + 'static {
    /// The datacenters, best first. `candidates` are active and in the order of their ids.
    fn order(
        &self,
        wanted: &WantedDataCenter<'_>,
        candidates: &[DataCenterCandidate<'_>],
    ) -> Vec<DataCenterId>;
}

/// What a datacenter is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WantedDataCenter<'a> {
    /// The stable hash of the actor.
    pub actor: u64,
    /// Our own datacenter, if it has told about itself.
    pub asker: Option<&'a DataCenterInfo>,
    /// Chance, different for each question.
    pub random: u64,
}

/// A datacenter that could be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataCenterCandidate<'a> {
    /// What it says about itself.
    pub info: &'a DataCenterInfo,
    /// How long it takes to answer, if that is known; zero for our own.
    pub round_trip: Option<Millis>,
}

/// The same datacenter for a key, whoever asks, as long as the datacenters are the same. One that comes or goes changes the
/// choice for its own share only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HomeByKey;

/// The one that answers fastest; those that were never asked come last, spread by chance.
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
        ranked(candidates, |one| Reverse(mix(wanted.actor ^ name_hash(one.info))))
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

fn distance(wanted: &WantedDataCenter<'_>, one: &DataCenterCandidate<'_>) -> (Millis, u64) {
    (one.round_trip.unwrap_or(Millis::MAX), mix(wanted.random ^ name_hash(one.info)))
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
    use alloc::format;

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
}
