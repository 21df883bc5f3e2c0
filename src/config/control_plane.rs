//! `[control_plane]`: where the datacenters know each other from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use archipelago_protocol::datacenter::EMBEDDED_LEASE;
use humantime_serde::re::humantime::format_duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::backend::{self, BackendKind, EmbeddedSettings, UnknownBackend};
use super::etcd::EtcdSettings;
use super::foundationdb::FoundationDbSettings;
use super::leaf::{Leaf, Shape};
use super::nats::NatsSettings;
use super::span::Span;

/// `[control_plane]`: the registry of datacenters, one for all of them. It may be in the store of a backend, under a prefix of
/// its own, or in a store of its own. The sections of stores that are not chosen may stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ControlPlaneSettings {
    /// Which store it is in; none for a cluster that is alone in the world.
    pub kind: ControlPlaneKind,
    /// How long a datacenter counts as active after its last heartbeat, at least three of them. Has to be said for every store
    /// but the embedded one, where none is 30 s.
    #[serde(with = "lease")]
    pub lease_ttl: Option<Duration>,
    /// `[control_plane.embedded]`: what only the embedded one can be told.
    pub embedded: EmbeddedSettings,
    /// `[control_plane.etcd]`: what only etcd can be told.
    pub etcd: EtcdSettings,
    /// `[control_plane.nats]`: what only NATS can be told.
    pub nats: NatsSettings,
    /// `[control_plane.foundationdb]`: what only FoundationDB can be told.
    pub foundationdb: FoundationDbSettings,
}

impl ControlPlaneSettings {
    /// The lease of a datacenter that holds.
    pub(crate) fn lease(&self) -> Duration {
        self.lease_ttl.unwrap_or(EMBEDDED_LEASE.to_duration())
    }
}

impl Default for ControlPlaneSettings {
    fn default() -> Self {
        let mut etcd = EtcdSettings::default();
        let mut nats = NatsSettings::default();
        let mut foundationdb = FoundationDbSettings::default();
        etcd.prefix = format!("/{NAME}");
        NAME.clone_into(&mut nats.stream);
        NAME.clone_into(&mut nats.prefix);
        NAME.clone_into(&mut foundationdb.prefix);
        Self {
            kind: ControlPlaneKind::None,
            lease_ttl: None,
            embedded: EmbeddedSettings::default(),
            etcd,
            nats,
            foundationdb,
        }
    }
}

/// A store that can keep the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlPlaneKind {
    /// There is no control plane: the cluster knows of no other.
    None,
    /// In a store of this kind.
    In(BackendKind),
}

impl FromStr for ControlPlaneKind {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        if name == NONE { Ok(Self::None) } else { name.parse().map(Self::In) }
    }
}

impl fmt::Display for ControlPlaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NONE),
            Self::In(kind) => kind.fmt(f),
        }
    }
}

impl Serialize for ControlPlaneKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ControlPlaneKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Leaf for ControlPlaneKind {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        format!("{NONE:?} or a store; {}", backend::known())
    }
}

/// For `#[serde(with = "lease")]`: empty text is none.
mod lease {
    use super::{Deserialize, Deserializer, Duration, Serializer, Span, format_duration};
    use crate::config::optional;

    pub(super) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match length {
            Some(length) => serializer.collect_str(&format_duration(*length)),
            None => serializer.serialize_str(""),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let written = optional::deserialize::<Written, D>(deserializer)?;
        Ok(written.map(|Written(length)| length))
    }

    struct Written(Duration);

    impl<'de> Deserialize<'de> for Written {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Span::deserialize(deserializer).map(|Span(length)| Self(length))
        }
    }
}

const NONE: &str = "none";

/// What everything of the control plane begins with where nothing is said: it must not be a cluster's own.
const NAME: &str = "archipelago-datacenters";
