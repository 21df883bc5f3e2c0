//! Settings of the FoundationDB backend.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// Settings of a [`FoundationDbStore`](crate::FoundationDbStore).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FoundationDbConfig {
    /// The file that says where the cluster is. None is where FoundationDB itself looks: the variable
    /// `FDB_CLUSTER_FILE`, else `fdb.cluster` in the working directory, else `/etc/foundationdb/fdb.cluster`.
    pub cluster_file: Option<PathBuf>,
    /// What all keys begin with, as one element of the tuple layer. Clusters that share a database differ here.
    pub prefix: String,
    /// How long the start waits for a database that answers.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long one request may take, with all attempts.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// How often a watch looks by itself, in case the engine's own watch was lost.
    #[serde(with = "humantime_serde")]
    pub watch_poll: Duration,
    /// How long changes are kept for watches that were interrupted, in the time of the database, which leaps by up to 100
    /// seconds when its servers change.
    #[serde(with = "humantime_serde")]
    pub history: Duration,
}

impl Default for FoundationDbConfig {
    fn default() -> Self {
        Self {
            cluster_file: None,
            prefix: "archipelago".into(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            watch_poll: Duration::from_secs(2),
            history: Duration::from_secs(300),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoundationDbConfigError {
    /// The setting makes no sense, or not together with another.
    #[error("foundationdb.{setting}: {problem}")]
    Invalid {
        /// Which one.
        setting: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The file that it names cannot be read.
    #[error("foundationdb.{setting}: cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which one.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl FoundationDbConfig {
    /// Where the database should be, in words: the addresses in the cluster file, as far as that can be read, and the file.
    pub(crate) fn place(&self) -> String {
        let file = self.cluster_file.clone().unwrap_or_else(usual_file);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        match addresses(&text) {
            Some(addresses) => format!("{addresses} (cluster file {})", file.display()),
            None => format!("the cluster file {}", file.display()),
        }
    }

    /// Checks the settings against each other.
    pub(crate) fn check(&self) -> Result<(), FoundationDbConfigError> {
        let bad_prefix = self.prefix.is_empty() || self.prefix.chars().any(char::is_control);
        if bad_prefix || self.prefix.len() > LONGEST_PREFIX {
            return Err(invalid("prefix", "must be 1 to 256 bytes of text without control characters"));
        }
        for (setting, length) in [
            ("connect_timeout", self.connect_timeout),
            ("request_timeout", self.request_timeout),
            ("watch_poll", self.watch_poll),
        ] {
            if length < SHORTEST {
                return Err(invalid(setting, "must be at least 10ms"));
            }
        }
        // A write whose outcome is unknown looks for its own effect in the history.
        if self.history < self.request_timeout.saturating_mul(5).max(self.watch_poll.saturating_mul(5)) {
            return Err(invalid("history", "must be at least five times request_timeout and watch_poll"));
        }
        Ok(())
    }
}

/// Where FoundationDB itself looks.
fn usual_file() -> PathBuf {
    let named = std::env::var_os("FDB_CLUSTER_FILE").filter(|file| !file.is_empty()).map(PathBuf::from);
    let here = || Some(PathBuf::from("fdb.cluster")).filter(|file| file.is_file());
    named.or_else(here).unwrap_or_else(|| PathBuf::from("/etc/foundationdb/fdb.cluster"))
}

/// Of `description:id@address,address`, behind comments, what follows the `@`.
fn addresses(cluster_file: &str) -> Option<&str> {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let line = cluster_file.lines().map(str::trim).rfind(is_content)?;
    line.split_once('@').map(|(_, addresses)| addresses).filter(|addresses| !addresses.is_empty())
}

fn invalid(setting: &'static str, problem: impl Into<String>) -> FoundationDbConfigError {
    FoundationDbConfigError::Invalid { setting, problem: problem.into() }
}

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST_PREFIX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(config: FoundationDbConfig) -> String {
        config.check().expect_err("is refused").to_string()
    }

    #[test]
    fn what_is_not_set_is_the_default() {
        let config: FoundationDbConfig = serde_json::from_str(r#"{"request_timeout": "500ms"}"#).unwrap();
        let request_timeout = Duration::from_millis(500);
        assert_eq!(config, FoundationDbConfig { request_timeout, ..FoundationDbConfig::default() });
        assert!(config.check().is_ok());
        assert!(serde_json::from_str::<FoundationDbConfig>(r#"{"cluster": "a"}"#).is_err());
    }

    #[test]
    fn addresses_are_read_from_a_cluster_file() {
        let file = "# DO NOT EDIT!\n# by hand\ndocker:docker@10.0.0.1:4500,10.0.0.2:4500\n\n";
        assert_eq!(addresses(file), Some("10.0.0.1:4500,10.0.0.2:4500"));
        for no_file in ["", "# only this@there\n", "docker:docker\n", "docker:docker@"] {
            assert_eq!(addresses(no_file), None, "{no_file:?}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_with_their_name() {
        let defaults = FoundationDbConfig::default;
        let prefix = FoundationDbConfig { prefix: String::new(), ..defaults() };
        assert!(refused(prefix).starts_with("foundationdb.prefix: "));
        let hasty = FoundationDbConfig { watch_poll: Duration::ZERO, ..defaults() };
        assert_eq!(refused(hasty), "foundationdb.watch_poll: must be at least 10ms");
        let forgetful = FoundationDbConfig { history: Duration::from_secs(9), ..defaults() };
        assert!(refused(forgetful).starts_with("foundationdb.history: "));
    }
}
