//! The address of a named, non-virtual actor.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use core::str::FromStr;

use super::text::{Encoded, check_name, decode, serde_as_text};
use super::{ActorIdError, IdField, NodeAddress, NodeAddressError};

/// Where a named actor is found: a system, the node if it is not the local one, and a path. Immutable.
///
/// # Text
///
/// `archipelago://system@host:port/path` with a node, `archipelago://system/path` without. The system has 1 to 64 bytes
/// of `[A-Za-z0-9._-]`. The path starts with `/`, its segments are not empty, not `.` and not `..`, hold no control
/// characters, and are percent-encoded outside `[A-Za-z0-9._~@-]`; it has at most 512 bytes before the encoding.
/// Serialised as this text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorPath {
    system: Arc<str>,
    address: Option<NodeAddress>,
    path: Arc<str>,
}

impl ActorPath {
    /// The actor at `path`, on the node that looks it up.
    ///
    /// # Errors
    ///
    /// `InvalidSystem` or `InvalidPath`.
    pub fn local(system: &str, path: &str) -> Result<Self, ActorPathError> {
        Self::new(system, None, path)
    }

    /// The actor at `path` on the node at `address`.
    ///
    /// # Errors
    ///
    /// `InvalidSystem` or `InvalidPath`.
    pub fn remote(system: &str, address: NodeAddress, path: &str) -> Result<Self, ActorPathError> {
        Self::new(system, Some(address), path)
    }

    fn new(system: &str, address: Option<NodeAddress>, path: &str) -> Result<Self, ActorPathError> {
        check_name(system, IdField::System).map_err(ActorPathError::InvalidSystem)?;
        check_path(path)?;
        Ok(Self { system: system.into(), address, path: path.into() })
    }

    /// Parses both forms; the same as [`FromStr`].
    ///
    /// # Errors
    ///
    /// What is wrong with the first bad part.
    pub fn from_uri(uri: &str) -> Result<Self, ActorPathError> {
        let rest = uri.strip_prefix(SCHEME).ok_or(ActorPathError::WrongScheme)?;
        let slash = rest.find('/').ok_or(ActorPathError::MissingPath)?;
        let (authority, path) = rest.split_at(slash);
        let (system, address) = match authority.split_once('@') {
            Some((system, address)) => (system, Some(address.parse()?)),
            None => (authority, None),
        };
        Self::new(system, address, &decode_path(path)?)
    }

    /// The text form; the same as `to_string`.
    pub fn to_uri(&self) -> String {
        self.to_string()
    }

    /// The name of the actor system.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The node that hosts the actor; none if it is the local one.
    pub const fn address(&self) -> Option<&NodeAddress> {
        self.address.as_ref()
    }

    /// The path, decoded, such as `/greeter/worker-1`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether no node is named, so that the path is looked up where it is used.
    pub const fn is_local(&self) -> bool {
        self.address.is_none()
    }
}

/// Why a text is not an actor path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ActorPathError {
    /// The text does not start with `archipelago://`.
    #[error("an actor path starts with {SCHEME}")]
    WrongScheme,
    /// Nothing follows the system or the address.
    #[error("the path is missing")]
    MissingPath,
    /// The system is not a name.
    #[error("the system is not valid")]
    InvalidSystem(#[source] ActorIdError),
    /// What follows the `@` is not `host:port`.
    #[error("the node's address is not valid")]
    InvalidAddress(#[from] NodeAddressError),
    /// The path breaks the rules of [`ActorPath`].
    #[error("the path is not valid at byte {at}: it is made of /segments, not empty, not '.' or '..'")]
    InvalidPath {
        /// Where the offending segment starts, in bytes from the start of the path.
        at: usize,
    },
    /// The path is too long.
    #[error("the path has {len} bytes, at most {MAX_PATH} are allowed")]
    PathTooLong {
        /// Its length in bytes, before percent-encoding.
        len: usize,
    },
}

fn check_path(path: &str) -> Result<(), ActorPathError> {
    if path.len() > MAX_PATH {
        return Err(ActorPathError::PathTooLong { len: path.len() });
    }
    let segments = path.strip_prefix('/').ok_or(ActorPathError::InvalidPath { at: 0 })?;
    let mut at = 1;
    for segment in segments.split('/') {
        // A URI library on the way would swallow dot segments.
        if matches!(segment, "" | "." | "..") || segment.contains(char::is_control) {
            return Err(ActorPathError::InvalidPath { at });
        }
        at += segment.len() + 1;
    }
    Ok(())
}

/// Decodes each segment by itself, so that an escaped slash cannot turn into a separator.
fn decode_path(path: &str) -> Result<String, ActorPathError> {
    let mut decoded = String::with_capacity(path.len());
    let mut at = 1;
    for segment in path.split('/').skip(1) {
        let text = decode(segment).map_err(|fault| ActorPathError::InvalidPath { at: at + fault })?;
        if text.contains('/') {
            return Err(ActorPathError::InvalidPath { at });
        }
        decoded.push('/');
        decoded.push_str(&text);
        at += segment.len() + 1;
    }
    Ok(decoded)
}

impl FromStr for ActorPath {
    type Err = ActorPathError;
    fn from_str(text: &str) -> Result<Self, ActorPathError> {
        Self::from_uri(text)
    }
}

serde_as_text!(ActorPath, "an actor path archipelago://system/path");

impl fmt::Display for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.system)?;
        if let Some(address) = &self.address {
            write!(f, "@{address}")?;
        }
        self.path.split('/').skip(1).try_for_each(|segment| write!(f, "/{}", Encoded(segment)))
    }
}

impl fmt::Debug for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorPath({self})")
    }
}

const SCHEME: &str = "archipelago://";
const MAX_PATH: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::arbitrary::actor_path;

    /// Proves: R41, R42, R44, C10
    #[test]
    fn a_path_without_node_is_local() {
        let path = ActorPath::local("bank", "/greeter/worker-1").unwrap();
        assert!(path.is_local());
        assert_eq!(path.to_uri(), "archipelago://bank/greeter/worker-1");
        assert_eq!((path.system(), path.address(), path.path()), ("bank", None, "/greeter/worker-1"));
    }

    /// Proves: R41, R42, R43
    #[test]
    fn a_path_with_node_is_remote() {
        let address: NodeAddress = "[::1]:4710".parse().unwrap();
        let path = ActorPath::remote("bank", address.clone(), "/a b/c").unwrap();
        assert!(!path.is_local());
        assert_eq!(path.to_uri(), "archipelago://bank@[::1]:4710/a%20b/c");
        assert_eq!((path.system(), path.address(), path.path()), ("bank", Some(&address), "/a b/c"));
    }

    /// Proves: R45
    #[test]
    fn each_fault_has_its_error() {
        use ActorPathError::*;
        let field = IdField::System;
        let refused = [
            ("http://bank/a", WrongScheme),
            ("archipelago://bank", MissingPath),
            ("archipelago:///a", InvalidSystem(ActorIdError::Empty { field })),
            (
                "archipelago://b c/a",
                InvalidSystem(ActorIdError::InvalidCharacter { field, character: ' ', at: 1 }),
            ),
            ("archipelago://bank@host/a", InvalidAddress(NodeAddressError::MissingPort)),
            ("archipelago://bank@/a", InvalidAddress(NodeAddressError::MissingPort)),
            ("archipelago://bank/", InvalidPath { at: 1 }),
            ("archipelago://bank/a//b", InvalidPath { at: 3 }),
            ("archipelago://bank/a/../b", InvalidPath { at: 3 }),
            ("archipelago://bank/a%2Fb", InvalidPath { at: 1 }),
            ("archipelago://bank/a?b", InvalidPath { at: 2 }),
            ("archipelago://bank/a%0A", InvalidPath { at: 1 }),
        ];
        for (uri, error) in refused {
            assert_eq!(ActorPath::from_uri(uri), Err(error), "{uri}");
        }
        assert_eq!(ActorPath::local("bank", "a"), Err(InvalidPath { at: 0 }));
        let long = "/".to_string() + &"a".repeat(512);
        assert_eq!(ActorPath::local("bank", &long), Err(PathTooLong { len: 513 }));
    }

    proptest! {
        /// Proves: R45, R51
        #[test]
        fn a_path_survives_its_uri_and_serde(path in actor_path()) {
            prop_assert_eq!(ActorPath::from_uri(&path.to_uri()), Ok(path.clone()));
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(&json, &alloc::format!("\"{}\"", path.to_uri()));
            prop_assert_eq!(serde_json::from_str::<ActorPath>(&json).unwrap(), path.clone());
            let bytes = postcard::to_allocvec(&path).unwrap();
            prop_assert_eq!(postcard::from_bytes::<ActorPath>(&bytes).unwrap(), path);
        }

        /// Proves: R45
        #[test]
        fn parsing_any_text_as_path_never_panics(
            text in any::<String>(), near in "archipelago://[ab@:/%0-9\\[\\].]{0,16}",
        ) {
            let _ = ActorPath::from_uri(&text);
            if let Ok(path) = ActorPath::from_uri(&near) {
                prop_assert_eq!(ActorPath::from_uri(&path.to_uri()), Ok(path));
            }
        }
    }
}
