//! Where one frame ends and the next begins.

use bytes::{BufMut, BytesMut};

use super::{FrameError, FramePart};

/// The bytes of a frame's length.
pub const LEN_BYTES: usize = 4;

/// The tag and body of the first frame in `bytes`, and where the next one begins; `None` if it has not come whole.
///
/// # Errors
///
/// `TooLarge`: the frame is longer than `max`; known before it has come, so that nobody waits or allocates for it.
pub fn next_frame(bytes: &[u8], max: usize) -> Result<Option<(&[u8], usize)>, FrameError> {
    let Some((len, rest)) = bytes.split_first_chunk::<LEN_BYTES>() else { return Ok(None) };
    let len = u32::from_le_bytes(*len) as usize;
    if len > max {
        return Err(FrameError::TooLarge { part: FramePart::Frame, len: len as u64, max });
    }
    if len == 0 {
        return Err(FrameError::Truncated { part: FramePart::Frame });
    }
    Ok(rest.get(..len).map(|frame| (frame, LEN_BYTES + len)))
}

/// Appends a frame: what `body` writes, with its length in front. If `body` fails or panics, writes nothing, or more
/// than `max`, `out` is as before.
///
/// # Errors
///
/// What `body` answers; or `TooLarge` or `Truncated` (it wrote nothing), made into the same type.
pub fn write_frame<E: From<FrameError>>(
    out: &mut BytesMut,
    max: usize,
    body: impl FnOnce(&mut BytesMut) -> Result<(), E>,
) -> Result<(), E> {
    write_frame_or(out, max, body, E::from)
}

/// As [`write_frame`], for errors that a frame's error becomes in some other way.
pub(super) fn write_frame_or<E>(
    out: &mut BytesMut,
    max: usize,
    body: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    refuse: impl FnOnce(FrameError) -> E,
) -> Result<(), E> {
    let frame = Unfinished { start: out.len(), out, whole: false };
    frame.out.put_u32_le(0);
    body(frame.out)?;
    frame.finish(max).map_err(refuse)
}

/// A frame of which nothing stays behind unless it is finished, not even if its writer panics.
struct Unfinished<'a> {
    out: &'a mut BytesMut,
    start: usize,
    whole: bool,
}

impl Unfinished<'_> {
    fn finish(mut self, max: usize) -> Result<(), FrameError> {
        let body = self.start + LEN_BYTES;
        let len = self.out.len() - body;
        match u32::try_from(len) {
            Ok(0) => Err(FrameError::Truncated { part: FramePart::Frame }),
            Ok(fits) if len <= max => {
                self.out[self.start..body].copy_from_slice(&fits.to_le_bytes());
                self.whole = true;
                Ok(())
            }
            _ => Err(FrameError::TooLarge { part: FramePart::Frame, len: len as u64, max }),
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.whole {
            self.out.truncate(self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn writing(body: &[u8]) -> impl FnOnce(&mut BytesMut) -> Result<(), FrameError> {
        move |out| {
            out.extend_from_slice(body);
            Ok(())
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_has_come() {
        let refused = FrameError::TooLarge { part: FramePart::Frame, len: 11, max: 10 };
        assert_eq!(next_frame(&11_u32.to_le_bytes(), 10), Err(refused));
        assert_eq!(next_frame(&10_u32.to_le_bytes(), 10), Ok(None));
        assert!(next_frame(&[255; 4], 1 << 20).is_err());
    }

    #[test]
    fn an_empty_frame_is_neither_read_nor_written() {
        let refused = FrameError::Truncated { part: FramePart::Frame };
        assert_eq!(next_frame(&[0; 9], 10), Err(refused.clone()));
        assert_eq!(write_frame(&mut BytesMut::new(), 10, writing(&[])), Err(refused));
    }

    #[test]
    fn a_frame_that_cannot_be_written_leaves_nothing_behind() {
        let mut out = BytesMut::from(&b"before"[..]);
        let refused = FrameError::TooLarge { part: FramePart::Frame, len: 3, max: 2 };
        assert_eq!(write_frame(&mut out, 2, writing(b"abc")), Err(refused));
        let failing = |out: &mut BytesMut| {
            out.extend_from_slice(b"ab");
            Err(FrameError::UnknownTag { tag: 9 })
        };
        assert_eq!(write_frame(&mut out, 2, failing), Err(FrameError::UnknownTag { tag: 9 }));
        assert_eq!(out, b"before"[..]);
    }

    #[test]
    fn a_panic_in_the_middle_of_a_frame_leaves_nothing_behind() {
        let mut out = BytesMut::from(&b"before"[..]);
        let panicking = |out: &mut BytesMut| -> Result<(), FrameError> {
            out.extend_from_slice(b"ab");
            panic!("a message that cannot be written");
        };
        let write = std::panic::AssertUnwindSafe(|| write_frame(&mut out, 9, panicking));
        assert!(std::panic::catch_unwind(write).is_err());
        assert_eq!(out, b"before"[..]);
    }

    proptest! {
        #[test]
        fn frames_are_found_again_however_the_bytes_come(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut out = BytesMut::new();
            for body in &bodies {
                write_frame(&mut out, 19, writing(body)).unwrap();
            }
            let first = cut.index(out.len() + 1);
            let (mut found, mut from) = (vec![], 0);
            for end in [first, out.len()] {
                while let Some((frame, next)) = next_frame(&out[from..end], 19).unwrap() {
                    found.push(frame.to_vec());
                    from += next;
                }
            }
            prop_assert_eq!(from, out.len());
            prop_assert_eq!(found, bodies);
        }

        #[test]
        fn any_bytes_are_scanned_without_panic(bytes in any::<Vec<u8>>(), max in 0_usize..300) {
            if let Ok(Some((frame, next))) = next_frame(&bytes, max) {
                prop_assert!(!frame.is_empty() && frame.len() <= max && next <= bytes.len());
            }
        }
    }
}
