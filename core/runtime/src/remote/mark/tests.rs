use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use archipelago_protocol::contract::{
    CloseReason, PeerIdentity, RecvStream, SendStream, Streams, TransportError,
};
use archipelago_protocol::identity::{Namespace, NodeAddress, NodeId, NodeInfo};
use archipelago_protocol::link::{OutboxSettings, Overflow, WindowSettings, next_frame};
use archipelago_protocol::peer::{AttemptId, ConnectionId, Hello, LaneEnds, PeerKind, Seat, Versions};

use super::super::incoming::Incoming;
use super::super::peer::Peer;
use super::*;

struct NoStreams;

#[async_trait::async_trait]
impl Streams for NoStreams {
    async fn open(&self) -> Result<Box<dyn SendStream>, TransportError> {
        Err(TransportError::Ended)
    }

    async fn next(&self) -> Result<Box<dyn RecvStream>, TransportError> {
        Err(TransportError::Ended)
    }

    fn close(&self, _: CloseReason) {}
}

/// Remembers how its call ended.
struct Caller(Rc<RefCell<Option<CallError>>>);

impl Waiting for Caller {
    fn reply(self: Box<Self>, _: CodecId, _: Payload<'_>, _: &Arc<NodeShared>) {}

    fn fail(self: Box<Self>, error: CallError) {
        *self.0.borrow_mut() = Some(error);
    }

    fn is_abandoned(&self) -> bool {
        false
    }
}

fn peer() -> Arc<Peer> {
    let hello = Hello {
        versions: Versions { oldest: 1, newest: 1 },
        cluster: "archipelago".into(),
        namespace: Namespace::new("default").unwrap(),
        datacenter: "local".into(),
        node: NodeInfo {
            id: NodeId::new(7),
            name: "other".into(),
            address: NodeAddress::new("10.0.0.7", 4_000).unwrap(),
            roles: BTreeSet::new(),
            version: "0".into(),
            kinds: Default::default(),
        },
        kind: PeerKind::Member,
        lane: LaneEnds { from: Seat::Data(0), to: Seat::Data(0) },
        attempt: AttemptId(1),
        expects: None,
        seats: vec![1, 2],
        kinds: vec![],
        store: None,
        extensions: vec![],
    };
    Arc::new(Peer::new(hello, &PeerIdentity::default()))
}

fn lane(settings: OutboxSettings) -> Rc<Lane> {
    Rc::new(Lane::new(0, peer(), Seat::Data(0), settings))
}

fn connect(lane: &Lane) {
    let incoming = Arc::new(Incoming::new(0, ConnectionId(1), WindowSettings { bytes: 1_000, jobs: 9 }));
    lane.opened(&incoming, Arc::new(NoStreams), Millis(0));
}

/// The frames that leave now.
fn leaving(lane: &Lane) -> Vec<String> {
    let batch = lane.take_batch(Millis(0)).unwrap_or_default();
    let (mut at, mut frames) = (0, Vec::new());
    while let Some((frame, used)) = next_frame(&batch[at..], 9_999).unwrap() {
        frames.push(format!("{:?}", Frame::decode(frame).unwrap()));
        at += used;
    }
    frames
}

fn too_large() -> CallError {
    CallError::TooLarge { max: 9, started: false }
}

#[test]
fn a_message_that_does_not_come_is_taken_back_behind_its_mark() {
    let (lane, transfers) = (lane(OutboxSettings::default()), Transfers::default());
    connect(&lane);
    let mark = Mark::set(&transfers, &lane, Millis::MAX, None).unwrap();
    assert_eq!(leaving(&lane), ["LargeHere { transfer: 1, call: None }"]);
    mark.take_back(&too_large());
    assert_eq!(leaving(&lane), ["LargeGone { transfer: 1 }"]);
    assert_eq!(lane.outbox().borrow().pending_calls(), 0);
}

#[test]
fn a_mark_that_has_not_left_never_does_once_its_message_is_given_up() {
    let (lane, transfers) = (lane(OutboxSettings::default()), Transfers::default());
    for asks in [false, true] {
        let ended = Rc::new(RefCell::new(None));
        let waiter = asks.then(|| Waiter::Other(Box::new(Caller(Rc::clone(&ended)))));
        let mark = Mark::set(&transfers, &lane, Millis(100), waiter).unwrap();
        mark.take_back(&too_large());
        assert_eq!(*ended.borrow(), asks.then(too_large));
    }
    connect(&lane);
    assert_eq!(leaving(&lane), [""; 0]);
}

#[test]
fn a_caller_whose_message_does_not_come_hears_why_and_the_other_side_waits_no_longer() {
    let (lane, transfers) = (lane(OutboxSettings::default()), Transfers::default());
    connect(&lane);
    let ended = Rc::new(RefCell::new(None));
    let waiter = Waiter::Other(Box::new(Caller(Rc::clone(&ended))));
    let mark = Mark::set(&transfers, &lane, Millis(100), Some(waiter)).unwrap();
    leaving(&lane);
    mark.take_back(&too_large());
    assert_eq!(*ended.borrow(), Some(too_large()));
    let said = leaving(&lane);
    assert!(said[0].starts_with("Cancel") && said[1] == "LargeGone { transfer: 1 }", "{said:?}");
}

#[test]
fn the_mark_of_a_tell_that_has_arrived_takes_no_place_any_more() {
    let (lane, transfers) = (lane(OutboxSettings::default()), Transfers::default());
    connect(&lane);
    let mark = Mark::set(&transfers, &lane, Millis::MAX, None).unwrap();
    leaving(&lane);
    assert!(mark.is_given() && !mark.is_over());
    mark.arrived();
    assert_eq!(lane.outbox().borrow().pending_calls(), 0);
    assert_eq!(leaving(&lane), [""; 0]);
}

#[test]
fn a_tell_whose_mark_was_thrown_out_is_over_at_once() {
    let settings = OutboxSettings { bytes: 200, overflow: Overflow::DropOldest, ..OutboxSettings::default() };
    let (lane, transfers) = (lane(settings), Transfers::default());
    let mark = Mark::set(&transfers, &lane, Millis::MAX, None).unwrap();
    assert!(!mark.is_over());
    for _ in 0..10 {
        let told = lane.tell::<Refused>(Millis(1), Millis(1), |out| {
            Frame::Envelope(&[0; 30]).encode(out);
            Ok(())
        });
        told.unwrap();
    }
    assert!(mark.is_over());
}

#[test]
fn only_so_many_messages_wait_for_their_turn() {
    let settings = OutboxSettings { calls: 1 << 16, ..OutboxSettings::default() };
    let (lane, transfers) = (lane(settings), Transfers::default());
    let mut marks: Vec<_> =
        (0..1_024).map(|_| Mark::set(&transfers, &lane, Millis::MAX, None).unwrap()).collect();
    let (ended, full) = (Rc::default(), CallError::Overloaded { queue: Queue::Lane, bound: 1_024 });
    let waiter = Waiter::Other(Box::new(Caller(Rc::clone(&ended))));
    assert_eq!(Mark::set(&transfers, &lane, Millis(9), Some(waiter)).err(), Some(full.clone()));
    assert_eq!(*ended.borrow(), Some(full));
    marks[7].has_turn();
    let next = Mark::set(&transfers, &lane, Millis::MAX, None);
    assert!(next.is_ok() && Mark::set(&transfers, &lane, Millis::MAX, None).is_err());
    drop((next, marks));
    assert_eq!(lane.large_room().waiting(), 0);
}

#[test]
fn a_lane_without_room_refuses_a_mark_with_its_bound_and_keeps_nothing_of_it() {
    let settings = OutboxSettings { bytes: 10, ..OutboxSettings::default() };
    let (lane, transfers) = (lane(settings), Transfers::default());
    let refused = Mark::set(&transfers, &lane, Millis::MAX, None).err();
    assert_eq!(refused, Some(CallError::Overloaded { queue: Queue::Lane, bound: 10 }));
    assert!(transfers.is_empty());
}
