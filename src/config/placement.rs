//! How kinds are divided, and what is remembered about where single actors live.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use archipelago_protocol::time::Millis;
use archipelago_runtime::CacheSettings as RuntimeSettings;
use serde::{Deserialize, Serialize};

use super::settings::count;
use super::span;

/// What the actors of a kind are divided into. Each part has one owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Divided {
    /// A fixed number of shards, by the hash of the actor's id.
    #[default]
    Shards,
    /// Single actors: each has a record in the directory while it is active.
    Actors,
    /// Ranges of keys, which can be divided and merged while they are used.
    Ranges,
}

impl fmt::Display for Divided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shards => "shards",
            Self::Actors => "actors with records of their own",
            Self::Ranges => "ranges of keys",
        })
    }
}

/// `[actors.cache]`: what a node remembers about the places of actors that have records of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CacheSettings {
    /// How many places each data arbiter remembers.
    pub entries: NonZeroU32,
    /// After how long without a use a place is forgotten.
    #[serde(with = "span")]
    pub idle: Duration,
    /// Whether every change of a record is followed: places are right before they are used, and each node has the traffic
    /// of all changes.
    pub watch: bool,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { entries: count::<65_536>(), idle: Duration::from_secs(60), watch: false }
    }
}

impl From<&CacheSettings> for RuntimeSettings {
    fn from(settings: &CacheSettings) -> Self {
        let mut runtime = Self::default();
        runtime.limits.entries = usize::try_from(settings.entries.get()).unwrap_or(usize::MAX);
        runtime.limits.idle = Millis::from_duration(settings.idle);
        runtime.watch = settings.watch;
        runtime
    }
}
