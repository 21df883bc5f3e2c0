//! The numbers of membership. Every default is the one that the requirements name.

use super::split_brain::SplitStrategy;
use super::{HeartbeatSettings, LeaderRule};
use crate::time::Millis;

/// How one node takes part in membership.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MembershipSettings {
    /// Time between two rounds of gossip.
    pub gossip_period: Millis,
    /// Heartbeats, suspicion and probes.
    pub heartbeat: HeartbeatSettings,
    /// How long a view must stand still before a split is judged.
    pub stable_after: Millis,
    /// Which side of a split keeps its sessions.
    pub strategy: SplitStrategy,
    /// Who of those who are up leads.
    pub leader: LeaderRule,
    /// How long the removed are remembered in gossip. Later each node remembers the ids by itself.
    pub tombstone_life: Millis,
    /// How long a node that knows of others, or has not seen the directory, waits for one to answer before it lets
    /// itself in.
    pub join_patience: Millis,
}

impl Default for MembershipSettings {
    fn default() -> Self {
        Self {
            gossip_period: Millis(1_000),
            heartbeat: HeartbeatSettings::default(),
            stable_after: Millis(20_000),
            strategy: SplitStrategy::KeepMajority,
            leader: LeaderRule::LowestAddress,
            tombstone_life: Millis(600_000),
            join_patience: Millis(5_000),
        }
    }
}
