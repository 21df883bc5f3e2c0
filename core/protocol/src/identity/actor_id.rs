//! The identity of a virtual actor.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::{Encoded, FromText, decode};
use super::{ActorIdError, ActorKey, FormatFault, IdField, Kind, Namespace};
use crate::hash::stable_hash_parts;

/// Names one virtual actor, wherever it runs and whether it runs or not.
///
/// Made by [`Namespace::actor_id`] or by parsing; there is no other way. Two ids are equal exactly when all three
/// parts are.
///
/// # Text
///
/// `namespace::Kind/key`, the key percent-encoded outside `[A-Za-z0-9._~@-]`. There is one text per id: the parser
/// refuses an escape that was not needed, lower-case escapes, and a bare character that needs one. Namespace and
/// kind have at most 64 bytes each, the key 200, all three with their separators 256 before the encoding, so that
/// no text is longer than 656 bytes.
///
/// Serialised as this text where people read (JSON), as three strings elsewhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    namespace: Namespace,
    kind: Kind,
    key: ActorKey,
}

impl ActorId {
    /// The crate-internal constructor: namespaces and decoders use it.
    pub(crate) fn from_parts(namespace: Namespace, kind: Kind, key: ActorKey) -> Result<Self, ActorIdError> {
        let field = IdField::Id;
        let len = namespace.as_str().len() + kind.as_str().len() + key.as_str().len() + SEPARATORS;
        if len > field.max_len() {
            return Err(ActorIdError::TooLong { field, len, max: field.max_len() });
        }
        Ok(Self { namespace, kind, key })
    }

    /// Parses the text form; the same as [`FromStr`].
    ///
    /// # Errors
    ///
    /// `InvalidFormat` if the text has another form, else what is wrong with the first bad part.
    pub fn from_string(text: &str) -> Result<Self, ActorIdError> {
        let invalid = ActorIdError::InvalidFormat;
        let (namespace, rest) = text.split_once("::").ok_or(invalid(FormatFault::Separator { found: 0 }))?;
        if rest.contains("::") {
            return Err(invalid(FormatFault::Separator { found: text.matches("::").count() }));
        }
        let (kind, key) = rest.split_once('/').ok_or(invalid(FormatFault::Slash { found: 0 }))?;
        if key.contains('/') {
            return Err(invalid(FormatFault::Slash { found: rest.matches('/').count() }));
        }
        let key = decode(key).map_err(|at| invalid(FormatFault::Encoding { at }))?;
        Self::from_parts(Namespace::new(namespace)?, Kind::new(kind)?, ActorKey::new(&key)?)
    }

    /// The cluster that the actor belongs to.
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What sort of actor it is.
    pub const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Which actor of its kind it is.
    pub const fn key(&self) -> &ActorKey {
        &self.key
    }

    /// The protocol's hash of the id: the same on every node and in every version.
    pub fn stable_hash(&self) -> u64 {
        stable_hash_parts(&[self.namespace.as_str(), self.kind.as_str(), self.key.as_str()])
    }
}

impl FromStr for ActorId {
    type Err = ActorIdError;
    fn from_str(text: &str) -> Result<Self, ActorIdError> {
        Self::from_string(text)
    }
}

impl Serialize for ActorId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (&self.namespace, &self.kind, &self.key).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for ActorId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(FromText::new("an actor id namespace::Kind/key"))
        } else {
            let (namespace, kind, key) = Deserialize::deserialize(deserializer)?;
            Self::from_parts(namespace, kind, key).map_err(serde::de::Error::custom)
        }
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}/{}", self.namespace, self.kind, Encoded(self.key.as_str()))
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorId({self})")
    }
}

/// `::` and `/`.
const SEPARATORS: usize = 3;

#[cfg(test)]
mod tests;
