//! `[sharding]`: how shards that have an owner are kept in balance.

use std::num::NonZeroU32;
use std::sync::Arc;

use archipelago_protocol::handoff::{AllocateShards, LeastShards, WeighLoad};
use archipelago_runtime::ShardingSettings as RuntimeSettings;
use serde::{Deserialize, Serialize};

use super::settings::count;

/// `[sharding]`: how shards that have an owner are kept in balance. The same on all nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ShardingSettings {
    /// Whether shards move to nodes that have fewer. Away from nodes that leave they move in any case.
    pub rebalance: bool,
    /// Where shards should be.
    pub strategy: Strategy,
    /// Moves of one kind that a round, once a second, may begin.
    pub moves_per_round: NonZeroU32,
}

/// Where the shards of a kind should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Strategy {
    /// As many on each node.
    LeastShards,
    /// Where few actors are active; a shard moves only from a node that has clearly more than another.
    WeighLoad,
}

impl Default for ShardingSettings {
    fn default() -> Self {
        Self { rebalance: true, strategy: Strategy::LeastShards, moves_per_round: count::<32>() }
    }
}

impl From<Strategy> for Arc<dyn AllocateShards> {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::LeastShards => Arc::new(LeastShards),
            Strategy::WeighLoad => Arc::new(WeighLoad::default()),
        }
    }
}

impl From<&ShardingSettings> for RuntimeSettings {
    fn from(settings: &ShardingSettings) -> Self {
        let mut runtime = Self::default();
        runtime.rebalance = settings.rebalance;
        runtime.strategy = settings.strategy.into();
        runtime.limits.per_round = usize::try_from(settings.moves_per_round.get()).unwrap_or(usize::MAX);
        runtime
    }
}
