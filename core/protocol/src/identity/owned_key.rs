//! What can be owned in the directory.

use core::fmt;
use core::str::FromStr;

use super::text::{Encoded, decode, serde_as_text};
use super::{ActorId, ActorIdError, Kind, PartitionName, RoleName};

/// A thing that at most one node owns at a time.
///
/// Its text is its key in the store, one text per value:
///
/// | what | text |
/// |---|---|
/// | an actor | `actor/ns::Kind/key` |
/// | a shard of a kind | `shard/Kind/7` |
/// | a partition of a range-partitioned kind | `range/Kind/partition` (percent-encoded) |
/// | a role | `role/coordinator` |
///
/// The order is by what it is, then by its parts; it is not the order of the texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnedKey {
    /// One virtual actor with a record of its own.
    Actor(ActorId),
    /// All actors of `kind` whose ids hash to `shard`.
    Shard {
        /// The kind of the actors.
        kind: Kind,
        /// The number of the shard.
        shard: u32,
    },
    /// All actors of `kind` whose keys lie in a range of keys.
    Range {
        /// The kind of the actors.
        kind: Kind,
        /// The name of the range in the routing table.
        partition: PartitionName,
    },
    /// A duty of one node at a time.
    Role(RoleName),
}

impl OwnedKey {
    /// The shard `shard` of `kind`.
    pub const fn shard(kind: Kind, shard: u32) -> Self {
        Self::Shard { kind, shard }
    }

    /// The partition of `kind` with this name.
    ///
    /// # Errors
    ///
    /// `partition` is not a [`PartitionName`].
    pub fn range(kind: Kind, partition: &str) -> Result<Self, OwnedKeyError> {
        Ok(Self::Range { kind, partition: PartitionName::new(partition)? })
    }

    /// The role with this name.
    ///
    /// # Errors
    ///
    /// `name` is not a [`RoleName`].
    pub fn role(name: &str) -> Result<Self, OwnedKeyError> {
        Ok(Self::Role(RoleName::new(name)?))
    }

    /// The kind of the actors that the owner may run; none for a role.
    pub const fn kind(&self) -> Option<&Kind> {
        match self {
            Self::Actor(actor) => Some(actor.kind()),
            Self::Shard { kind, .. } | Self::Range { kind, .. } => Some(kind),
            Self::Role(_) => None,
        }
    }
}

impl From<ActorId> for OwnedKey {
    fn from(actor: ActorId) -> Self {
        Self::Actor(actor)
    }
}

/// Why a text is not an owned key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OwnedKeyError {
    /// The text starts with none of the forms.
    #[error("an owned key starts with actor/, shard/Kind/, range/Kind/ or role/")]
    UnknownForm,
    /// The shard is not a number as we write it.
    #[error("the shard is not a number from 0 to 4294967295 without leading zeros")]
    InvalidShard,
    /// The partition is not percent-encoded the one way in which we write it.
    #[error("the partition is not properly percent-encoded at byte {at}")]
    InvalidEncoding {
        /// Where it goes wrong, in bytes from the start of the partition.
        at: usize,
    },
    /// A part is not valid.
    #[error(transparent)]
    InvalidPart(#[from] ActorIdError),
}

impl FromStr for OwnedKey {
    type Err = OwnedKeyError;

    fn from_str(text: &str) -> Result<Self, OwnedKeyError> {
        let (form, rest) = text.split_once('/').ok_or(OwnedKeyError::UnknownForm)?;
        match (form, rest.split_once('/')) {
            ("actor", _) => Ok(Self::Actor(rest.parse()?)),
            ("role", _) => Self::role(rest),
            ("shard", Some((kind, shard))) => Ok(Self::shard(Kind::new(kind)?, parse_shard(shard)?)),
            ("range", Some((kind, partition))) => {
                let partition = decode(partition).map_err(|at| OwnedKeyError::InvalidEncoding { at })?;
                Self::range(Kind::new(kind)?, &partition)
            }
            _ => Err(OwnedKeyError::UnknownForm),
        }
    }
}

fn parse_shard(text: &str) -> Result<u32, OwnedKeyError> {
    let canonical = text == "0" || text.starts_with(|c: char| matches!(c, '1'..='9'));
    text.parse().ok().filter(|_| canonical).ok_or(OwnedKeyError::InvalidShard)
}

serde_as_text!(OwnedKey, "an owned key such as shard/Kind/7");

impl fmt::Display for OwnedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Actor(actor) => write!(f, "actor/{actor}"),
            Self::Shard { kind, shard } => write!(f, "shard/{kind}/{shard}"),
            Self::Range { kind, partition } => write!(f, "range/{kind}/{}", Encoded(partition.as_str())),
            Self::Role(name) => write!(f, "role/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;
    use crate::identity::IdField;
    use crate::identity::arbitrary::owned_key;

    #[test]
    fn the_text_forms_are_the_documented_ones() {
        let kind = Kind::new("Account").unwrap();
        let actor = "bank::Account/a%2Fb".parse::<ActorId>().unwrap();
        assert_eq!(OwnedKey::from(actor).to_string(), "actor/bank::Account/a%2Fb");
        assert_eq!(OwnedKey::shard(kind.clone(), 7).to_string(), "shard/Account/7");
        assert_eq!(OwnedKey::range(kind, "a/m").unwrap().to_string(), "range/Account/a%2Fm");
        assert_eq!(OwnedKey::role("coordinator").unwrap().to_string(), "role/coordinator");
    }

    #[test]
    fn each_fault_has_its_error() {
        use OwnedKeyError::*;
        let refused = [
            ("", UnknownForm),
            ("node/1", UnknownForm),
            ("shard/Account", UnknownForm),
            ("shard/Account/07", InvalidShard),
            ("shard/Account/+7", InvalidShard),
            ("shard/Account/", InvalidShard),
            ("shard/Account/4294967296", InvalidShard),
            ("range/Account/a/b", InvalidEncoding { at: 1 }),
            ("role/", InvalidPart(ActorIdError::Empty { field: IdField::Role })),
            (
                "role/a/b",
                InvalidPart(ActorIdError::InvalidCharacter { field: IdField::Role, character: '/', at: 1 }),
            ),
        ];
        for (text, error) in refused {
            assert_eq!(text.parse::<OwnedKey>(), Err(error), "{text}");
        }
    }

    proptest! {
        /// Proves: R108
        #[test]
        fn an_owned_key_survives_text_and_serde(key in owned_key()) {
            let text = key.to_string();
            prop_assert_eq!(text.parse(), Ok(key.clone()));
            let json = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(&json, &alloc::format!("\"{text}\""));
            prop_assert_eq!(serde_json::from_str::<OwnedKey>(&json).unwrap(), key.clone());
            let bytes = postcard::to_allocvec(&key).unwrap();
            prop_assert_eq!(postcard::from_bytes::<OwnedKey>(&bytes).unwrap(), key);
        }

        #[test]
        fn different_keys_have_different_texts(a in owned_key(), b in owned_key()) {
            prop_assert_eq!(a == b, a.to_string() == b.to_string());
        }

        #[test]
        fn whatever_parses_is_written_the_same(
            text in "(actor|shard|range|role)/[a-b:/%0-2A]{0,12}",
            any_text in any::<String>(),
        ) {
            for text in [text, any_text] {
                if let Ok(key) = text.parse::<OwnedKey>() {
                    prop_assert_eq!(key.to_string(), text);
                }
            }
        }
    }
}
