use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::membership::samples::{info, member};

fn any_word() -> impl Strategy<Value = MemberWord> {
    let status = proptest::sample::select(&MemberStatus::ALL[..5]);
    let marks = proptest::collection::vec(any::<u64>().prop_map(NodeId::new), 0..4);
    (any::<u64>(), status, any::<u64>(), any::<u64>(), marks, any::<Option<u32>>()).prop_map(
        |(id, status, clock, observed, unreachable, load)| MemberWord {
            member: member(id, status),
            clock,
            observed,
            unreachable,
            load: load.map(|counter| NodeLoad { counter, ..NodeLoad::default() }),
        },
    )
}

fn any_frame() -> impl Strategy<Value = MembershipFrame> {
    let id = || any::<u64>().prop_map(NodeId::new);
    let parts = || proptest::collection::vec(any::<u32>(), 1..=64);
    let digest = (any::<u64>(), parts(), any::<Vec<u8>>(), any::<bool>()).prop_map(
        |(fingerprint, parts, seen, is_answer)| {
            MembershipFrame::Digest(Digest { fingerprint, parts, seen, loads: vec![], is_answer })
        },
    );
    let words = proptest::collection::vec(any_word(), 0..5);
    let tombstones = proptest::collection::vec((id(), any::<u64>().prop_map(Millis)), 0..5);
    let delta = (any::<u64>(), parts(), words, tombstones, any::<bool>()).prop_map(
        |(fingerprint, parts, members, tombstones, wants_answer)| {
            MembershipFrame::Delta(Delta { fingerprint, parts, members, tombstones, wants_answer })
        },
    );
    prop_oneof![
        any::<u64>().prop_map(|id| MembershipFrame::Join(info(id))),
        digest,
        delta,
        Just(MembershipFrame::Heartbeat),
        Just(MembershipFrame::HeartbeatAnswer),
        id().prop_map(|subject| MembershipFrame::ProbeRequest { subject }),
        id().prop_map(|subject| MembershipFrame::ProbeAnswer { subject }),
        Just(MembershipFrame::Gone),
    ]
}

proptest! {
    #[test]
    fn a_frame_survives_the_wire(frame in any_frame()) {
        let bytes = frame.encode().unwrap();
        prop_assert_eq!(MembershipFrame::decode(&bytes), Ok(frame));
        let more = [&bytes[..], &[0]].concat();
        prop_assert_eq!(MembershipFrame::decode(&more), Err(MembershipFrameError::Malformed));
        prop_assert!(MembershipFrame::decode(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>) {
        let _ = MembershipFrame::decode(&bytes);
    }

    #[test]
    fn spoilt_frames_never_panic(frame in any_frame(), at: proptest::sample::Index, byte: u8) {
        let mut bytes = frame.encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(frame) = MembershipFrame::decode(&bytes) {
            prop_assert!(frame.is_bounded());
        }
    }
}

#[test]
fn what_breaks_the_bounds_of_a_view_is_refused() {
    let refused = |frame: &MembershipFrame| {
        MembershipFrame::decode(&postcard::to_allocvec(frame).unwrap())
            == Err(MembershipFrameError::Unbounded)
    };
    let digest = Digest { fingerprint: 1, parts: vec![0], seen: vec![], loads: vec![], is_answer: false };
    assert!(!refused(&MembershipFrame::Digest(digest.clone())));
    assert!(refused(&MembershipFrame::Digest(Digest { parts: vec![], ..digest.clone() })));
    assert!(refused(&MembershipFrame::Digest(Digest { parts: vec![0; 65], ..digest.clone() })));
    assert!(refused(&MembershipFrame::Digest(Digest { seen: vec![0; 513], ..digest.clone() })));
    let load = (NodeId::new(1), NodeLoad::default());
    assert!(refused(&MembershipFrame::Digest(Digest { loads: vec![load; 33], ..digest })));
    let word = |status| MemberWord {
        member: member(1, status),
        clock: 0,
        observed: 0,
        unreachable: vec![],
        load: None,
    };
    let delta = |members| {
        MembershipFrame::Delta(Delta {
            fingerprint: 1,
            parts: vec![0],
            members,
            tombstones: vec![],
            wants_answer: true,
        })
    };
    assert!(!refused(&delta(vec![word(MemberStatus::Down)])));
    assert!(refused(&delta(vec![word(MemberStatus::Removed)])), "the removed are told as tombstones");
    let mut long = info(1);
    long.name = "n".repeat(Member::MAX_TEXT + 1);
    assert!(refused(&MembershipFrame::Join(long)));
    let len = MembershipFrame::MAX_BYTES + 1;
    assert_eq!(MembershipFrame::decode(&vec![0; len]), Err(MembershipFrameError::TooLong { len }));
}
