//! What a client and the server of a store say to each other: a version byte, then postcard.
//!
//! Texts and values are borrowed from the message, so nothing is copied before its length was checked, and whatever
//! arrives is bounded by [`MAX_MESSAGE`]. A request names the instance it is meant for; an answer names the one that gave
//! it. Invariant: no bytes make the decoders panic.

use archipelago_directory::{Change, Expect, Guard, Position, Record, RecordId, Seen, Space, Version, Write};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};

/// The longest request or answer, so that it fits into one frame of 1 MiB with room for the frame's own fields.
pub const MAX_MESSAGE: usize = (1 << 20) - (4 << 10);

/// The longest value of a record that can be written through a served store: what is left of a message that holds the
/// longest keys and tags.
pub const MAX_VALUE: usize = MAX_MESSAGE - (8 << 10);

/// The longest key, and the longest tag.
pub(crate) const MAX_KEY: usize = 1 << 10;

/// Grows with every change that an older reader would misread.
const VERSION: u8 = 1;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request<'a> {
    /// The instance that the request is meant for; only `Op::Instance` may leave it out.
    pub(crate) instance: Option<u64>,
    #[serde(borrow)]
    pub(crate) op: Op<'a>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Op<'a> {
    /// Which instance is it?
    Instance,
    #[serde(borrow)]
    Get(Id<'a>),
    #[serde(borrow)]
    Cas(Cas<'a>),
    List {
        space: &'a str,
        #[serde(borrow)]
        tag: Option<&'a str>,
        /// The last key of the page before.
        #[serde(borrow)]
        after_key: Option<&'a str>,
        max_bytes: u32,
    },
    Watch {
        space: &'a str,
        after: u64,
        /// How long to wait for a first change.
        wait: Millis,
        max: u32,
    },
    #[serde(borrow)]
    DeleteAll(Vec<(Id<'a>, u64)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Id<'a> {
    pub(crate) space: &'a str,
    pub(crate) key: &'a str,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cas<'a> {
    #[serde(borrow)]
    pub(crate) id: Id<'a>,
    /// `None` = absence. The tag that was seen is left out: the version alone decides.
    pub(crate) expect: Option<u64>,
    /// `None` = delete.
    #[serde(borrow)]
    pub(crate) put: Option<Put<'a>>,
    #[serde(borrow)]
    pub(crate) guard: Option<(Id<'a>, Option<&'a str>)>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Put<'a> {
    #[serde(borrow)]
    pub(crate) tag: Option<&'a str>,
    #[serde(serialize_with = "whole")]
    pub(crate) value: &'a [u8],
    pub(crate) ttl: Option<Millis>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer<'a> {
    pub(crate) instance: u64,
    #[serde(borrow)]
    pub(crate) outcome: Outcome<'a>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome<'a> {
    Instance,
    #[serde(borrow)]
    Found(Option<Item<'a>>),
    Applied(u64),
    #[serde(borrow)]
    Conflict(Option<Item<'a>>),
    GuardFailed,
    Page {
        #[serde(borrow)]
        records: Vec<Item<'a>>,
        position: u64,
        more: bool,
    },
    Changes {
        #[serde(borrow)]
        changes: Vec<Event<'a>>,
        /// Up to here there are no other changes of the space.
        searched_to: u64,
    },
    Deleted(u64),
    /// The request was meant for another instance; it was not carried out.
    OtherInstance,
    Unavailable(&'a str),
    Unknown(&'a str),
    Compacted,
    Fatal(&'a str),
    /// The request could not be read; it was not carried out.
    Malformed(&'a str),
}

/// A record.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item<'a> {
    #[serde(borrow)]
    pub(crate) id: Id<'a>,
    #[serde(borrow)]
    pub(crate) tag: Option<&'a str>,
    #[serde(serialize_with = "whole")]
    pub(crate) value: &'a [u8],
    pub(crate) version: u64,
}

/// A change.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event<'a> {
    Put(u64, #[serde(borrow)] Item<'a>),
    Deleted(u64, #[serde(borrow)] Id<'a>),
}

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a message of {length} bytes; at most {MAX_MESSAGE} are allowed")]
    TooLong { length: usize },
    #[error("version {theirs} of the served store's messages; this node speaks {VERSION}")]
    OtherVersion { theirs: u8 },
    #[error("the message is not well formed")]
    Undecodable,
    #[error("unknown space {space:?}")]
    UnknownSpace { space: String },
    #[error("not a key or tag: {problem}")]
    BadText { problem: &'static str },
    #[error("a value of {length} bytes; at most {MAX_VALUE} are allowed")]
    BigValue { length: usize },
    #[error("{0}")]
    Nonsense(&'static str),
}

pub(crate) fn encode<T: Serialize>(message: &T) -> Bytes {
    Bytes::from(postcard::to_allocvec(&(VERSION, message)).expect("plain data of known length encodes"))
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<T, WireError> {
    if message.len() > MAX_MESSAGE {
        return Err(WireError::TooLong { length: message.len() });
    }
    let (version, body) = message.split_first().ok_or(WireError::Undecodable)?;
    if *version != VERSION {
        return Err(WireError::OtherVersion { theirs: *version });
    }
    match postcard::take_from_bytes(body) {
        Ok((decoded, [])) => Ok(decoded),
        _ => Err(WireError::Undecodable),
    }
}

/// The space of this name. Spaces are constants of the code, so a name from the wire must be one of them.
pub(crate) fn space(name: &str) -> Result<Space, WireError> {
    let known = Space::ALL.into_iter().find(|space| space.as_str() == name);
    known.ok_or_else(|| WireError::UnknownSpace { space: name.chars().take(32).collect() })
}

pub(crate) fn tag(tag: Option<&str>) -> Result<Option<String>, WireError> {
    tag.map(|tag| text(tag).map(str::to_owned)).transpose()
}

pub(crate) fn text(text: &str) -> Result<&str, WireError> {
    if text.len() > MAX_KEY {
        return Err(WireError::BadText { problem: "longer than 1 KiB" });
    }
    if text.chars().any(char::is_control) {
        return Err(WireError::BadText { problem: "a control character" });
    }
    Ok(text)
}

impl<'a> Id<'a> {
    pub(crate) fn of(id: &'a RecordId) -> Self {
        Self { space: id.space.as_str(), key: &id.key }
    }

    pub(crate) fn read(self) -> Result<RecordId, WireError> {
        Ok(RecordId::new(space(self.space)?, text(self.key)?))
    }
}

impl<'a> Cas<'a> {
    pub(crate) fn of(id: &'a RecordId, expect: &Expect, write: &'a Write, guard: Option<&'a Guard>) -> Self {
        let expect = match expect {
            Expect::Absent => None,
            Expect::At(seen) => Some(seen.version.0),
        };
        let put = match write {
            Write::Put { tag, value, ttl } => Some(Put { tag: tag.as_deref(), value, ttl: *ttl }),
            Write::Delete => None,
        };
        let guard = guard.map(|guard| (Id::of(&guard.id), guard.tag.as_deref()));
        Self { id: Id::of(id), expect, put, guard }
    }

    pub(crate) fn read(self) -> Result<(RecordId, Expect, Write, Option<Guard>), WireError> {
        let expect = match self.expect {
            None => Expect::Absent,
            Some(version) => Expect::At(Seen { version: Version(version), tag: None }),
        };
        let write = match self.put {
            Some(put) => Write::Put { tag: tag(put.tag)?, value: value(put.value)?, ttl: put.ttl },
            None => Write::Delete,
        };
        let guard = match self.guard {
            Some((id, of)) => Some(Guard { id: id.read()?, tag: tag(of)? }),
            None => None,
        };
        Ok((self.id.read()?, expect, write, guard))
    }
}

impl<'a> Item<'a> {
    pub(crate) fn of(record: &'a Record) -> Self {
        Self {
            id: Id::of(&record.id),
            tag: record.tag.as_deref(),
            value: &record.value,
            version: record.version.0,
        }
    }

    pub(crate) fn read(self) -> Result<Record, WireError> {
        let (id, tag, value) = (self.id.read()?, tag(self.tag)?, value(self.value)?);
        Ok(Record { id, tag, value, version: Version(self.version) })
    }

    /// At least as long as the record is on the wire.
    pub(crate) fn size(record: &Record) -> usize {
        id_size(&record.id) + record.tag.as_ref().map_or(0, String::len) + record.value.len() + NUMBERS
    }
}

impl<'a> Event<'a> {
    pub(crate) fn of(change: &'a Change) -> Self {
        match change {
            Change::Put { position, record } => Self::Put(position.0, Item::of(record)),
            Change::Deleted { position, id } => Self::Deleted(position.0, Id::of(id)),
        }
    }

    pub(crate) fn read(self) -> Result<Change, WireError> {
        Ok(match self {
            Self::Put(position, item) => Change::Put { position: Position(position), record: item.read()? },
            Self::Deleted(position, id) => Change::Deleted { position: Position(position), id: id.read()? },
        })
    }

    /// At least as long as the change is on the wire.
    pub(crate) fn size(change: &Change) -> usize {
        match change {
            Change::Put { record, .. } => Item::size(record) + NUMBERS,
            Change::Deleted { id, .. } => id_size(id) + NUMBERS,
        }
    }
}

/// At least as long as the name of a record and one number are on the wire.
pub(crate) fn id_size(id: &RecordId) -> usize {
    id.space.as_str().len() + id.key.len() + NUMBERS
}

fn value(value: &[u8]) -> Result<Bytes, WireError> {
    if value.len() > MAX_VALUE {
        return Err(WireError::BigValue { length: value.len() });
    }
    Ok(Bytes::copy_from_slice(value))
}

/// As one run of bytes; serde takes a slice for a sequence otherwise.
fn whole<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// More than the lengths, markers and numbers of a record or change take.
const NUMBERS: usize = 40;

#[cfg(test)]
mod tests;
