//! What nodes tell each other about moves, beside the lanes, and its form on the wire.
//!
//! Frames travel on the control lane, one message each. All of them are advice or state sent ahead: none of them grants
//! anything, the owner record does. The decoder refuses what is longer than [`HandoffFrame::MAX_BYTES`] before it reads it,
//! and parcels that are out of bounds; it never panics.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::events::HandOffOutcome;
use crate::identity::{Generation, Kind, NodeId};
use crate::time::Millis;

/// A shard by its name, the same on every node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardName {
    /// The kind of its actors.
    pub kind: Kind,
    /// Its number.
    pub number: u32,
}

/// One message about a move.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HandoffFrame {
    /// The coordinator asks the owner to hand a shard over.
    HandOff {
        /// The shard.
        shard: ShardName,
        /// The generation that is to move; at any other the order is refused.
        generation: Generation,
        /// To whom.
        to: NodeId,
    },
    /// What became of such an order.
    HandOffDone {
        /// The shard.
        shard: ShardName,
        /// The generation of the order.
        generation: Generation,
        /// What became of it.
        outcome: HandOffOutcome,
    },
    /// The coordinator asks a node to claim a shard that nobody owns, or only an ended session.
    Allocate {
        /// The shard.
        shard: ShardName,
        /// The generation of the record that it saw; none if there was no record.
        expect: Option<Generation>,
    },
    /// Who owns the shard now, as the asked node knows.
    AllocateDone {
        /// The shard.
        shard: ShardName,
        /// The owner and its generation; none if that could not be found out.
        owner: Option<(NodeId, Generation)>,
    },
    /// A node has messages for a shard that nobody owns.
    GetShardLocation {
        /// The shard.
        shard: ShardName,
    },
    /// The owner offers the shard to the node that is to get it.
    Offer {
        /// The shard.
        shard: ShardName,
        /// The generation that would move.
        generation: Generation,
        /// The move, a fresh number for each attempt.
        move_id: u64,
        /// How many bytes of state would come along.
        bytes: u64,
    },
    /// The offer is accepted.
    OfferOk {
        /// The move.
        move_id: u64,
        /// The time to live of the session that would own the shard; its id is the sender's.
        ttl: Millis,
    },
    /// The offer is declined.
    OfferNo {
        /// The move.
        move_id: u64,
    },
    /// A part of the state of the actors, sent ahead.
    Parcel {
        /// The move.
        move_id: u64,
        /// Which part, from zero.
        part: u32,
        /// Of how many.
        of: u32,
        /// The bytes.
        bytes: Bytes,
    },
    /// All parts are there.
    ParcelAck {
        /// The move.
        move_id: u64,
    },
    /// A record may name the receiver: look at it now.
    Take {
        /// The shard.
        shard: ShardName,
        /// The generation of the record.
        generation: Generation,
    },
    /// Somebody wants the shards balanced now, and asks the coordinator.
    Rebalance {
        /// Of this kind; of all that there are if none is named.
        kind: Option<Kind>,
    },
    /// What there is to do for that.
    Rebalancing {
        /// The kinds, [`MAX_KINDS`](Self::MAX_KINDS) at most.
        kinds: Vec<KindBalance>,
    },
}

/// How far the shards of one kind are from a balance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KindBalance {
    /// The kind.
    pub kind: Kind,
    /// How many of its shards are being moved by order.
    pub under_way: u32,
    /// How many more have to move.
    pub remaining: u32,
}

impl HandoffFrame {
    /// The longest frame.
    pub const MAX_BYTES: usize = 1 << 20;
    /// The longest part of a parcel.
    pub const MAX_PART: usize = 512 << 10;
    /// The most parts: together they hold as much state as may go along.
    pub const MAX_PARTS: u32 = 128;
    /// The most kinds of which somebody hears at once.
    pub const MAX_KINDS: usize = 1_024;

    /// The bytes of the frame.
    ///
    /// # Errors
    ///
    /// The frame is out of bounds; nobody would read it.
    pub fn encode(&self) -> Result<Vec<u8>, HandoffFrameError> {
        if !self.is_bounded() {
            return Err(HandoffFrameError::Unbounded);
        }
        let bytes = postcard::to_allocvec(self).map_err(|_| HandoffFrameError::Malformed)?;
        let len = bytes.len();
        if len > Self::MAX_BYTES { Err(HandoffFrameError::TooLong { len }) } else { Ok(bytes) }
    }

    /// Reads a frame; the whole of `bytes` must be one.
    ///
    /// # Errors
    ///
    /// The bytes are too long, are no frame, or name a parcel that is out of bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, HandoffFrameError> {
        let len = bytes.len();
        if len > Self::MAX_BYTES {
            return Err(HandoffFrameError::TooLong { len });
        }
        let (frame, rest) =
            postcard::take_from_bytes::<Self>(bytes).map_err(|_| HandoffFrameError::Malformed)?;
        if !rest.is_empty() {
            return Err(HandoffFrameError::Malformed);
        }
        if frame.is_bounded() { Ok(frame) } else { Err(HandoffFrameError::Unbounded) }
    }

    fn is_bounded(&self) -> bool {
        match self {
            Self::Parcel { part, of, bytes, .. } => {
                part < of && *of <= Self::MAX_PARTS && bytes.len() <= Self::MAX_PART
            }
            Self::Rebalancing { kinds } => kinds.len() <= Self::MAX_KINDS,
            _ => true,
        }
    }
}

/// Why bytes are no frame of a move. Drop them and count them; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum HandoffFrameError {
    /// They are too many.
    #[error("a frame of a move has {len} bytes, at most {} are allowed", HandoffFrame::MAX_BYTES)]
    TooLong {
        /// How many.
        len: usize,
    },
    /// They do not read as a frame.
    #[error("the bytes are no frame of a move")]
    Malformed,
    /// A parcel, or a list, is out of bounds.
    #[error("the frame of a move is out of bounds")]
    Unbounded,
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::handoff::{RefuseReason, StayReason};

    fn any_frame() -> impl Strategy<Value = HandoffFrame> {
        let shard = || {
            ("[A-Z][a-z]{0,8}", any::<u32>())
                .prop_map(|(kind, number)| ShardName { kind: Kind::new(&kind).unwrap(), number })
        };
        let generation = || any::<u64>().prop_map(Generation::new);
        let node = || any::<u64>().prop_map(NodeId::new);
        let outcome = prop_oneof![
            generation().prop_map(HandOffOutcome::Moved),
            Just(HandOffOutcome::Released),
            Just(HandOffOutcome::Stays(StayReason::DrainTooLong)),
            Just(HandOffOutcome::Refused(RefuseReason::Busy)),
        ];
        prop_oneof![
            (shard(), generation(), node()).prop_map(|(shard, generation, to)| HandoffFrame::HandOff {
                shard,
                generation,
                to
            }),
            (shard(), generation(), outcome).prop_map(|(shard, generation, outcome)| {
                HandoffFrame::HandOffDone { shard, generation, outcome }
            }),
            (shard(), proptest::option::of(generation()))
                .prop_map(|(shard, expect)| HandoffFrame::Allocate { shard, expect }),
            (shard(), proptest::option::of((node(), generation())))
                .prop_map(|(shard, owner)| HandoffFrame::AllocateDone { shard, owner }),
            shard().prop_map(|shard| HandoffFrame::GetShardLocation { shard }),
            (shard(), generation(), any::<u64>(), any::<u64>()).prop_map(
                |(shard, generation, move_id, bytes)| HandoffFrame::Offer {
                    shard,
                    generation,
                    move_id,
                    bytes
                }
            ),
            (any::<u64>(), any::<u64>())
                .prop_map(|(move_id, ttl)| HandoffFrame::OfferOk { move_id, ttl: Millis(ttl) }),
            any::<u64>().prop_map(|move_id| HandoffFrame::OfferNo { move_id }),
            (any::<u64>(), 0_u32..128, any::<Vec<u8>>()).prop_map(|(move_id, part, bytes)| {
                HandoffFrame::Parcel { move_id, part, of: 128, bytes: bytes.into() }
            }),
            any::<u64>().prop_map(|move_id| HandoffFrame::ParcelAck { move_id }),
            (shard(), generation()).prop_map(|(shard, generation)| HandoffFrame::Take { shard, generation }),
            proptest::option::of(shard())
                .prop_map(|shard| HandoffFrame::Rebalance { kind: shard.map(|shard| shard.kind) }),
            proptest::collection::vec((shard(), any::<u32>()), 0..4).prop_map(|all| {
                let balance = |(shard, remaining): (ShardName, u32)| KindBalance {
                    kind: shard.kind,
                    under_way: shard.number,
                    remaining,
                };
                HandoffFrame::Rebalancing { kinds: all.into_iter().map(balance).collect() }
            }),
        ]
    }

    proptest! {
        /// Proves: R285, R302
        #[test]
        fn a_frame_survives_the_wire(frame in any_frame()) {
            let bytes = frame.encode().unwrap();
            prop_assert_eq!(HandoffFrame::decode(&bytes), Ok(frame));
            let more = [&bytes[..], &[0]].concat();
            prop_assert_eq!(HandoffFrame::decode(&more), Err(HandoffFrameError::Malformed));
            prop_assert!(HandoffFrame::decode(&bytes[..bytes.len() - 1]).is_err());
        }

        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>) {
            let _ = HandoffFrame::decode(&bytes);
        }

        #[test]
        fn spoilt_frames_never_panic(frame in any_frame(), at: proptest::sample::Index, byte: u8) {
            let mut bytes = frame.encode().unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(frame) = HandoffFrame::decode(&bytes) {
                prop_assert!(frame.is_bounded());
            }
        }
    }

    #[test]
    fn parcels_out_of_bounds_are_refused_on_both_sides() {
        let parcel =
            |part, of, len| HandoffFrame::Parcel { move_id: 1, part, of, bytes: vec![0; len].into() };
        assert!(parcel(127, 128, 512 << 10).encode().is_ok());
        for bad in [parcel(1, 1, 0), parcel(0, 129, 0), parcel(0, 1, (512 << 10) + 1), parcel(0, 0, 0)] {
            assert_eq!(bad.encode(), Err(HandoffFrameError::Unbounded));
            let bytes = postcard::to_allocvec(&bad).unwrap();
            assert_eq!(HandoffFrame::decode(&bytes), Err(HandoffFrameError::Unbounded));
        }
        let one = KindBalance { kind: Kind::new("A").unwrap(), under_way: 0, remaining: 0 };
        let kinds = vec![one; HandoffFrame::MAX_KINDS + 1];
        assert_eq!(HandoffFrame::Rebalancing { kinds }.encode(), Err(HandoffFrameError::Unbounded));
        let len = HandoffFrame::MAX_BYTES + 1;
        assert_eq!(HandoffFrame::decode(&vec![0; len]), Err(HandoffFrameError::TooLong { len }));
    }
}
