//! Names that NATS takes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that NATS would not take as this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what}: {why}")]
pub struct InvalidName {
    /// What it should have been.
    pub what: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

/// The address of a server: `nats://host:port` or `tls://host:port`, without user and password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerUrl(String);

impl ServerUrl {
    pub(super) fn loopback() -> Self {
        Self("nats://127.0.0.1:4222".to_owned())
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ServerUrl {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        let invalid = |why| InvalidName { what: "address of a NATS server", why };
        let address: async_nats::ServerAddr = text.parse().map_err(|_| invalid("not an address"))?;
        if address.username().is_some() || address.password().is_some() {
            return Err(invalid("user and password belong into `user` and `password_file`"));
        }
        if address.host().is_empty() {
            return Err(invalid("it names no host"));
        }
        if !matches!(address.scheme(), "nats" | "tls") {
            return Err(invalid("it begins with nats:// or tls://"));
        }
        Ok(Self(text))
    }
}

/// The name of a stream: letters, digits, `-` and `_`, at most 64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamName(String);

impl StreamName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for StreamName {
    fn default() -> Self {
        Self("archipelago".to_owned())
    }
}

impl TryFrom<String> for StreamName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        let why = "letters, digits, - and _, at most 64";
        if text.len() > 64 || !is_token(&text) {
            return Err(InvalidName { what: "name of a stream", why });
        }
        Ok(Self(text))
    }
}

/// What subjects begin with: such names, with dots between them, at most 128 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubjectPrefix(String);

impl SubjectPrefix {
    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SubjectPrefix {
    fn default() -> Self {
        Self("archipelago".to_owned())
    }
}

impl TryFrom<String> for SubjectPrefix {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        let why = "letters, digits, - and _ with dots in between, at most 128";
        if text.len() > 128 || !text.split('.').all(is_token) {
            return Err(InvalidName { what: "prefix of subjects", why });
        }
        Ok(Self(text))
    }
}

/// How many servers keep each record: 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Replicas(u8);

impl Replicas {
    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for Replicas {
    fn default() -> Self {
        Self(3)
    }
}

impl TryFrom<u8> for Replicas {
    type Error = InvalidName;

    fn try_from(number: u8) -> Result<Self, InvalidName> {
        if (1..=5).contains(&number) {
            return Ok(Self(number));
        }
        Err(InvalidName { what: "number of replicas", why: "1 to 5" })
    }
}

impl From<Replicas> for u8 {
    fn from(replicas: Replicas) -> Self {
        replicas.0
    }
}

macro_rules! text_name {
    ($($name:ident),+) => { $(
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+ };
}

text_name!(ServerUrl, StreamName, SubjectPrefix);

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nats_would_misread_are_refused() {
        for text in ["", "a.b", "a b", "a*", "a>", "ä", &"x".repeat(65)] {
            assert!(StreamName::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        for text in ["", ".a", "a.", "a..b", "a.*", "a.>", "$JS.API"] {
            assert!(SubjectPrefix::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        for text in ["http://a", "nats://", "nats://u:p@a", "nats://u@a"] {
            assert!(ServerUrl::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        assert!(Replicas::try_from(0).is_err() && Replicas::try_from(6).is_err());
        assert!(SubjectPrefix::try_from("prod.eu-west_1".to_owned()).is_ok());
    }
}
