//! Why a text is not an actor id, or not a part of one.

use core::fmt;

/// The text is not an actor id, or not a valid part of one. Nothing was created.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ActorIdError {
    /// The text as a whole is not of the form `namespace::Kind/key`.
    #[error("an actor id is written namespace::Kind/key: {0}")]
    InvalidFormat(FormatFault),
    /// A part is missing.
    #[error("the {field} is empty")]
    Empty {
        /// The part.
        field: IdField,
    },
    /// A part, or the whole, is longer than [`IdField::max_len`].
    #[error("the {field} has {len} bytes, at most {max} are allowed")]
    TooLong {
        /// The part.
        field: IdField,
        /// Its length in bytes, before percent-encoding.
        len: usize,
        /// The greatest allowed length.
        max: usize,
    },
    /// A part holds a character that it may not hold.
    #[error("the {field} holds {character:?} at byte {at}, {}", field.alphabet())]
    InvalidCharacter {
        /// The part.
        field: IdField,
        /// The first offending character.
        character: char,
        /// Where it starts, in bytes from the start of the part.
        at: usize,
    },
}

/// What is wrong with the form of an actor id's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FormatFault {
    /// There is not exactly one `::`.
    Separator {
        /// How many there are.
        found: usize,
    },
    /// After the `::` there is not exactly one `/`.
    Slash {
        /// How many there are.
        found: usize,
    },
    /// The key is not percent-encoded the one way in which we write it.
    Encoding {
        /// Where it goes wrong, in bytes from the start of the key.
        at: usize,
    },
}

impl fmt::Display for FormatFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Separator { found } => write!(f, "expected one '::', found {found}"),
            Self::Slash { found } => write!(f, "expected one '/' after the '::', found {found}"),
            Self::Encoding { at } => write!(f, "the key is not properly percent-encoded at byte {at}"),
        }
    }
}

/// Which part of an identity an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdField {
    /// The whole id `namespace::Kind/key`, counted before percent-encoding.
    Id,
    /// A [`Namespace`](super::Namespace).
    Namespace,
    /// A [`Kind`](super::Kind).
    Kind,
    /// An [`ActorKey`](super::ActorKey).
    Key,
    /// A [`RoleName`](super::RoleName).
    Role,
    /// A [`PartitionName`](super::PartitionName).
    Partition,
    /// The system name of an [`ActorPath`](super::ActorPath).
    System,
}

impl IdField {
    /// The greatest length of this part, in bytes before percent-encoding.
    pub const fn max_len(self) -> usize {
        match self {
            Self::Id => 256,
            Self::Namespace | Self::Kind | Self::System => 64,
            Self::Role => 128,
            Self::Key | Self::Partition => 200,
        }
    }

    const fn alphabet(self) -> &'static str {
        match self {
            Self::Key | Self::Partition | Self::Id => "control characters are not allowed",
            _ => "allowed are letters, digits, '.', '_' and '-'",
        }
    }
}

impl fmt::Display for IdField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "actor id",
            Self::Namespace => "namespace",
            Self::Kind => "kind",
            Self::Key => "key",
            Self::Role => "role",
            Self::Partition => "partition",
            Self::System => "system name",
        })
    }
}
