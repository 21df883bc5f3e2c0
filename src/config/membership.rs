//! `[membership]`: how nodes follow each other, and what happens to those that nobody reaches.

use std::num::NonZeroU32;
use std::time::Duration;

use archipelago_protocol::membership;
use archipelago_protocol::time::Millis;
use serde::{Deserialize, Serialize};

use super::settings::count;
use super::span::{self, Pause};

/// `[membership]`: how nodes follow each other. The same on all nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct MembershipSettings {
    /// Time between two rounds of gossip.
    #[serde(with = "span")]
    pub gossip: Duration,
    /// Time between two heartbeats to one node.
    #[serde(with = "span")]
    pub heartbeat: Duration,
    /// How suspicious silence must be for a node to be suspected: 8 is one wrong suspicion in 10⁸, if heartbeats come as
    /// regularly as they did.
    pub suspicion: NonZeroU32,
    /// How long a node may be silent beyond what is usual.
    pub acceptable_pause: Pause,
    /// How long the others must have been out of reach, without any change, before their sessions are revoked.
    #[serde(with = "span")]
    pub stable_after: Duration,
    /// Which side of a split keeps its sessions.
    pub split_brain: SplitBrain,
    /// How many nodes are enough, for `static-quorum`.
    pub quorum: NonZeroU32,
    /// Who leads.
    pub leader: Leader,
}

/// Which side of a split keeps its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SplitBrain {
    /// The side with more members; of equal ones that with the lowest address.
    KeepMajority,
    /// The side of the oldest member.
    KeepOldest,
    /// The side with at least `quorum` members.
    StaticQuorum,
}

/// Who leads the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Leader {
    /// The member with the lowest address.
    LowestAddress,
    /// The member that was let in first.
    Oldest,
}

/// Which nodes are asked to own a shard that nobody owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Placement {
    /// Evenly, by a hash.
    #[default]
    Spread,
    /// The node that asks first.
    Local,
    /// By chance.
    Random,
    /// The node with the fewest active actors.
    LeastLoaded,
}

impl Default for MembershipSettings {
    fn default() -> Self {
        Self {
            gossip: Duration::from_secs(1),
            heartbeat: Duration::from_secs(1),
            suspicion: count::<8>(),
            acceptable_pause: Pause(Duration::ZERO),
            stable_after: Duration::from_secs(20),
            split_brain: SplitBrain::KeepMajority,
            quorum: count::<1>(),
            leader: Leader::LowestAddress,
        }
    }
}

impl From<&MembershipSettings> for membership::MembershipSettings {
    fn from(settings: &MembershipSettings) -> Self {
        let mut all = Self { gossip_period: Millis::from_duration(settings.gossip), ..Self::default() };
        all.heartbeat.period = Millis::from_duration(settings.heartbeat);
        all.heartbeat.phi.first_heartbeat_estimate = all.heartbeat.period;
        all.heartbeat.phi.threshold_permille = settings.suspicion.get().saturating_mul(1_000);
        all.heartbeat.phi.acceptable_heartbeat_pause = Millis::from_duration(settings.acceptable_pause.0);
        all.stable_after = Millis::from_duration(settings.stable_after);
        all.strategy = match settings.split_brain {
            SplitBrain::KeepMajority => membership::SplitStrategy::KeepMajority,
            SplitBrain::KeepOldest => membership::SplitStrategy::KeepOldest,
            SplitBrain::StaticQuorum => {
                let size = usize::try_from(settings.quorum.get()).unwrap_or(usize::MAX);
                membership::SplitStrategy::StaticQuorum(size)
            }
        };
        all.leader = match settings.leader {
            Leader::LowestAddress => membership::LeaderRule::LowestAddress,
            Leader::Oldest => membership::LeaderRule::Oldest,
        };
        all
    }
}
