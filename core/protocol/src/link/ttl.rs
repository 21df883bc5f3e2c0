//! The time to live inside a frame already written.

use super::encode::ttl_on_wire;
use super::frame::{ASK, ENVELOPE, NO_TTL, SERVICE, TELL};
use crate::message::Envelope;
use crate::time::Millis;

/// Replaces the time to live of an ask, tell, service ask or envelope by what `left` makes of it. Frames without one stay as
/// they are.
pub(super) fn change_ttl(frame: &mut [u8], left: impl FnOnce(Millis) -> Millis) {
    if let [ENVELOPE, envelope @ ..] = frame {
        return change_envelope(envelope, left);
    }
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

fn change_envelope(envelope: &mut [u8], left: impl FnOnce(Millis) -> Millis) {
    let field = Envelope::ttl_place(envelope).and_then(|at| envelope.get_mut(at..)?.first_chunk_mut());
    if let Some(field) = field {
        *field = left(Millis(u64::from_le_bytes(*field))).0.to_le_bytes();
    }
}

const TTL_BEHIND_TAG: usize = 1;
const TTL_BEHIND_CALL: usize = 1 + size_of::<u64>();

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use bytes::{Bytes, BytesMut};
    use proptest::prelude::*;

    use super::*;
    use crate::identity::{ActorPath, CorrelationId, NodeId};
    use crate::link::Frame;
    use crate::message::{CallChain, CodecId, Extensions, Leg, MessageFlags, WireId};

    fn envelope(leg: Leg) -> Envelope {
        Envelope {
            leg,
            target_node: NodeId::new(1),
            sender_node: NodeId::new(2),
            message: WireId::new(3),
            type_hint: None,
            flags: MessageFlags::empty(),
            codec: CodecId::POSTCARD,
            trace: None,
            chain: CallChain::empty(),
            extensions: Extensions::new(),
            payload: Bytes::from_static(b"payload"),
        }
    }

    fn with_half_the_time(leg: Leg) -> Envelope {
        let mut frame = BytesMut::new();
        Frame::encode_envelope(&mut frame, &envelope(leg)).unwrap();
        change_ttl(&mut frame, |left| Millis(left.0 / 2));
        Envelope::decode(&frame.freeze().slice(1..)).unwrap()
    }

    #[test]
    fn an_envelope_that_waited_has_less_time_and_is_otherwise_the_same() {
        let target = || ActorPath::from_uri("archipelago://s@h:1/a").unwrap().into();
        let request = |ttl| Leg::Request {
            correlation: CorrelationId::from_u64(9),
            ttl: Millis(ttl),
            target: target(),
            sender: None,
        };
        assert_eq!(with_half_the_time(request(600)), envelope(request(300)));
        let one_way = |ttl: Option<u64>| Leg::OneWay { ttl: ttl.map(Millis), target: target(), sender: None };
        assert_eq!(with_half_the_time(one_way(Some(50))), envelope(one_way(Some(25))));
        assert_eq!(with_half_the_time(one_way(None)), envelope(one_way(None)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_changed_without_panic(mut bytes in any::<Vec<u8>>(), tag in 0_u8..20) {
            bytes.insert(0, tag);
            let len = bytes.len();
            change_ttl(&mut bytes, |left| left);
            prop_assert_eq!(bytes.len(), len);
        }
    }
}
