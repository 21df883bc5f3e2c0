//! Into which datacenters an actor may be placed that somebody wants abroad.
//!
//! Here it is decided which fit; a policy ([`ChooseDataCenter`](super::ChooseDataCenter)) puts them into the order in which they
//! are tried, and chance decides only at which of its endpoints a datacenter is asked first.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{DataCenterId, DataCenterIdError, DataCenterMap, DataCenterState, MapEntry, OnStale};
use crate::identity::NodeAddress;

/// A datacenter by its id, or any that has these labels: `a.eu.main`, `tier=prod`, `tier=prod, latency=low`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataCenterTarget {
    /// This very one.
    Id(DataCenterId),
    /// One that has all of these labels.
    Labels(BTreeMap<String, String>),
}

impl DataCenterTarget {
    /// The datacenters of `map` that may take an actor, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`NoCandidate`] if there are none.
    pub fn candidates<'map>(
        &self,
        map: &'map DataCenterMap,
        on_stale: OnStale,
    ) -> Result<Vec<&'map MapEntry>, NoCandidate> {
        if map.stale && on_stale == OnStale::Fail {
            return Err(NoCandidate::Stale);
        }
        let mut fitting: Vec<&MapEntry> = map.entries.iter().filter(|entry| self.fits(entry)).collect();
        let first = fitting.first().map(|entry| (entry.id().clone(), entry.standing));
        fitting.retain(|entry| entry.standing == DataCenterState::Active);
        match first {
            _ if !fitting.is_empty() => {}
            Some((id, standing)) => return Err(NoCandidate::NotActive { id, standing }),
            None => return Err(NoCandidate::Unknown { target: self.to_string() }),
        }
        Ok(fitting)
    }

    fn fits(&self, entry: &MapEntry) -> bool {
        match self {
            Self::Id(id) => entry.id() == id,
            Self::Labels(wanted) => {
                let labels = entry.info.labels();
                wanted.iter().all(|(label, value)| labels.get(label) == Some(value))
            }
        }
    }
}

/// The endpoints of a datacenter in the order in which to ask them: `random` chooses the first.
pub fn endpoint_order(endpoints: &[NodeAddress], random: u64) -> impl Iterator<Item = &NodeAddress> {
    let count = endpoints.len().max(1) as u64;
    let first = usize::try_from(random % count).unwrap_or(0);
    let (before, after) = endpoints.split_at(first.min(endpoints.len()));
    after.iter().chain(before)
}

/// Why no datacenter can take the actor; nothing was placed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NoCandidate {
    /// The control plane has not answered for too long. Try again when it does, or let `on_stale` proceed.
    #[error("the map of datacenters is stale")]
    Stale,
    /// Nobody knows such a datacenter.
    #[error("no datacenter fits {target:?}")]
    Unknown {
        /// What was asked for.
        target: String,
    },
    /// Whoever fits takes no new actors.
    #[error("datacenter {id} is {standing} and takes no new actors")]
    NotActive {
        /// The first that fits.
        id: DataCenterId,
        /// Where it stands.
        standing: DataCenterState,
    },
    /// The policy chooses none of the datacenters that fit.
    #[error("the policy chooses none of the datacenters that fit {target:?}")]
    NotChosen {
        /// What was asked for.
        target: String,
    },
}

/// Why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It has no `=`, and is no id either.
    #[error(transparent)]
    Id(#[from] DataCenterIdError),
    /// A part of a selector is no `label=value`.
    #[error("{part:?} is no label=value")]
    Label {
        /// That part.
        part: String,
    },
}

impl FromStr for DataCenterTarget {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if !text.contains('=') {
            return Ok(Self::Id(DataCenterId::new(text)?));
        }
        let label = |part: &str| {
            let (label, value) = part.split_once('=').map(|(label, value)| (label.trim(), value.trim()))?;
            (!label.is_empty()).then(|| (label.to_string(), value.to_string()))
        };
        let parts = text.split(',');
        let read =
            parts.map(|part| label(part).ok_or_else(|| TargetError::Label { part: part.trim().into() }));
        Ok(Self::Labels(read.collect::<Result<_, _>>()?))
    }
}

impl From<DataCenterId> for DataCenterTarget {
    fn from(id: DataCenterId) -> Self {
        Self::Id(id)
    }
}

impl fmt::Display for DataCenterTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Labels(labels) => {
                for (at, (label, value)) in labels.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{label}={value}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::datacenter::{DataCenterInfo, HomeByKey, in_order};

    fn entry(name: &str, tier: &str, standing: DataCenterState) -> MapEntry {
        let labels = BTreeMap::from([("tier".into(), tier.into()), ("latency".into(), "low".into())]);
        let info = DataCenterInfo::new(name, "", "").unwrap().with_labels(labels).unwrap();
        MapEntry { info, standing }
    }

    fn map() -> DataCenterMap {
        use DataCenterState::{Active, Draining, Inactive};
        let entries = vec![
            entry("a", "prod", Active),
            entry("b", "prod", Active),
            entry("c", "prod", Draining),
            entry("d", "test", Active),
            entry("e", "old", Inactive),
        ];
        DataCenterMap::new(None, entries)
    }

    fn names(target: &str, actor: u64, map: &DataCenterMap) -> Result<Vec<String>, NoCandidate> {
        let target: DataCenterTarget = target.parse().unwrap();
        let found = target.candidates(map, OnStale::Fail)?;
        let found = in_order(&HomeByKey, (actor, 0), map, &found, |_| None);
        Ok(found.into_iter().map(|entry| entry.id().to_string()).collect())
    }

    /// Proves: R348, R351, R503, C31
    #[test]
    fn labels_choose_the_same_datacenter_for_the_same_actor_and_spread_actors() {
        let map = map();
        let mut first = BTreeMap::<String, u32>::new();
        for actor in 0..100 {
            let found = names("tier=prod, latency=low", actor, &map).unwrap();
            assert_eq!(found, names("latency=low,tier=prod", actor, &map).unwrap());
            assert_eq!(found.len(), 2);
            *first.entry(found[0].clone()).or_default() += 1;
        }
        assert!(first.len() == 2 && first.values().all(|count| *count > 25), "{first:?}");
    }

    /// Proves: R415, R416
    #[test]
    fn only_active_datacenters_are_candidates() {
        use DataCenterState::{Draining, Inactive};
        let refused =
            |id: &str, standing| Err(NoCandidate::NotActive { id: DataCenterId::new(id).unwrap(), standing });
        assert_eq!(names("a", 1, &map()), Ok(vec!["a".into()]));
        assert_eq!(names("c", 1, &map()), refused("c", Draining));
        assert_eq!(names("tier=old", 1, &map()), refused("e", Inactive));
        assert_eq!(names("tier=none", 1, &map()), Err(NoCandidate::Unknown { target: "tier=none".into() }));
        assert_eq!(names("z", 1, &map()), Err(NoCandidate::Unknown { target: "z".into() }));
    }

    /// Proves: C33
    #[test]
    fn a_stale_map_places_nothing_unless_asked_to() {
        let mut map = map();
        map.stale = true;
        assert_eq!(names("a", 1, &map), Err(NoCandidate::Stale));
        let target: DataCenterTarget = "a".parse().unwrap();
        assert_eq!(target.candidates(&map, OnStale::Proceed).unwrap().len(), 1);
    }

    /// Proves: R412
    #[test]
    fn chance_chooses_the_first_endpoint_and_the_others_follow() {
        let endpoints: Vec<NodeAddress> = (1..=3).map(|port| NodeAddress::new("h", port).unwrap()).collect();
        let ports =
            |random| -> Vec<u16> { endpoint_order(&endpoints, random).map(NodeAddress::port).collect() };
        assert_eq!([ports(0), ports(1), ports(5)], [[1, 2, 3], [2, 3, 1], [3, 1, 2]].map(Vec::from));
        assert_eq!(endpoint_order(&[], 7).count(), 0);
    }

    #[test]
    fn a_target_reads_back_from_what_it_says() {
        for text in ["a.eu.main", "tier=prod", "latency=low,tier=prod", "tier="] {
            assert_eq!(text.parse::<DataCenterTarget>().unwrap().to_string(), text);
        }
        assert_eq!(
            "tier=prod,oops".parse::<DataCenterTarget>(),
            Err(TargetError::Label { part: "oops".into() })
        );
        assert!(matches!("".parse::<DataCenterTarget>(), Err(TargetError::Id(_))));
    }
}
