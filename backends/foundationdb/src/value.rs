//! What stands under the keys: records, and changes of records in the log.
//!
//! Plain bytes with lengths before them, because the tuple layer doubles every zero. What cannot be read back was written by
//! somebody else, and is said so; it is never taken for something that it is not.

use archipelago_directory::{Record, RecordId, Space, Version};
use bytes::Bytes;

use crate::keys::{STAMP, version_of};

/// Marks one write over all its attempts, so that it recognises its own effect.
pub(crate) type Nonce = [u8; NONCE];

/// A value with room for its stamp, as `set_versionstamped_value` takes it.
pub(crate) fn record(nonce: Nonce, tag: Option<&str>, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; STAMP];
    bytes.extend(nonce);
    put_tag(&mut bytes, tag);
    bytes.extend(value);
    bytes.extend(OFFSET_ZERO);
    bytes
}

/// The record whose value this is.
pub(crate) fn read_record(id: RecordId, bytes: &Bytes) -> Result<Record, Foreign> {
    let what = id.to_string();
    parts_of_record(id, bytes.clone()).ok_or(Foreign { what })
}

/// The stamp alone, as `set_versionstamped_value` takes it.
pub(crate) fn stamp() -> Vec<u8> {
    [&[0; STAMP][..], &OFFSET_ZERO].concat()
}

/// A change as the log keeps it. The stamp stands in its key.
pub(crate) struct Logged {
    pub(crate) nonce: Nonce,
    pub(crate) id: RecordId,
    /// Tag and value; none if the record was deleted.
    pub(crate) put: Option<(Option<String>, Bytes)>,
}

/// A put of the log.
pub(crate) fn logged_put(nonce: Nonce, key: &str, tag: Option<&str>, value: &[u8]) -> Vec<u8> {
    let mut bytes = logged(nonce, key, PUT);
    put_tag(&mut bytes, tag);
    bytes.extend(value);
    bytes
}

/// A delete of the log.
pub(crate) fn logged_delete(nonce: Nonce, key: &str) -> Vec<u8> {
    logged(nonce, key, DELETE)
}

/// The change that these bytes are.
pub(crate) fn read_logged(space: Space, bytes: &Bytes) -> Result<Logged, Foreign> {
    parts_of_change(space, bytes.clone()).ok_or_else(|| Foreign { what: format!("the log of {space}") })
}

/// Something stands there that archipelago has not written.
#[derive(Debug, thiserror::Error)]
#[error("what stands at {what} was not written by archipelago")]
pub(crate) struct Foreign {
    what: String,
}

fn parts_of_record(id: RecordId, mut rest: Bytes) -> Option<Record> {
    let version = version_of(&take(&mut rest, STAMP)?)?;
    take(&mut rest, NONCE)?;
    let tag = take_tag(&mut rest)?;
    Some(Record { id, tag, value: rest, version: Version(version) })
}

fn parts_of_change(space: Space, mut rest: Bytes) -> Option<Logged> {
    let nonce = *take(&mut rest, NONCE)?.first_chunk()?;
    let kind = take(&mut rest, 1)?[0];
    let length = take_length(&mut rest)?;
    let key = text(&take(&mut rest, length)?)?;
    let put = match kind {
        PUT => Some((take_tag(&mut rest)?, rest)),
        DELETE => None,
        _ => return None,
    };
    Some(Logged { nonce, id: RecordId::new(space, key), put })
}

fn logged(nonce: Nonce, key: &str, kind: u8) -> Vec<u8> {
    let mut bytes = nonce.to_vec();
    bytes.push(kind);
    bytes.extend(length(key.len()));
    bytes.extend(key.as_bytes());
    bytes
}

/// No tag is length 0, a tag is its length and one.
fn put_tag(bytes: &mut Vec<u8>, tag: Option<&str>) {
    bytes.extend(length(tag.map_or(0, |tag| tag.len() + 1)));
    bytes.extend(tag.unwrap_or_default().as_bytes());
}

fn take_tag(rest: &mut Bytes) -> Option<Option<String>> {
    match take_length(rest)?.checked_sub(1) {
        None => Some(None),
        Some(length) => text(&take(rest, length)?).map(Some),
    }
}

/// Keys and tags are bounded far below, see [`LONGEST_NAME`](crate::limits::LONGEST_NAME).
fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}

fn take_length(rest: &mut Bytes) -> Option<usize> {
    take(rest, 2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes).into())
}

fn take(rest: &mut Bytes, length: usize) -> Option<Bytes> {
    (rest.len() >= length).then(|| rest.split_to(length))
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

const NONCE: usize = 16;
const PUT: u8 = 1;
const DELETE: u8 = 0;
/// Where the stamp goes: at the beginning.
const OFFSET_ZERO: [u8; 4] = [0; 4];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::{LONGEST_NAME, LONGEST_VALUE};

    #[test]
    fn the_longest_entry_is_below_what_the_engine_takes() {
        let (name, value) = ("x".repeat(LONGEST_NAME), vec![0; LONGEST_VALUE]);
        assert!(logged_put([0; 16], &name, Some(&name), &value).len() < 100_000);
    }

    #[test]
    fn what_somebody_else_wrote_is_refused() {
        let id = || RecordId::new(Space::OWNERS, "k");
        for bytes in [&b""[..], b"short", &[0; 27], &[0xff; 40]] {
            assert!(read_record(id(), &Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
        for bytes in [&b""[..], &[0; 16], &[7; 30]] {
            assert!(read_logged(Space::OWNERS, &Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            nonce: [u8; 16],
            key in ".{0,12}",
            tag in proptest::option::of(".{0,8}"),
            value in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let id = RecordId::new(Space::OWNERS, key.clone());
            let mut stored = record(nonce, tag.as_deref(), &value);
            stored.truncate(stored.len() - 4);
            stored[..8].copy_from_slice(&77_u64.to_be_bytes());
            let read = read_record(id.clone(), &stored.into()).unwrap();
            prop_assert_eq!((read.version, &read.tag, &read.value[..]), (Version(77), &tag, &value[..]));
            let put = read_logged(Space::OWNERS, &logged_put(nonce, &key, tag.as_deref(), &value).into()).unwrap();
            prop_assert_eq!((put.nonce, &put.id, put.put), (nonce, &id, Some((tag, Bytes::from(value)))));
            let delete = read_logged(Space::OWNERS, &logged_delete(nonce, &key).into()).unwrap();
            prop_assert_eq!((delete.nonce, delete.id, delete.put), (nonce, id, None));
        }

        #[test]
        fn nothing_panics_on_what_somebody_else_wrote(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let bytes = Bytes::from(bytes);
            let _ = read_record(RecordId::new(Space::OWNERS, "k"), &bytes);
            let _ = read_logged(Space::OWNERS, &bytes);
        }
    }
}
