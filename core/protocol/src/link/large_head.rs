//! How a stream beside a lane begins: which transfer it brings, and how long the frame is that follows.
//!
//! [`LargeHead`] decides what the first bytes of a stream mean, and whether so long a frame may be read at all, before anything
//! is allocated for it. Reading the stream is left to whoever owns the connection.

use super::{FrameError, FramePart};

/// The first bytes of a stream: the number of the transfer (u64), and the length of the frame (u64), both little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LargeHead {
    /// Which of the announced messages it brings; [`REPLY`](Self::REPLY) if none.
    pub transfer: u64,
    /// How many bytes follow.
    pub len: u64,
}

impl LargeHead {
    /// How many bytes it has.
    pub const BYTES: usize = 16;
    /// The number of the transfers that no lane announces: replies.
    pub const REPLY: u64 = 0;

    /// Its bytes.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.transfer.to_le_bytes());
        bytes[8..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// Reads it from the beginning of a stream; `None` if it has not come whole.
    ///
    /// # Errors
    ///
    /// `Truncated`: no frame is empty.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let Some((transfer, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let Some(len) = rest.first_chunk() else { return Ok(None) };
        let (transfer, len) = (u64::from_le_bytes(*transfer), u64::from_le_bytes(*len));
        if len == 0 {
            return Err(FrameError::Truncated { part: FramePart::Frame });
        }
        Ok(Some(Self { transfer, len }))
    }

    /// Whether it brings a reply.
    pub const fn is_reply(self) -> bool {
        self.transfer == Self::REPLY
    }

    /// The length of the frame, if that is no more than `largest`.
    ///
    /// # Errors
    ///
    /// `TooLarge`: nothing may be allocated for it.
    pub fn len_within(self, largest: usize) -> Result<usize, FrameError> {
        let too_large = FrameError::TooLarge { part: FramePart::Frame, len: self.len, max: largest };
        usize::try_from(self.len).ok().filter(|len| *len <= largest).ok_or(too_large)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_head_that_has_not_come_whole_is_still_to_come_and_no_frame_is_empty() {
        let bytes = LargeHead { transfer: 7, len: 9 }.encode();
        assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert!((0..LargeHead::BYTES).all(|cut| LargeHead::decode(&bytes[..cut]) == Ok(None)));
        let empty = LargeHead { transfer: 7, len: 0 }.encode();
        assert_eq!(LargeHead::decode(&empty), Err(FrameError::Truncated { part: FramePart::Frame }));
    }

    #[test]
    fn a_frame_that_is_too_large_is_known_by_its_head() {
        let head = |len| LargeHead { transfer: LargeHead::REPLY, len };
        assert_eq!(head(10).len_within(10), Ok(10));
        let too_large = |len| Err(FrameError::TooLarge { part: FramePart::Frame, len, max: 10 });
        assert_eq!(head(11).len_within(10), too_large(11));
        assert_eq!(head(u64::MAX).len_within(10), too_large(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_head_is_read_as_it_was_written(transfer: u64, len in 1_u64.., behind in prop::collection::vec(any::<u8>(), 0..9)) {
            let head = LargeHead { transfer, len };
            let bytes = [&head.encode()[..], &behind].concat();
            prop_assert_eq!(LargeHead::decode(&bytes), Ok(Some(head)));
            prop_assert_eq!(head.is_reply(), transfer == 0);
        }
    }
}
