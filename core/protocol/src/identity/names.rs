//! The checked texts that ids are made of: namespace, kind, key, role, partition.
//!
//! Each is an `Arc<str>`, so that copies are cheap and the ids of one kind share its name.

use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::str::FromStr;

use super::text::{check_free_text, check_name, serde_as_text};
use super::{ActorId, ActorIdError, IdField};

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $field:expr, $check:path, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` and takes a copy of it.
            ///
            /// # Errors
            ///
            /// `Empty`, `TooLong` or `InvalidCharacter`, by the rules of this type.
            pub fn new(text: &str) -> Result<Self, ActorIdError> {
                $check(text, $field)?;
                Ok(Self(Arc::from(text)))
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ActorIdError;
            fn from_str(text: &str) -> Result<Self, ActorIdError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = ActorIdError;
            fn try_from(text: &str) -> Result<Self, ActorIdError> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        serde_as_text!($name, $expected);
    };
}

checked_text!(
    /// The boundary of a cluster: actors of different namespaces never meet.
    ///
    /// 1 to 64 bytes of `[A-Za-z0-9._-]`. A node gets its namespace from its configuration and makes every
    /// actor id with it ([`Namespace::actor_id`]).
    Namespace,
    IdField::Namespace,
    check_name,
    "a namespace"
);

checked_text!(
    /// The kind of an actor, as the directory and the wire name it.
    ///
    /// 1 to 64 bytes of `[A-Za-z0-9._-]`.
    Kind,
    IdField::Kind,
    check_name,
    "a kind of actors"
);

checked_text!(
    /// What tells the actors of one kind apart.
    ///
    /// Any text of 1 to 200 bytes without control characters: mail addresses, UUIDs, paths. `Display` writes it
    /// as it is; inside longer texts it is percent-encoded.
    ActorKey,
    IdField::Key,
    check_free_text,
    "an actor key"
);

checked_text!(
    /// A duty that one node at a time holds, such as `coordinator`.
    ///
    /// 1 to 128 bytes of `[A-Za-z0-9._-]`.
    RoleName,
    IdField::Role,
    check_name,
    "a role"
);

checked_text!(
    /// The name of one partition of a range-partitioned kind.
    ///
    /// Any text of 1 to 200 bytes without control characters.
    PartitionName,
    IdField::Partition,
    check_free_text,
    "a partition"
);

impl Namespace {
    /// The id of the actor `key` of `kind` in this namespace.
    ///
    /// Apart from the parser this and [`actor_id_of`](Self::actor_id_of) are the only ways to an id, so that a
    /// node's ids all carry the node's namespace.
    ///
    /// # Errors
    ///
    /// `kind`, `key` or the whole breaks the rules of [`ActorId`].
    pub fn actor_id(&self, kind: &str, key: &str) -> Result<ActorId, ActorIdError> {
        self.actor_id_of(&Kind::new(kind)?, key)
    }

    /// The same for a `kind` already checked, whose text the id shares.
    ///
    /// # Errors
    ///
    /// `key` or the whole breaks the rules of [`ActorId`].
    pub fn actor_id_of(&self, kind: &Kind, key: &str) -> Result<ActorId, ActorIdError> {
        ActorId::from_parts(self.clone(), kind.clone(), ActorKey::new(key)?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_map_by_name_is_searched_by_text() {
        let map = BTreeMap::from([(Kind::new("Account").unwrap(), 1)]);
        assert_eq!(map.get("Account"), Some(&1));
    }

    #[test]
    fn roles_are_names_and_partitions_are_free_text() {
        assert!(RoleName::new("coordinator.bank").is_ok());
        let field = IdField::Role;
        assert_eq!(
            RoleName::new("a b"),
            Err(ActorIdError::InvalidCharacter { field, character: ' ', at: 1 })
        );
        assert!(PartitionName::new("a..m é").is_ok());
        assert_eq!(PartitionName::new(""), Err(ActorIdError::Empty { field: IdField::Partition }));
    }

    proptest! {
        /// Proves: R8, R9, R10, C53
        #[test]
        fn what_is_refused_when_made_is_refused_when_decoded(text in any::<String>(), name in "[A-c._\\-/ ]{0,3}") {
            for text in [text, name] {
                let (json, bytes) = (serde_json::to_vec(&text).unwrap(), postcard::to_allocvec(&text).unwrap());
                prop_assert_eq!(serde_json::from_slice::<Namespace>(&json).ok(), Namespace::new(&text).ok());
                prop_assert_eq!(postcard::from_bytes::<Kind>(&bytes).ok(), Kind::new(&text).ok());
                prop_assert_eq!(postcard::from_bytes::<ActorKey>(&bytes).ok(), ActorKey::new(&text).ok());
                if let Ok(key) = ActorKey::new(&text) {
                    prop_assert_eq!(key.as_str(), &text);
                    prop_assert_eq!(serde_json::to_vec(&key).unwrap(), json);
                    prop_assert_eq!(postcard::to_allocvec(&key).unwrap(), bytes);
                }
            }
        }
    }
}
