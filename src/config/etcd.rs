//! `[backend.etcd]`: where etcd is, and how this node proves itself to it.
//!
//! The keys are there in every build, so that one file serves all of them; only a build with the cargo feature `etcd` can
//! use them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::leaf::{Leaf, Shape};
use super::{optional, span};

/// `[backend.etcd]`: where etcd is. Secrets are not in here, only the files that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EtcdSettings {
    /// The members' client addresses, all `http://` or all `https://`.
    pub endpoints: Vec<String>,
    /// What all keys begin with. Clusters that share an etcd differ here.
    pub prefix: String,
    /// How long the start waits for an etcd that answers.
    #[serde(with = "span")]
    pub connect_timeout: Duration,
    /// How long one request may take.
    #[serde(with = "span")]
    pub request_timeout: Duration,
    /// How long a watch may be silent before etcd is asked whether it still is there.
    #[serde(with = "span")]
    pub watch_idle: Duration,
    /// The user, where etcd asks for one.
    #[serde(with = "optional")]
    pub user: Option<String>,
    /// The file that holds the user's password.
    #[serde(with = "optional")]
    pub password_file: Option<PathBuf>,
    /// `[backend.etcd.tls]`: what `https://` needs.
    pub tls: EtcdTlsSettings,
}

impl Default for EtcdSettings {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            prefix: "/archipelago".to_owned(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            watch_idle: Duration::from_secs(5),
            user: None,
            password_file: None,
            tls: EtcdTlsSettings::default(),
        }
    }
}

/// `[backend.etcd.tls]`: how etcd proves itself to this node, and this node to it. All files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EtcdTlsSettings {
    /// The authorities that etcd's certificate must be signed by. TLS is used if it is set.
    #[serde(with = "optional")]
    pub ca_file: Option<PathBuf>,
    /// The certificate of this node, where etcd asks for one.
    #[serde(with = "optional")]
    pub certificate_file: Option<PathBuf>,
    /// Its private key.
    #[serde(with = "optional")]
    pub key_file: Option<PathBuf>,
    /// The name in etcd's certificate, if it is not the one in the address.
    #[serde(with = "optional")]
    pub server_name: Option<String>,
}

/// The addresses of at least one member.
pub(super) struct Endpoints;

impl<'de> Deserialize<'de> for Endpoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = Vec::<String>::deserialize(deserializer)?;
        let sound = |text: &String| {
            let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
            host.is_some_and(|host| !host.is_empty())
        };
        let fits = !all.is_empty() && all.iter().all(sound);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no addresses of etcd")) }
    }
}

impl Leaf for Endpoints {
    const SHAPE: Shape = Shape::List;

    fn expected() -> String {
        r#"a list of addresses such as ["http://127.0.0.1:2379"], each http:// or https://"#.to_owned()
    }
}

/// What keys begin with.
pub(super) struct KeyPrefix;

impl<'de> Deserialize<'de> for KeyPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let empty = text.trim_matches('/').is_empty() || text.chars().any(char::is_control);
        if empty { Err(serde::de::Error::custom("no prefix")) } else { Ok(Self) }
    }
}

impl Leaf for KeyPrefix {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"the beginning of a path such as "/archipelago""#.to_owned()
    }
}
