//! `[backend.nats]`: where NATS is, and how this node proves itself to it.
//!
//! The keys are there in every build, so that one file serves all of them; only a build with the cargo feature `nats` can
//! use them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::leaf::{Leaf, Shape};
use super::{optional, span};

/// `[backend.nats]`: where NATS is. Secrets are not in here, only the files that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NatsSettings {
    /// The servers, any of which will do: `nats://host:port`, or `tls://host:port`.
    pub urls: Vec<String>,
    /// The stream that holds the records. One per cluster.
    pub stream: String,
    /// What the subjects of all records begin with. One per cluster.
    pub prefix: String,
    /// How many servers keep each record, 1 to 5. Fewer than 3 lose acknowledged writes with one machine.
    pub replicas: u8,
    /// Whether a missing stream is created.
    pub create_stream: bool,
    /// How long the start may take to reach a server and to find the stream in order.
    #[serde(with = "span")]
    pub connect_timeout: Duration,
    /// How long one request may take.
    #[serde(with = "span")]
    pub request_timeout: Duration,
    /// How long one listing may take.
    #[serde(with = "span")]
    pub list_timeout: Duration,
    /// The longest pause between two attempts to reach a server that is away.
    #[serde(with = "span")]
    pub max_reconnect_delay: Duration,
    /// How long a stream that is created remembers what was deleted.
    #[serde(with = "span")]
    pub history: Duration,
    /// How long a stream that was just created grants nothing, because nodes may still hold what an earlier stream of
    /// its name granted. Longer than every session.
    #[serde(with = "span")]
    pub settle: Duration,
    /// The user, together with `password_file`.
    #[serde(with = "optional")]
    pub user: Option<String>,
    /// The file that holds the password.
    #[serde(with = "optional")]
    pub password_file: Option<PathBuf>,
    /// The file that holds the token.
    #[serde(with = "optional")]
    pub token_file: Option<PathBuf>,
    /// The file that holds the seed of an nkey.
    #[serde(with = "optional")]
    pub nkey_seed_file: Option<PathBuf>,
    /// The file with a JWT and its nkey seed, as `nsc` writes it.
    #[serde(with = "optional")]
    pub credentials_file: Option<PathBuf>,
    /// `[backend.nats.tls]`: TLS towards the servers.
    pub tls: NatsTlsSettings,
}

impl Default for NatsSettings {
    fn default() -> Self {
        Self {
            urls: vec!["nats://127.0.0.1:4222".to_owned()],
            stream: "archipelago".to_owned(),
            prefix: "archipelago".to_owned(),
            replicas: 3,
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
            tls: NatsTlsSettings::default(),
        }
    }
}

/// `[backend.nats.tls]`: TLS towards the servers, demanded if any of these is set. All files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NatsTlsSettings {
    /// The authority that signed the servers' certificates; without it those of the system.
    #[serde(with = "optional")]
    pub ca_file: Option<PathBuf>,
    /// The certificate shown to the servers.
    #[serde(with = "optional")]
    pub certificate_file: Option<PathBuf>,
    /// Its private key.
    #[serde(with = "optional")]
    pub key_file: Option<PathBuf>,
}

/// The addresses of at least one server.
pub(super) struct ServerUrls;

impl<'de> Deserialize<'de> for ServerUrls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = Vec::<String>::deserialize(deserializer)?;
        let sound = |text: &String| {
            let host = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://"));
            host.is_some_and(|host| !host.is_empty() && !host.contains('@'))
        };
        let fits = !all.is_empty() && all.iter().all(sound);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no addresses of NATS servers")) }
    }
}

impl Leaf for ServerUrls {
    const SHAPE: Shape = Shape::List;

    fn expected() -> String {
        r#"a list of addresses such as ["nats://127.0.0.1:4222"], each nats:// or tls://, without user and password"#
            .to_owned()
    }
}

/// The name of a stream.
pub(super) struct StreamName;

impl<'de> Deserialize<'de> for StreamName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = text.len() <= 64 && is_token(&text);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no name of a stream")) }
    }
}

impl Leaf for StreamName {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "1 to 64 letters, digits, dashes and underscores".to_owned()
    }
}

/// What subjects begin with.
pub(super) struct SubjectPrefix;

impl<'de> Deserialize<'de> for SubjectPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = text.len() <= 128 && text.split('.').all(is_token);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no prefix of subjects")) }
    }
}

impl Leaf for SubjectPrefix {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "letters, digits, dashes and underscores with dots in between, at most 128".to_owned()
    }
}

/// How many servers keep a record.
pub(super) struct Replicas;

impl<'de> Deserialize<'de> for Replicas {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fits = (1..=5).contains(&u8::deserialize(deserializer)?);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no number of replicas")) }
    }
}

impl Leaf for Replicas {
    const SHAPE: Shape = Shape::Number;

    fn expected() -> String {
        "a whole number from 1 to 5".to_owned()
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
