//! Messages to named actors and between nodes, with their header.

use archipelago_protocol::message::{Envelope, Extensions, Leg};
use bytes::Bytes;

use crate::{memory, samples};

/// An envelope.
pub(crate) fn envelope(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    match memory::within(bytes.len(), MEMORY, || Envelope::decode(&bytes)) {
        Ok(envelope) => {
            is_valid(&envelope);
            survives(&envelope);
            for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                assert!(Envelope::decode(&bytes.slice(..cut)).is_err(), "an envelope that was cut off");
            }
            if let Some(response) = envelope.respond(Bytes::from_static(b"reply")) {
                survives(&response);
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "the connection is closed with a reason");
            false
        }
    }
}

/// What decodes is valid, and within every bound.
fn is_valid(envelope: &Envelope) {
    assert!(envelope.payload.len() <= Envelope::MAX_PAYLOAD);
    let extensions: usize = envelope.extensions.iter().map(|(_, value)| value.len()).sum();
    assert!(extensions <= Extensions::MAX_BYTES);
    assert_eq!(envelope.correlation().is_some(), !matches!(envelope.leg, Leg::OneWay { .. }));
    assert!(envelope.ttl().is_some() || !matches!(envelope.leg, Leg::Request { .. }));
}

fn survives(envelope: &Envelope) {
    let written = envelope.encode().expect("what was read can be written");
    assert_eq!(Envelope::decode(&written).as_ref(), Ok(envelope));
}

pub(crate) fn envelopes() -> Vec<Vec<u8>> {
    samples::envelopes().iter().map(|envelope| envelope.encode().expect("it is short").to_vec()).collect()
}

/// The payload shares the memory of the bytes; an extension takes 4 bytes at least, and a place in a map.
const MEMORY: (usize, usize) = (32, 4 << 10);
