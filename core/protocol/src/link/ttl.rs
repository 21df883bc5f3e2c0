//! The time to live inside a frame already written.

use super::encode::ttl_on_wire;
use super::frame::{ASK, NO_TTL, SERVICE, TELL};
use crate::time::Millis;

/// Replaces the time to live of an ask, tell or service ask by what `left` makes of it. Frames without one stay as they are.
pub(super) fn change_ttl(frame: &mut [u8], left: impl FnOnce(Millis) -> Millis) {
    let Some(field) = ttl_field(frame) else { return };
    let old = u32::from_le_bytes(*field);
    if old != NO_TTL {
        *field = ttl_on_wire(Some(left(Millis(old.into())))).to_le_bytes();
    }
}

fn ttl_field(frame: &mut [u8]) -> Option<&mut [u8; 4]> {
    let place = match *frame.first()? {
        ASK | SERVICE => TTL_BEHIND_CALL,
        TELL => TTL_BEHIND_TAG,
        _ => return None,
    };
    frame.get_mut(place..)?.first_chunk_mut()
}

const TTL_BEHIND_TAG: usize = 1;
const TTL_BEHIND_CALL: usize = 1 + size_of::<u64>();
