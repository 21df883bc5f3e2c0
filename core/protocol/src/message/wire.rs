//! Reading and writing the parts of an envelope.
//!
//! Invariant: a length is compared with its bound and with what is left before anything is taken.

use bytes::{BufMut, Bytes, BytesMut};

use super::{EnvelopeError, EnvelopePart};

/// Takes parts off the front of a buffer; byte strings share its memory.
pub(super) struct Reader<'a> {
    all: &'a Bytes,
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(all: &'a Bytes) -> Self {
        Self { all, at: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    pub(super) fn left(&self) -> usize {
        self.all.len() - self.at
    }

    pub(super) fn array<const N: usize>(&mut self, part: EnvelopePart) -> Result<[u8; N], EnvelopeError> {
        let array = self.all[self.at..].first_chunk().ok_or(EnvelopeError::Truncated { part })?;
        self.at += N;
        Ok(*array)
    }

    pub(super) fn u8(&mut self, part: EnvelopePart) -> Result<u8, EnvelopeError> {
        Ok(u8::from_le_bytes(self.array(part)?))
    }

    pub(super) fn u64(&mut self, part: EnvelopePart) -> Result<u64, EnvelopeError> {
        Ok(u64::from_le_bytes(self.array(part)?))
    }

    /// A number in groups of 7 bits, lowest first; only its shortest form is accepted.
    pub(super) fn varint(&mut self, part: EnvelopePart) -> Result<u64, EnvelopeError> {
        let malformed = EnvelopeError::Malformed { part };
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8(part)?;
            let group = u64::from(byte & 0x7f);
            if group << shift >> shift != group {
                return Err(malformed);
            }
            number |= group << shift;
            if byte & 0x80 == 0 {
                let shortest = byte != 0 || shift == 0;
                return if shortest { Ok(number) } else { Err(malformed) };
            }
        }
        Err(malformed)
    }

    /// A length and as many bytes, sharing the buffer's memory.
    pub(super) fn bytes(&mut self, part: EnvelopePart, max: usize) -> Result<Bytes, EnvelopeError> {
        let start = self.take(part, max)?;
        Ok(self.all.slice(start..self.at))
    }

    /// A length and as many bytes of UTF-8.
    pub(super) fn text(&mut self, part: EnvelopePart, max: usize) -> Result<&'a str, EnvelopeError> {
        let start = self.take(part, max)?;
        core::str::from_utf8(&self.all[start..self.at]).map_err(|_| EnvelopeError::Malformed { part })
    }

    /// Moves behind a length and its bytes and returns where the bytes start.
    fn take(&mut self, part: EnvelopePart, max: usize) -> Result<usize, EnvelopeError> {
        let len = self.varint(part)?;
        let fits = usize::try_from(len).ok().filter(|&len| len <= max);
        let wanted = fits.ok_or(EnvelopeError::TooLarge { part, len, max })?;
        if wanted > self.left() {
            return Err(EnvelopeError::Truncated { part });
        }
        let start = self.at;
        self.at += wanted;
        Ok(start)
    }
}

pub(super) fn put_varint(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const PART: EnvelopePart = EnvelopePart::Payload;

    #[test]
    fn a_number_has_one_form() {
        let read = |bytes: &'static [u8]| Reader::new(&Bytes::from_static(bytes)).varint(PART);
        let malformed = Err(EnvelopeError::Malformed { part: PART });
        assert_eq!(read(&[0]), Ok(0));
        assert_eq!(read(&[0x80, 0]), malformed, "a zero too many");
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Ok(u64::MAX));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), malformed, "65 bits");
        assert_eq!(read(&[0xff; 11]), malformed);
        assert_eq!(read(&[0x80]), Err(EnvelopeError::Truncated { part: PART }));
    }

    proptest! {
        #[test]
        fn numbers_survive(number: u64, bits in 0_u32..64) {
            let number = number >> bits;
            let mut out = BytesMut::new();
            put_varint(&mut out, number);
            let bytes = out.freeze();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(PART), Ok(number));
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in any::<Vec<u8>>()) {
            let bytes = Bytes::from(bytes);
            let _ = Reader::new(&bytes).bytes(PART, usize::MAX);
            let _ = Reader::new(&bytes).text(PART, 8);
        }
    }
}
