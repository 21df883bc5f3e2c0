//! The states of a shard's actors on their way to another node: one list, cut into parts that fit into frames.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::frame::{HandoffFrame, HandoffFrameError};

/// One actor that was active when its shard moved, and its state if that goes along.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CarriedState {
    /// The actor's key; its namespace and kind are those of the shard.
    pub key: String,
    /// Its state; none if it has none that goes along. Then this says only that the actor was active, which other datacenters
    /// may ask.
    pub state: Option<StateBytes>,
}

/// The state of an actor, encoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StateBytes {
    /// The number of the layout.
    pub version: u32,
    /// The state.
    pub bytes: Bytes,
}

impl CarriedState {
    /// What it adds to a list at most.
    pub fn weight(&self) -> u64 {
        let bytes = self.state.as_ref().map_or(0, |state| state.bytes.len());
        // Two lengths, a version and whether there is one, each of a few bytes.
        (self.key.len() + bytes) as u64 + 24
    }
}

/// The bytes of a list of states.
///
/// # Errors
///
/// The list has no form as bytes; nothing can be sent.
pub fn pack(states: &[CarriedState]) -> Result<Bytes, HandoffFrameError> {
    let bytes = postcard::to_allocvec(states).map_err(|_| HandoffFrameError::Malformed)?;
    Ok(bytes.into())
}

/// Reads a list of states; the whole of `bytes` must be one.
///
/// # Errors
///
/// The bytes are no list of states.
pub fn unpack(bytes: &[u8]) -> Result<Vec<CarriedState>, HandoffFrameError> {
    match postcard::take_from_bytes(bytes) {
        Ok((states, [])) => Ok(states),
        _ => Err(HandoffFrameError::Malformed),
    }
}

/// The frames in which a list travels, in order; at least one.
pub fn parcels(move_id: u64, packed: &Bytes) -> impl Iterator<Item = HandoffFrame> + '_ {
    let most = HandoffFrame::MAX_PART;
    let of = packed.len().div_ceil(most).max(1);
    (0..of).map(move |part| HandoffFrame::Parcel {
        move_id,
        part: u32::try_from(part).unwrap_or(u32::MAX),
        of: u32::try_from(of).unwrap_or(u32::MAX),
        bytes: packed.slice(part * most..packed.len().min((part + 1) * most)),
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_survives_the_way_and_weighs_no_more_than_was_said(
            states in proptest::collection::vec((".{0,8}", any::<Option<(u32, Vec<u8>)>>()), 0..20),
        ) {
            let states: Vec<_> = states
                .into_iter()
                .map(|(key, state)| {
                    let state = state.map(|(version, bytes)| StateBytes { version, bytes: bytes.into() });
                    CarriedState { key, state }
                })
                .collect();
            let packed = pack(&states).unwrap();
            let weight: u64 = states.iter().map(CarriedState::weight).sum();
            prop_assert!(packed.len() as u64 <= weight + 1, "one byte for the length of a short list");
            prop_assert_eq!(unpack(&packed).unwrap(), states);
            let more = [&packed[..], &[0]].concat();
            prop_assert_eq!(unpack(&more), Err(HandoffFrameError::Malformed));
        }

        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn the_largest_list_that_goes_along_fits_into_the_parts() {
        let limit = crate::handoff::HandoffLimits::DEFAULT.parcel_bytes;
        let packed = Bytes::from(vec![7; usize::try_from(limit).unwrap()]);
        let frames: Vec<_> = parcels(3, &packed).collect();
        assert_eq!(frames.len(), HandoffFrame::MAX_PARTS as usize);
        assert!(frames.iter().all(|frame| frame.encode().is_ok()));
        assert_eq!(parcels(3, &Bytes::new()).count(), 1, "an empty list is acknowledged as well");
    }
}
