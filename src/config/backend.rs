//! Which backend keeps the directory, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A backend of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// A store in memory, shared by the nodes of one process. Always built in.
    Embedded,
}

/// The name is no backend of this build. Switch its cargo feature on, or choose one that is built in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a backend of this build; {}", known())]
pub struct UnknownBackend {
    /// What was given.
    pub name: String,
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        let found = BACKENDS.iter().find(|backend| backend.name == name);
        found.and_then(|backend| backend.built).ok_or_else(|| UnknownBackend { name: name.to_owned() })
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
        }
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
    let names: Vec<String> = BACKENDS.iter().map(Backend::to_string).collect();
    format!("known are {}", names.join(", "))
}

struct Backend {
    name: &'static str,
    /// The cargo feature that builds it in; none if it always is.
    feature: Option<&'static str>,
    /// What it is in this build, if it is in it.
    built: Option<BackendKind>,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.feature {
            None => write!(f, "{:?} (built in)", self.name),
            Some(feature) => write!(f, "{:?} (cargo feature `{feature}`)", self.name),
        }
    }
}

const BACKENDS: [Backend; 4] = [
    Backend { name: "embedded", feature: None, built: Some(BackendKind::Embedded) },
    Backend { name: "etcd", feature: Some("etcd"), built: None },
    Backend { name: "nats", feature: Some("nats"), built: None },
    Backend { name: "foundationdb", feature: Some("foundationdb"), built: None },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_of_this_build_reads_back_from_its_own_name() {
        let built: Vec<BackendKind> = BACKENDS.iter().filter_map(|backend| backend.built).collect();
        assert!(built.contains(&BackendKind::Embedded));
        for kind in built {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }
}
