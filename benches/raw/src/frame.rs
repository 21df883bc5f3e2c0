//! The frames: a length, a number, and a payload that nobody looks at.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The bytes of one frame.
pub(crate) const FRAME: usize = 100;

/// Appends the frame with this number.
pub(crate) fn put(number: u64, into: &mut BytesMut) {
    into.put_u32(FRAME as u32);
    into.put_u64(number);
    into.put_slice(&PAYLOAD);
}

/// The frame with this number, alone.
pub(crate) fn single(number: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(FRAME);
    put(number, &mut bytes);
    bytes.freeze()
}

/// Takes the next whole frame; its number.
pub(crate) fn take(from: &mut BytesMut) -> Option<u64> {
    let mut head = from.get(..HEAD)?;
    let length = head.get_u32() as usize;
    let number = head.get_u64();
    if length < HEAD || from.len() < length {
        return None;
    }
    from.advance(length);
    Some(number)
}

const HEAD: usize = 12;
const PAYLOAD: [u8; FRAME - HEAD] = [7; FRAME - HEAD];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_and_half_a_frame_stays() {
        let mut buffer = BytesMut::new();
        put(1, &mut buffer);
        put(u64::MAX, &mut buffer);
        assert_eq!(buffer.len(), 2 * FRAME);
        buffer.truncate(2 * FRAME - 1);
        assert_eq!(take(&mut buffer), Some(1));
        assert_eq!(take(&mut buffer), None);
        assert_eq!(buffer.len(), FRAME - 1);
    }
}
