//! `[backend.foundationdb]`: where FoundationDB is.
//!
//! The keys are there in every build, so that one file serves all of them; only a build with the cargo feature
//! `foundationdb` can use them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::leaf::{Leaf, Shape};
use super::{optional, span};

/// `[backend.foundationdb]`: where FoundationDB is. TLS is set up with FoundationDB's own variables, `FDB_TLS_...`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FoundationDbSettings {
    /// The file that says where the database is; none is where FoundationDB itself looks.
    #[serde(with = "optional")]
    pub cluster_file: Option<PathBuf>,
    /// What all keys begin with. Clusters that share a database differ here.
    pub prefix: String,
    /// How long the start waits for a database that answers.
    #[serde(with = "span")]
    pub connect_timeout: Duration,
    /// How long one request may take, with all attempts.
    #[serde(with = "span")]
    pub request_timeout: Duration,
    /// How often a watch looks by itself.
    #[serde(with = "span")]
    pub watch_poll: Duration,
    /// How long changes are kept for watches that were interrupted.
    #[serde(with = "span")]
    pub history: Duration,
}

impl Default for FoundationDbSettings {
    fn default() -> Self {
        Self {
            cluster_file: None,
            prefix: "archipelago".to_owned(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            watch_poll: Duration::from_secs(2),
            history: Duration::from_secs(300),
        }
    }
}

/// The first element of every key.
pub(super) struct TuplePrefix;

impl<'de> Deserialize<'de> for TuplePrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = (1..=256).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no prefix")) }
    }
}

impl Leaf for TuplePrefix {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"a name such as "archipelago", of at most 256 bytes"#.to_owned()
    }
}
