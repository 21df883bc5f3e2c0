//! What nodes tell each other about members, moves and tables, beside the lanes.

use archipelago_protocol::contract::{Epoch, TableVersion};
use archipelago_protocol::handoff::{
    CarriedState, HandOffOutcome, HandoffFrame, KindBalance, ShardName, StateBytes, pack, unpack,
};
use archipelago_protocol::identity::{ActorKey, Generation, Kind, NodeId, NodeInfo, PartitionName};
use archipelago_protocol::membership::{Delta, Digest, Member, MemberWord, MembershipFrame, NodeLoad};
use archipelago_protocol::ranges::{KnownTable, OwnerStatus, RangeTable, RouteOwner};
use archipelago_protocol::time::Millis;
use bytes::Bytes;

use crate::{memory, samples};

// ---- membership ----

/// A word about members.
pub(crate) fn membership(bytes: &[u8]) -> bool {
    let frame = match memory::within(bytes.len(), MEMORY, || MembershipFrame::decode(bytes)) {
        Ok(frame) => frame,
        Err(error) => return refused(&error),
    };
    let written = frame.encode().expect("what was read can be written");
    assert_eq!(MembershipFrame::decode(&written).as_ref(), Ok(&frame));
    assert!(MembershipFrame::decode(&written[..written.len() - 1]).is_err(), "a word that was cut off");
    true
}

/// One of each kind.
pub(crate) fn words_of_members() -> Vec<Vec<u8>> {
    let member = Member::joining(NodeInfo { id: NodeId::new(8), ..samples::node() });
    let load = NodeLoad { counter: 3, activations: 70, waiting: 2 };
    let word =
        MemberWord { member, clock: 5, observed: 2, unreachable: vec![NodeId::new(9)], load: Some(load) };
    let digest = Digest {
        fingerprint: 77,
        parts: vec![1, 2, 3, 4],
        seen: vec![3],
        loads: vec![(NodeId::new(8), load)],
        is_answer: false,
    };
    let delta = Delta {
        fingerprint: 78,
        parts: vec![1, 2],
        members: vec![word],
        tombstones: vec![(NodeId::new(4), Millis(60_000))],
        wants_answer: true,
    };
    let subject = NodeId::new(8);
    let frames = [
        MembershipFrame::Join(samples::node()),
        MembershipFrame::Digest(digest),
        MembershipFrame::Delta(delta),
        MembershipFrame::Heartbeat,
        MembershipFrame::HeartbeatAnswer,
        MembershipFrame::ProbeRequest { subject },
        MembershipFrame::ProbeAnswer { subject },
        MembershipFrame::Gone,
    ];
    with_half(frames.iter().map(|frame| frame.encode().expect("it is short")).collect())
}

// ---- moves ----

/// A word about a move, or the states of actors that came with one.
pub(crate) fn handoff(bytes: &[u8]) -> bool {
    let is_list = match memory::within(bytes.len(), MEMORY, || unpack(bytes)) {
        Ok(states) => {
            let packed = pack(&states).expect("what was read can be written");
            assert_eq!(unpack(&packed).as_ref(), Ok(&states));
            true
        }
        Err(error) => refused(&error),
    };
    let frame = match memory::within(bytes.len(), MEMORY, || HandoffFrame::decode(bytes)) {
        Ok(frame) => frame,
        Err(error) => return refused(&error) || is_list,
    };
    let written = frame.encode().expect("what was read can be written");
    assert_eq!(HandoffFrame::decode(&written).as_ref(), Ok(&frame));
    assert!(HandoffFrame::decode(&written[..written.len() - 1]).is_err(), "a word that was cut off");
    true
}

/// One of each kind, and some states.
pub(crate) fn words_of_moves() -> Vec<Vec<u8>> {
    let shard = ShardName { kind: Kind::new("Account").expect("a name"), number: 70 };
    let (generation, to, move_id) = (Generation::new(5), NodeId::new(8), 3);
    let state = |key: &str| {
        let state = StateBytes { version: 2, bytes: Bytes::from_static(b"{}") };
        CarriedState { key: key.into(), state: Some(state) }
    };
    let list = pack(&[state("a"), state("b")]).expect("it is short");
    let shard = || shard.clone();
    let frames = [
        HandoffFrame::HandOff { shard: shard(), generation, to },
        HandoffFrame::HandOffDone { shard: shard(), generation, outcome: HandOffOutcome::Released },
        HandoffFrame::Allocate { shard: shard(), expect: Some(generation) },
        HandoffFrame::AllocateDone { shard: shard(), owner: Some((to, generation)) },
        HandoffFrame::GetShardLocation { shard: shard() },
        HandoffFrame::Offer { shard: shard(), generation, move_id, bytes: 700 },
        HandoffFrame::OfferOk { move_id, ttl: Millis(10_000) },
        HandoffFrame::OfferNo { move_id },
        HandoffFrame::Parcel { move_id, part: 0, of: 2, bytes: list.clone() },
        HandoffFrame::ParcelAck { move_id },
        HandoffFrame::Take { shard: shard(), generation },
        HandoffFrame::Rebalance { kind: None },
        HandoffFrame::Rebalance { kind: Some(shard().kind) },
        HandoffFrame::Rebalancing {
            kinds: vec![KindBalance { kind: shard().kind, under_way: 2, remaining: 300 }],
        },
    ];
    let mut words: Vec<_> = frames.iter().map(|frame| frame.encode().expect("it is short")).collect();
    words.push(list.to_vec());
    with_half(words)
}

// ---- tables ----

/// A table of ranges.
pub(crate) fn table(bytes: &[u8]) -> bool {
    let known = match memory::within(bytes.len(), MEMORY, || KnownTable::decode(bytes)) {
        Ok(known) => known,
        Err(error) => return refused(&error),
    };
    // Every key is in one range.
    for key in ["", "a", "m", "\u{10ffff}"] {
        assert!(known.table.find(key).range.contains(key));
    }
    let written = known.encode().expect("what was read can be written");
    assert_eq!(KnownTable::decode(&written), Ok(known));
    true
}

/// Tables of one range, of two, and of more.
pub(crate) fn tables() -> Vec<Vec<u8>> {
    let name = |text: &str| PartitionName::new(text).expect("a name");
    let owner = |id, status| RouteOwner { node: NodeId::new(id), address: samples::node().address, status };
    let cut = |table: &RangeTable, at: &str, [low, high]: [&str; 2]| {
        let whole = table.find(at).partition.clone();
        let (low, high) =
            ((name(low), owner(7, OwnerStatus::Up)), (name(high), owner(8, OwnerStatus::Leaving)));
        table.split(&whole, &ActorKey::new(at).expect("a key"), low, high).expect("it can be divided")
    };
    let whole = RangeTable::whole(name("all"), owner(7, OwnerStatus::Up));
    let two = cut(&whole, "m", ["low", "high"]);
    let three = cut(&two, "b\u{e9}", ["lower", "upper"]);
    let known = |table| KnownTable { version: TableVersion(3), epoch: Epoch(2), table };
    let bytes = [whole, two, three].map(|table| known(table).encode().expect("it is short"));
    with_half(bytes.into())
}

/// The same, and half of one: no word.
fn with_half(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let longest = words.iter().max_by_key(|word| word.len()).expect("there are some");
    words.push(longest[..longest.len() / 2].to_vec());
    words
}

fn refused(error: &impl std::fmt::Display) -> bool {
    assert!(!error.to_string().is_empty(), "whoever sent it is told why");
    false
}

/// The shortest entry of a list has some bytes and is read into a few hundred, in a list with room for twice what is in it.
const MEMORY: (usize, usize) = (256, 8 << 10);
