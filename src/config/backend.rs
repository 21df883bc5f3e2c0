//! `[backend]`: which store keeps the directory, and what each of them can be told.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use archipelago_protocol::identity::NodeAddress;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::etcd::EtcdSettings;
use super::foundationdb::FoundationDbSettings;
use super::nats::NatsSettings;
use super::optional;

/// `[backend]`: the store behind the directory. The sections of those that are not chosen may stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct BackendSettings {
    /// Which one.
    pub kind: BackendKind,
    /// `[backend.embedded]`: what only the embedded one can be told.
    pub embedded: EmbeddedSettings,
    /// `[backend.etcd]`: what only etcd can be told.
    pub etcd: EtcdSettings,
    /// `[backend.nats]`: what only NATS can be told.
    pub nats: NatsSettings,
    /// `[backend.foundationdb]`: what only FoundationDB can be told.
    pub foundationdb: FoundationDbSettings,
}

impl Default for BackendSettings {
    fn default() -> Self {
        Self {
            kind: BackendKind::Embedded,
            embedded: EmbeddedSettings::default(),
            etcd: EtcdSettings::default(),
            nats: NatsSettings::default(),
            foundationdb: FoundationDbSettings::default(),
        }
    }
}

/// `[backend.embedded]`: a store in memory, for several processes. For development: without the process that serves
/// it there is no store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EmbeddedSettings {
    /// Serves the store of this node to others.
    pub serve: bool,
    /// Uses the store of the node at this address.
    #[serde(with = "optional")]
    pub join: Option<NodeAddress>,
}

/// A store that can keep the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// A store in memory, shared by the nodes of one process. Always built in.
    Embedded,
    /// etcd 3.4 or later. The cargo feature `etcd`.
    Etcd,
    /// NATS JetStream, server 2.11 or later. The cargo feature `nats`.
    Nats,
    /// FoundationDB 7.3 or later. The cargo feature `foundationdb`.
    FoundationDb,
}

/// There is no backend of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a backend; {}", known())]
pub struct UnknownBackend {
    /// What was given.
    pub name: String,
}

impl BackendKind {
    /// How long a session lasts where the user names no time. An election of a NATS leader may take 9 seconds, and must
    /// not end the sessions of a healthy cluster.
    pub(super) const fn session_ttl(self) -> Duration {
        match self {
            Self::Embedded | Self::Etcd | Self::FoundationDb => Duration::from_secs(6),
            Self::Nats => Duration::from_secs(12),
        }
    }

    pub(super) const fn presence(self) -> Presence {
        match self {
            Self::Embedded => Presence::BuiltIn,
            Self::Etcd => Presence::of_feature("etcd", cfg!(feature = "etcd")),
            Self::Nats => Presence::of_feature("nats", cfg!(feature = "nats")),
            Self::FoundationDb => Presence::of_feature("foundationdb", cfg!(feature = "foundationdb")),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Etcd => "etcd",
            Self::Nats => "nats",
            Self::FoundationDb => "foundationdb",
        }
    }
}

/// Whether a backend can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// In every build.
    BuiltIn,
    /// In builds with this cargo feature, of which this is one.
    Built(&'static str),
    /// In builds with this cargo feature, of which this is none.
    NotBuilt(&'static str),
}

impl Presence {
    const fn of_feature(feature: &'static str, built: bool) -> Self {
        if built { Self::Built(feature) } else { Self::NotBuilt(feature) }
    }
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Built(feature) | Self::NotBuilt(feature) => write!(f, "cargo feature `{feature}`"),
        }
    }
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        let found = BACKENDS.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownBackend { name: name.to_owned() })
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for BackendKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BackendKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The names of all backends, each with what it takes to have it.
pub(super) fn known() -> String {
    let names = BACKENDS.map(|kind| format!("{:?} ({})", kind.name(), kind.presence()));
    format!("known are {}", names.join(", "))
}

const BACKENDS: [BackendKind; 4] =
    [BackendKind::Embedded, BackendKind::Etcd, BackendKind::Nats, BackendKind::FoundationDb];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_reads_back_from_its_own_name() {
        for kind in BACKENDS {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn what_is_in_this_build_follows_the_features() {
        let built = |kind: BackendKind| matches!(kind.presence(), Presence::BuiltIn | Presence::Built(_));
        assert!(built(BackendKind::Embedded));
        assert_eq!(built(BackendKind::Etcd), cfg!(feature = "etcd"));
        assert_eq!(built(BackendKind::Nats), cfg!(feature = "nats"));
        assert_eq!(built(BackendKind::FoundationDb), cfg!(feature = "foundationdb"));
    }
}
