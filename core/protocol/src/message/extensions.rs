//! Room in the header for what later versions and layers need.

use alloc::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use super::wire::{Reader, put_varint};
use super::{EnvelopeError, EnvelopePart};

/// Tagged values beside the header, such as a transaction context. Whoever does not know a tag passes over it.
///
/// So a tag must never carry what a receiver has to understand in order to act rightly. Tags below
/// [`FIRST_CUSTOM`](Self::FIRST_CUSTOM) are ours, none is in use yet. All values together have at most
/// [`MAX_BYTES`](Self::MAX_BYTES), counting 4 bytes more for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extensions {
    values: BTreeMap<u16, Bytes>,
    // The sum of the values' costs.
    size: usize,
}

impl Extensions {
    /// The first tag for applications.
    pub const FIRST_CUSTOM: u16 = 0x8000;
    /// The bound on all values together.
    pub const MAX_BYTES: usize = 4096;

    /// No extensions.
    pub const fn new() -> Self {
        Self { values: BTreeMap::new(), size: 0 }
    }

    /// Sets the value of `tag`.
    ///
    /// # Errors
    ///
    /// `TooLarge`: it does not fit beside the others; nothing changed.
    pub fn insert(&mut self, tag: u16, value: Bytes) -> Result<(), EnvelopeError> {
        let replaced = self.values.get(&tag).map_or(0, cost);
        let size = self.size - replaced + cost(&value);
        check_size(size as u64)?;
        self.size = size;
        self.values.insert(tag, value);
        Ok(())
    }

    /// The value of `tag`, if it is set.
    pub fn get(&self, tag: u16) -> Option<&Bytes> {
        self.values.get(&tag)
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All tags and values, by tag.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u16, &Bytes)> + '_ {
        self.values.iter().map(|(&tag, value)| (tag, value))
    }

    /// Writes the length of the area, then the entries by ascending tag.
    pub(super) fn encode(&self, out: &mut BytesMut) {
        let mut area = BytesMut::with_capacity(self.size);
        for (tag, value) in self.iter() {
            area.put_u16_le(tag);
            put_varint(&mut area, value.len() as u64);
            area.extend_from_slice(value);
        }
        put_varint(out, area.len() as u64);
        out.extend_from_slice(&area);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EnvelopeError> {
        let part = EnvelopePart::Extensions;
        let area = reader.bytes(part, Self::MAX_BYTES)?;
        let mut entries = Reader::new(&area);
        let mut extensions = Self::new();
        while !entries.is_at_end() {
            let tag = u16::from_le_bytes(entries.array(part)?);
            // One order only, and so no tag twice.
            if extensions.values.last_key_value().is_some_and(|(&last, _)| last >= tag) {
                return Err(EnvelopeError::Malformed { part });
            }
            extensions.insert(tag, entries.bytes(part, Self::MAX_BYTES)?)?;
        }
        Ok(extensions)
    }
}

/// What a value takes in the area: tag and length in at most 4 bytes, and itself.
fn cost(value: &Bytes) -> usize {
    value.len() + 4
}

fn check_size(len: u64) -> Result<(), EnvelopeError> {
    if len > Extensions::MAX_BYTES as u64 {
        return Err(EnvelopeError::TooLarge {
            part: EnvelopePart::Extensions,
            len,
            max: Extensions::MAX_BYTES,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut extensions = Extensions::new();
        extensions.insert(1, Bytes::from(vec![0; 4000])).unwrap();
        let before = extensions.clone();
        let error = EnvelopeError::TooLarge { part: EnvelopePart::Extensions, len: 4097, max: 4096 };
        assert_eq!(extensions.insert(2, Bytes::from(vec![0; 89])), Err(error));
        assert_eq!(extensions, before);
        extensions.insert(2, Bytes::from(vec![0; 88])).unwrap();
        extensions.insert(1, Bytes::from(vec![0; 4000])).unwrap();
    }

    #[test]
    fn tags_out_of_order_or_twice_are_malformed() {
        let malformed = Err(EnvelopeError::Malformed { part: EnvelopePart::Extensions });
        for tags in [[2_u8, 1], [1, 1]] {
            let bytes = Bytes::from(vec![6, tags[0], 0, 0, tags[1], 0, 0]);
            assert_eq!(Extensions::decode(&mut Reader::new(&bytes)), malformed);
        }
    }
}
