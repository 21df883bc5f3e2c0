//! Bytes that know their place: a gap, a swap or a repetition shows at its first byte.

use bytes::{Bytes, BytesMut};

/// A long sequence of bytes without repetitions; each number gives another one.
#[derive(Clone, Copy, Debug)]
pub struct Pattern(pub u64);

impl Pattern {
    /// The bytes from `from` on, `len` of them.
    pub fn bytes(self, from: usize, len: usize) -> Bytes {
        let mut bytes = BytesMut::with_capacity(len + 16);
        let mut word = from / 8;
        while bytes.len() < len + from % 8 {
            bytes.extend_from_slice(&self.word(word).to_le_bytes());
            word += 1;
        }
        bytes.freeze().slice(from % 8..from % 8 + len)
    }

    /// Checks that `bytes` are the ones from `from` on.
    ///
    /// # Panics
    ///
    /// If they are not; the message has the first place that differs.
    #[track_caller]
    pub fn check(self, from: usize, bytes: &[u8]) {
        let expected = self.bytes(from, bytes.len());
        if expected != bytes {
            let at = expected.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            panic!("byte {} is not what was sent there", from + at);
        }
    }

    fn word(self, index: usize) -> u64 {
        let mut z = (index as u64 ^ self.0.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 31)
    }
}

/// Lengths from 1 to `most` in no order, of which `total` is the sum.
pub fn uneven(total: usize, most: usize) -> impl Iterator<Item = usize> {
    let (mut left, mut state) = (total, 7_u64);
    std::iter::from_fn(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = usize::try_from(state >> 33).expect("31 bits") % most + 1;
        let next = drawn.min(left);
        left -= next;
        (next > 0).then_some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_of_a_pattern_fits_into_it() {
        let whole = Pattern(3).bytes(0, 100);
        for from in 0..50 {
            assert_eq!(Pattern(3).bytes(from, 37), whole.slice(from..from + 37));
        }
        assert_ne!(Pattern(4).bytes(0, 16), whole.slice(..16));
    }

    #[test]
    #[should_panic(expected = "byte 12 is not")]
    fn the_first_wrong_byte_is_named() {
        let mut bytes = Pattern(1).bytes(10, 5).to_vec();
        bytes[2] ^= 1;
        Pattern(1).check(10, &bytes);
    }

    #[test]
    fn uneven_lengths_add_up() {
        assert_eq!(uneven(100_000, 700).sum::<usize>(), 100_000);
    }
}
