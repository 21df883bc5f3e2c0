//! Settings of the NATS backend.
//!
//! Names and addresses are types that refuse what NATS would not take, so that a mistake shows when the file is read.
//! Secrets are never in the settings, only the paths of the files that hold them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod names;

pub use names::{InvalidName, Replicas, ServerUrl, StreamName, SubjectPrefix};

/// Settings of a [`NatsStore`](crate::NatsStore).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NatsConfig {
    /// The servers, any of which will do: `nats://host:port`, or `tls://host:port`.
    pub urls: Vec<ServerUrl>,
    /// The stream that holds the records. One per cluster.
    pub stream: StreamName,
    /// What the subjects of all records begin with. One per cluster.
    pub prefix: SubjectPrefix,
    /// How many servers keep each record. Fewer than 3 lose acknowledged writes with one machine.
    pub replicas: Replicas,
    /// Whether a missing stream is created. With rights that do not reach so far, an operator creates it.
    pub create_stream: bool,
    /// How long a start may take to reach a server and to find the stream in order.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long one request may take.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// How long one listing may take.
    #[serde(with = "humantime_serde")]
    pub list_timeout: Duration,
    /// The longest pause between two attempts to reach a server that is away.
    #[serde(with = "humantime_serde")]
    pub max_reconnect_delay: Duration,
    /// How long a stream that is created remembers what was deleted. A watch that was broken for less than half of it goes on where
    /// it was; after that it lists again. Also the shortest time to live that the server gives a record.
    #[serde(with = "humantime_serde")]
    pub history: Duration,
    /// How long a stream that was just created grants nothing: at least the time to live of the longest session, with
    /// margin, because nodes may still hold what an earlier stream of this name granted.
    #[serde(with = "humantime_serde")]
    pub settle: Duration,
    /// The user, together with `password_file`.
    pub user: Option<String>,
    /// The file that holds the password.
    pub password_file: Option<PathBuf>,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// The file that holds the seed of an nkey.
    pub nkey_seed_file: Option<PathBuf>,
    /// The file with a JWT and its nkey seed, as `nsc` writes it.
    pub credentials_file: Option<PathBuf>,
    /// TLS; without it the connection is encrypted only if the server demands it.
    pub tls: Option<NatsTls>,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            urls: vec![ServerUrl::loopback()],
            stream: StreamName::default(),
            prefix: SubjectPrefix::default(),
            replicas: Replicas::default(),
            create_stream: true,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            list_timeout: Duration::from_secs(30),
            max_reconnect_delay: Duration::from_secs(2),
            history: Duration::from_secs(60),
            settle: Duration::from_secs(15),
            user: None,
            password_file: None,
            token_file: None,
            nkey_seed_file: None,
            credentials_file: None,
            tls: None,
        }
    }
}

impl NatsConfig {
    /// The servers as one text, for errors.
    pub(crate) fn endpoints(&self) -> String {
        let urls: Vec<&str> = self.urls.iter().map(ServerUrl::as_str).collect();
        urls.join(", ")
    }
}

/// TLS towards the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NatsTls {
    /// The authority that signed the servers' certificates, as PEM; without it those of the system.
    pub ca_file: Option<PathBuf>,
    /// The certificate shown to the servers, as PEM.
    pub cert_file: Option<PathBuf>,
    /// The key of `cert_file`, as PEM.
    pub key_file: Option<PathBuf>,
}

/// A reader may be out of touch for less than half of it, and must not take every hiccup for that.
pub(crate) const SHORTEST_HISTORY: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_default() {
        assert_eq!(serde_json::from_str::<NatsConfig>("{}").unwrap(), NatsConfig::default());
    }

    #[test]
    fn a_mistyped_key_is_refused() {
        let error = serde_json::from_str::<NatsConfig>(r#"{"replica": 3}"#).unwrap_err();
        assert!(error.to_string().contains("replica"), "{error}");
        assert!(serde_json::from_str::<NatsConfig>(r#"{"tls": {"ca": "x"}}"#).is_err());
    }

    #[test]
    fn a_secret_in_the_settings_is_refused() {
        for text in [r#"{"password": "x"}"#, r#"{"token": "x"}"#, r#"{"urls": ["nats://me:secret@host"]}"#] {
            let error = serde_json::from_str::<NatsConfig>(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = r#"{"urls": ["tls://a:1", "nats://b:2"], "stream": "s", "prefix": "a.b", "replicas": 5,
            "request_timeout": "500ms", "user": "me", "password_file": "/p", "tls": {"ca_file": "/ca"}}"#;
        let config: NatsConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.request_timeout, Duration::from_millis(500));
        assert_eq!(config.endpoints(), "tls://a:1, nats://b:2");
        let again: NatsConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }
}
