//! What a store holds: single records, each with a tag and a version.

use std::fmt;

use archipelago_protocol::time::Millis;
use bytes::Bytes;

/// A family of records that is listed and watched as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(&'static str);

impl Space {
    /// Leases: where beats and ends of sessions are written.
    pub const LEASES: Self = Self("lease");
    /// Posters of nodes: what everybody watches.
    pub const NODES: Self = Self("node");
    /// Owner records.
    pub const OWNERS: Self = Self("own");
    /// How kinds are divided.
    pub const KINDS: Self = Self("kind");
    /// Routing tables of range-partitioned kinds.
    pub const TABLES: Self = Self("routing");
    /// Records of datacenters, in the control plane's store.
    pub const DATA_CENTERS: Self = Self("dc");
    /// States of actors between their activations.
    pub const STATES: Self = Self("state");
    /// Which datacenters actors were placed in.
    pub const HOMES: Self = Self("home");

    /// All spaces that archipelago uses. An engine needs to do nothing for a new one, as long as it takes the name from
    /// [`as_str`](Self::as_str).
    pub const ALL: [Self; 8] = [
        Self::LEASES,
        Self::NODES,
        Self::OWNERS,
        Self::KINDS,
        Self::TABLES,
        Self::DATA_CENTERS,
        Self::STATES,
        Self::HOMES,
    ];

    /// A space of this name: lower-case letters only, so that every engine can use it in its keys.
    ///
    /// # Panics
    ///
    /// If `name` is anything else; spaces are constants, so this happens while compiling.
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty(), "a space has a name");
        let mut i = 0;
        while i < bytes.len() {
            assert!(bytes[i].is_ascii_lowercase(), "a space is named in lower-case letters");
            i += 1;
        }
        Self(name)
    }

    /// The name.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The name of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// Its space.
    pub space: Space,
    /// Its key there: text without control characters, at most 1 KiB.
    pub key: String,
}

impl RecordId {
    /// The record `key` of `space`.
    pub fn new(space: Space, key: impl Into<String>) -> Self {
        Self { space, key: key.into() }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.space, self.key)
    }
}

/// Counts the writes to a record: greater with each, also across deletes. Those of different keys do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// A point in the history of a space, after which a watch can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Its name.
    pub id: RecordId,
    /// What it is listed under: the node that holds it.
    pub tag: Option<String>,
    /// What it says.
    pub value: Bytes,
    /// The write that made it.
    pub version: Version,
}

impl Record {
    /// What a compare-and-swap that replaces this very record expects.
    pub fn expect(&self) -> Expect {
        Expect::At(Seen { version: self.version, tag: self.tag.clone() })
    }
}

/// What a compare-and-swap expects to find.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expect {
    /// No record.
    Absent,
    /// This very one.
    At(Seen),
}

/// A record as a compare-and-swap names it. The version alone decides; the tag lets an engine find its index entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The version to replace.
    pub version: Version,
    /// The tag of that version.
    pub tag: Option<String>,
}

/// What a compare-and-swap writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// A new tag and value.
    Put {
        /// What the record is listed under.
        tag: Option<String>,
        /// What it says.
        value: Bytes,
        /// After how long the engine may delete it by itself, if it can; `None` = never. Leases get several times their
        /// own length, so that they vanish even when nobody is left to end them. A put replaces the time of the one
        /// before, also by `None`. May fire at any time without harm.
        ttl: Option<Millis>,
    },
    /// Nothing: the record goes.
    Delete,
}

/// "And this record still exists with this tag", checked in the same transaction where the engine can.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Which record.
    pub id: RecordId,
    /// The tag it must have.
    pub tag: Option<String>,
}
