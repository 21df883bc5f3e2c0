use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::super::frame::arbitrary::head;
use super::super::{Asked, FramePart, Head, Told, next_frame};
use super::waiting::NOTE;
use super::*;

/// Frames of 10 bytes, 14 with their length: a reply says nothing of interest here.
fn body(byte: u8) -> impl Fn(&mut BytesMut) -> Result<(), Refused> {
    move |out| {
        out.extend_from_slice(&[12, byte, 0, 0, 0, 0, 0, 0, 0, 0]);
        Ok(())
    }
}

fn ask(outbox: &mut Outbox<char>, deadline: u64, waiter: char) -> Result<CorrelationId, (char, Refused)> {
    outbox.ask(Millis(deadline), waiter, |out, _| body(waiter as u8)(out))
}

fn tell(outbox: &mut Outbox<char>, now: u64, name: char) -> Result<Dropped<char>, Refused> {
    outbox.tell(Millis(now), body(name as u8))
}

fn outbox(bytes: usize, calls: usize, overflow: Overflow) -> Outbox<char> {
    let mut outbox = down(bytes, calls, overflow);
    outbox.opened(Millis(0));
    outbox
}

fn down(bytes: usize, calls: usize, overflow: Overflow) -> Outbox<char> {
    let (frame, tell_ttl, waiting) = (64, Millis(50), 2);
    Outbox::new(3, OutboxSettings { bytes, calls, waiting, frame, tell_ttl, overflow })
}

/// The names of the frames that go out; `-` is a void one, `!` a cancel.
fn batch(outbox: &mut Outbox<char>) -> Vec<char> {
    let (batch, mut from, mut names) = (outbox.take(Millis(0)).unwrap_or_default(), 0, vec![]);
    while let Some((frame, next)) = next_frame(&batch[from..], 64).unwrap() {
        names.push(match Frame::decode(frame).unwrap() {
            Frame::Envelope(bytes) => char::from(bytes[0]),
            Frame::Void => '-',
            Frame::Cancel { .. } => '!',
            other => panic!("{other:?} was never written"),
        });
        from += next;
    }
    names
}

fn overloaded<T>(of: LaneBound, bound: usize) -> Result<T, Refused> {
    Err(Refused::Overloaded { of, bound })
}

/// Proves: R84, R85, R92, R95
#[test]
fn a_call_is_pending_before_its_frame_can_leave_and_until_its_reply_has_come() {
    let mut outbox = outbox(100, 4, Overflow::Fail);
    let id = ask(&mut outbox, 10, 'a').unwrap();
    assert!(outbox.is_pending(id));
    assert_eq!(batch(&mut outbox), ['a']);
    assert_eq!(outbox.end(id), Some('a'));
    assert!(!outbox.is_pending(id));
    assert_eq!(outbox.end(id), None, "a second reply is late");
}

#[test]
fn a_reply_to_a_call_that_was_never_given_is_ignored() {
    let mut outbox = outbox(100, 4, Overflow::Fail);
    let id = ask(&mut outbox, 10, 'a').unwrap();
    assert_eq!(outbox.end(id), None);
    assert_eq!(batch(&mut outbox), ['a']);
    assert_eq!(outbox.end(id), Some('a'));
}

/// Proves: R85, R88
#[test]
fn a_late_reply_cannot_end_the_call_that_took_its_slot() {
    let mut outbox = outbox(100, 1, Overflow::Fail);
    let old = ask(&mut outbox, 10, 'a').unwrap();
    batch(&mut outbox);
    assert_eq!(outbox.sweep(Millis(10)).calls, [EndedCall { id: old, waiter: 'a', given: true }]);
    let new = ask(&mut outbox, 20, 'b').unwrap();
    batch(&mut outbox);
    assert_eq!((old.slot(), old.turn() + 1), (new.slot(), new.turn()));
    assert_eq!(outbox.end(old), None);
    assert_eq!(outbox.end(CorrelationId::new(4, new.slot(), new.turn())), None, "another lane's");
    assert_eq!(outbox.end(new), Some('b'));
}

/// Proves: R86, R97
#[test]
fn a_call_that_expires_unsent_never_goes_out() {
    let mut outbox = outbox(100, 4, Overflow::Fail);
    let id = ask(&mut outbox, 10, 'a').unwrap();
    ask(&mut outbox, 30, 'b').unwrap();
    assert_eq!(outbox.next_sweep(), Some(Millis(10)));
    assert!(outbox.sweep(Millis(9)).calls.is_empty());
    assert_eq!(outbox.sweep(Millis(10)).calls, [EndedCall { id, waiter: 'a', given: false }]);
    assert_eq!(outbox.next_sweep(), Some(Millis(30)));
    assert_eq!(batch(&mut outbox), ['-', 'b']);
}

#[test]
fn a_caller_that_goes_takes_its_frame_back_or_sends_a_cancel_after_it() {
    let mut outbox = outbox(100, 4, Overflow::Fail);
    let given = ask(&mut outbox, 10, 'a').unwrap();
    batch(&mut outbox);
    let unsent = ask(&mut outbox, 10, 'b').unwrap();
    assert_eq!(outbox.cancel(given), Some('a'));
    assert_eq!(outbox.cancel(unsent), Some('b'));
    assert_eq!(outbox.cancel(unsent), None);
    assert_eq!(batch(&mut outbox), ['-', '!']);
}

#[test]
fn a_batch_of_nothing_but_void_frames_is_not_sent() {
    let mut outbox = outbox(100, 4, Overflow::Fail);
    let id = ask(&mut outbox, 10, 'a').unwrap();
    outbox.cancel(id);
    assert!(outbox.is_empty());
    assert_eq!(outbox.take(Millis(0)), None);
}

/// Proves: R121
#[test]
fn what_was_not_given_waits_for_the_next_connection_in_order() {
    let mut outbox = outbox(200, 9, Overflow::Fail);
    ask(&mut outbox, 10, 'a').unwrap();
    batch(&mut outbox);
    ask(&mut outbox, 10, 'b').unwrap();
    outbox.answer(body(b'r')).unwrap();
    tell(&mut outbox, 0, 'c').unwrap();
    assert_eq!(outbox.lost(Millis(1)), ['a'], "given: nobody knows what became of it");
    outbox.answer(body(b's')).unwrap();
    ask(&mut outbox, 10, 'd').unwrap();
    assert_eq!(outbox.take(Millis(0)), None, "there is nobody to give it to");
    outbox.opened(Millis(2));
    outbox.answer(body(b't')).unwrap();
    assert_eq!(batch(&mut outbox), ['b', 'c', 'd', 't'], "answers belong to their connection");
}

/// Proves: R121
#[test]
fn tells_come_back_when_no_connection_comes_in_time() {
    let mut outbox = outbox(100, 9, Overflow::Fail);
    tell(&mut outbox, 0, 'a').unwrap();
    assert_eq!(outbox.next_sweep(), None, "nothing ends by time while the lane is up");
    outbox.lost(Millis(30));
    tell(&mut outbox, 70, 'b').unwrap();
    assert_eq!(outbox.next_sweep(), Some(Millis(80)), "50 ms after the loss");
    assert!(outbox.sweep(Millis(79)).tells.is_empty());
    assert_eq!(outbox.sweep(Millis(80)).tells, [&b"\x0ca\0\0\0\0\0\0\0\0"[..]]);
    assert_eq!(outbox.next_sweep(), Some(Millis(120)));
    outbox.opened(Millis(200));
    assert!(outbox.sweep(Millis(200)).tells.is_empty(), "a connection came first");
    assert_eq!(batch(&mut outbox), ['-', 'b']);
}

#[test]
fn a_second_loss_does_not_make_tells_wait_longer() {
    let mut outbox = outbox(100, 9, Overflow::Fail);
    tell(&mut outbox, 0, 'a').unwrap();
    outbox.lost(Millis(10));
    outbox.lost(Millis(40));
    assert_eq!(outbox.sweep(Millis(60)).tells.len(), 1);
}

/// Proves: R124, R433
#[test]
fn a_full_lane_refuses_and_says_which_bound_it_was() {
    let mut outbox = outbox(28 + 2 * NOTE, 1, Overflow::Fail);
    ask(&mut outbox, 10, 'a').unwrap();
    assert_eq!(ask(&mut outbox, 10, 'b').map_err(|(_, refused)| refused), overloaded(LaneBound::Calls, 1));
    tell(&mut outbox, 0, 'c').unwrap();
    assert_eq!(tell(&mut outbox, 0, 'd'), overloaded(LaneBound::Bytes, 28 + 2 * NOTE));
    assert_eq!(outbox.answer(body(b'r')), Ok(()), "answers are outside the bound");
    assert_eq!((outbox.waiting_bytes(), outbox.answer_bytes()), (28, 14));
    assert_eq!(batch(&mut outbox), ['a', 'c', 'r']);
    assert_eq!((outbox.waiting_bytes(), outbox.answer_bytes()), (0, 0));
}

/// Proves: R123, R124, R433
#[test]
fn an_ask_that_finds_no_room_waits_for_it_and_no_tell_overtakes_it() {
    let mut outbox = outbox(2 * (14 + NOTE), 9, Overflow::Wait);
    tell(&mut outbox, 0, 'a').unwrap();
    ask(&mut outbox, 10, 'b').unwrap();
    let full = overloaded(LaneBound::Bytes, 2 * (14 + NOTE));
    assert_eq!(tell(&mut outbox, 0, 'c'), full, "a tell does not wait");
    let first = ask(&mut outbox, 10, 'd').unwrap();
    let second = ask(&mut outbox, 10, 'e').unwrap();
    assert_eq!(outbox.asks_in_line(), 2);
    let too_many = overloaded(LaneBound::Waiting, 2);
    assert_eq!(ask(&mut outbox, 10, 'f').map_err(|(_, refused)| refused), too_many);
    assert_eq!(batch(&mut outbox), ['a', 'b']);
    assert!(!outbox.is_given(first), "the batch was full");
    assert_eq!(tell(&mut outbox, 0, 'c'), full, "there is room, but asks wait for it");
    assert_eq!(outbox.cancel(first), Some('d'));
    assert_eq!(batch(&mut outbox), ['e']);
    assert!(outbox.is_given(second));
    tell(&mut outbox, 0, 'c').unwrap();
}

/// Proves: R124, R433
#[test]
fn an_ask_beyond_the_bound_of_calls_waits_until_another_has_its_answer() {
    let mut outbox = outbox(900, 4, Overflow::Wait);
    let first = ask(&mut outbox, 10, 'a').unwrap();
    ask(&mut outbox, 10, 'b').unwrap();
    let third = ask(&mut outbox, 10, 'c').unwrap();
    ask(&mut outbox, 10, 'd').unwrap();
    assert_eq!(outbox.asks_in_line(), 2, "of four calls two may wait");
    assert_eq!(tell(&mut outbox, 0, 't'), overloaded(LaneBound::Calls, 4));
    let full = overloaded(LaneBound::Calls, 4);
    assert_eq!(ask(&mut outbox, 10, 'e').map_err(|(_, refused)| refused), full);
    assert_eq!(batch(&mut outbox), ['a', 'b']);
    assert_eq!(batch(&mut outbox), [' '; 0], "nobody has an answer yet");
    assert_eq!(outbox.end(first), Some('a'));
    assert_eq!(batch(&mut outbox), ['c']);
    assert!(outbox.is_given(third));
}

#[test]
fn an_ask_that_waits_for_room_ends_at_its_deadline_without_having_left() {
    let mut outbox = outbox(14 + NOTE, 9, Overflow::Wait);
    tell(&mut outbox, 0, 'a').unwrap();
    let id = ask(&mut outbox, 10, 'b').unwrap();
    assert_eq!(outbox.next_sweep(), Some(Millis(10)));
    assert_eq!(outbox.sweep(Millis(10)).calls, [EndedCall { id, waiter: 'b', given: false }]);
    assert_eq!((outbox.asks_in_line(), outbox.waiting_bytes()), (0, 14));
    assert_eq!(batch(&mut outbox), ['a']);
    assert_eq!(batch(&mut outbox), [' '; 0]);
}

#[test]
fn the_line_has_passed_when_those_have_left_it_who_stood_there_then() {
    let mut outbox = outbox(2 * (14 + NOTE), 9, Overflow::Wait);
    tell(&mut outbox, 0, 'a').unwrap();
    tell(&mut outbox, 0, 'b').unwrap();
    assert!(outbox.is_past(outbox.end_of_line()), "nobody waits");
    let first = ask(&mut outbox, 10, 'c').unwrap();
    let end = outbox.end_of_line();
    ask(&mut outbox, 10, 'd').unwrap();
    assert_eq!(batch(&mut outbox), ['a', 'b']);
    assert!(!outbox.is_past(end));
    outbox.cancel(first);
    assert!(outbox.is_past(end), "whoever came later does not count");
    assert!(!outbox.is_past(outbox.end_of_line()));
    assert_eq!(batch(&mut outbox), ['d']);
}

#[test]
fn an_ask_that_is_too_long_for_an_empty_lane_does_not_wait() {
    let mut outbox = outbox(13 + NOTE, 9, Overflow::Wait);
    let refused = ask(&mut outbox, 10, 'a').map_err(|(_, refused)| refused);
    assert_eq!(refused, overloaded(LaneBound::Bytes, 13 + NOTE));
}

/// Proves: R123, R433
#[test]
fn what_the_transport_has_not_taken_yet_counts_against_the_bound() {
    let mut outbox = outbox(3 * (14 + NOTE), 9, Overflow::Fail);
    (0..3).for_each(|_| drop(tell(&mut outbox, 0, 'a').unwrap()));
    assert_eq!(batch(&mut outbox).len(), 3);
    tell(&mut outbox, 0, 'b').unwrap();
    assert_eq!(tell(&mut outbox, 0, 'c'), overloaded(LaneBound::Bytes, 3 * (14 + NOTE)));
    assert_eq!(batch(&mut outbox), ['b']);
    tell(&mut outbox, 0, 'c').unwrap();
    tell(&mut outbox, 0, 'd').unwrap();
    assert!(tell(&mut outbox, 0, 'e').is_err());
    outbox.lost(Millis(1));
    tell(&mut outbox, 1, 'e').unwrap();
}

/// Proves: R124, R433
#[test]
fn a_full_lane_throws_out_the_oldest() {
    let mut outbox = outbox(2 * (28 + 2 * NOTE), 9, Overflow::DropOldest);
    let oldest = ask(&mut outbox, 10, 'a').unwrap();
    tell(&mut outbox, 0, 'b').unwrap();
    let ended = EndedCall { id: oldest, waiter: 'a', given: false };
    assert_eq!(tell(&mut outbox, 0, 'c'), Ok(Dropped { calls: vec![ended], tells: vec![] }));
    ask(&mut outbox, 10, 'd').unwrap();
    assert_eq!(outbox.next_sweep(), Some(Millis::ZERO), "somebody should hear of it");
    assert_eq!(outbox.dropped().tells, [&b"\x0cb\0\0\0\0\0\0\0\0"[..]]);
    assert_eq!(batch(&mut outbox), ['-', '-', 'c', 'd']);
}

/// Proves: R123, R124, R433
#[test]
fn what_the_transport_has_and_what_is_thrown_out_stay_below_the_bound_together() {
    const BOUND: usize = 64 << 10;
    let mut outbox = outbox(BOUND, 9, Overflow::DropOldest);
    let fill = |outbox: &mut Outbox<char>| {
        for n in 0..10_000 {
            tell(outbox, n, 'x').unwrap();
            let void = outbox.waiting.buffer().len() - outbox.waiting_bytes();
            assert!(outbox.held() <= BOUND && void <= BOUND / 8, "{} and {void} void", outbox.held());
        }
    };
    fill(&mut outbox);
    let taken = outbox.take(Millis(0)).unwrap().len();
    // The transport stands still.
    fill(&mut outbox);
    assert!(taken + outbox.waiting.buffer().len() <= BOUND);
    assert!(taken > BOUND / 8, "but half of the bound is used");
}

#[test]
fn with_too_many_calls_the_oldest_ask_goes_and_not_the_tell_before_it() {
    let mut outbox = outbox(200, 2, Overflow::DropOldest);
    let given = ask(&mut outbox, 10, 'a').unwrap();
    batch(&mut outbox);
    tell(&mut outbox, 0, 'b').unwrap();
    let unsent = ask(&mut outbox, 10, 'c').unwrap();
    let new = ask(&mut outbox, 10, 'd').unwrap();
    assert_eq!(new, unsent.next_turn());
    assert_eq!(outbox.dropped().calls, [EndedCall { id: unsent, waiter: 'c', given: false }]);
    assert_eq!(batch(&mut outbox), ['b', '-', 'd']);
    let refused = ask(&mut outbox, 10, 'e').unwrap_err();
    let full = Refused::Overloaded { of: LaneBound::Calls, bound: 2 };
    assert_eq!(refused, ('e', full), "all calls are given: none can go");
    assert!(outbox.is_pending(given) && outbox.is_pending(new));
}

#[test]
fn a_frame_that_no_throwing_out_can_make_room_for_throws_out_nothing() {
    let mut outbox = outbox(2 * (20 + NOTE), 9, Overflow::DropOldest);
    tell(&mut outbox, 0, 'a').unwrap();
    let long = |out: &mut BytesMut| {
        out.extend_from_slice(&[12; 17]);
        Ok::<_, Refused>(())
    };
    assert_eq!(outbox.tell(Millis(0), long), overloaded(LaneBound::Bytes, 2 * (20 + NOTE)));
    assert_eq!(batch(&mut outbox), ['a']);
}

#[test]
fn only_real_frames_are_taken() {
    let mut outbox = outbox(100, 9, Overflow::Fail);
    let before = outbox.clone();
    let refused = |part| Err(Refused::Frame(FrameError::Malformed { part }));
    let void = |out: &mut BytesMut| {
        Frame::Void.encode(out);
        Ok::<_, Refused>(())
    };
    assert_eq!(outbox.tell(Millis(0), void), refused(FramePart::Frame));
    assert!(outbox.tell(Millis(0), |_| Ok::<_, Refused>(())).is_err());
    let long = |out: &mut BytesMut| {
        out.extend_from_slice(&[12; 65]);
        Ok::<_, Refused>(())
    };
    let too_large = FrameError::TooLarge { part: FramePart::Frame, len: 65, max: 64 };
    assert_eq!(outbox.answer(long), Err(too_large.into()));
    assert_eq!(outbox, before);
}

#[test]
fn a_peer_that_is_gone_leaves_what_can_be_sent_elsewhere_in_order() {
    let mut outbox = outbox(200, 9, Overflow::Fail);
    ask(&mut outbox, 10, 'a').unwrap();
    batch(&mut outbox);
    tell(&mut outbox, 5, 'b').unwrap();
    outbox.answer(body(b'r')).unwrap();
    let gone = ask(&mut outbox, 10, 'c').unwrap();
    let id = ask(&mut outbox, 12, 'd').unwrap();
    outbox.cancel(gone);
    let frame = |name: u8| Bytes::copy_from_slice(&[12, name, 0, 0, 0, 0, 0, 0, 0, 0]);
    let tell = Unsent::Tell { told: Millis(5), frame: frame(b'b') };
    let ask = Unsent::Ask { id, waiter: 'd', deadline: Millis(12), frame: frame(b'd') };
    let drained = outbox.drain(Millis(6));
    assert_eq!((drained.given, drained.unsent), (vec!['a'], vec![tell, ask]));
    assert_eq!((outbox.pending_calls(), outbox.is_empty(), outbox.is_up()), (0, true, false));
}

#[test]
fn frames_taken_back_do_not_fill_the_memory_while_the_lane_is_down() {
    let mut outbox = down(1_000, 9, Overflow::Fail);
    ask(&mut outbox, 10, 'a').unwrap();
    for _ in 0..10_000 {
        let id = ask(&mut outbox, 10, 'x').unwrap();
        assert_eq!(outbox.cancel(id), Some('x'));
    }
    assert!(outbox.waiting.buffer().len() < 10_000);
    outbox.opened(Millis(0));
    assert_eq!(batch(&mut outbox)[0], 'a');
}

#[test]
fn the_buffer_is_used_again_once_a_batch_was_written() {
    let mut outbox = outbox(1 << 20, 9, Overflow::Fail);
    let mut places = Vec::new();
    for round in 0..1_000 {
        (0..10).for_each(|_| drop(tell(&mut outbox, round, 'x').unwrap()));
        places.push(outbox.take(Millis(0)).unwrap().as_ptr() as usize);
    }
    places.sort_unstable();
    let spread = places[places.len() - 1] - places[0];
    assert!(spread < 1 << 20, "a batch of 140 bytes takes no new memory each time: {spread}");
}

/// Proves: R123
#[test]
fn the_defaults_are_bounded() {
    let settings = OutboxSettings::default();
    assert_eq!((settings.bytes, settings.calls, settings.frame), (8_388_608, 65_536, 1_048_576));
    assert_eq!((settings.tell_ttl, settings.overflow), (Millis(5_000), Overflow::Fail));
}

#[test]
fn what_the_transport_did_not_take_for_a_while_leaves_with_the_time_it_has_left() {
    let mut outbox = Outbox::new(0, OutboxSettings::default());
    let service = |outbox: &mut Outbox<()>| {
        let write = |out: &mut BytesMut, call| {
            Frame::Service { call, ttl: Millis(1_000), service: 1, payload: b"" }.encode(out);
            Ok::<_, Refused>(())
        };
        outbox.ask(Millis(2_000), (), write).unwrap();
    };
    let left = |batch: &Bytes| match Frame::decode(next_frame(batch, 4_096).unwrap().unwrap().0) {
        Ok(Frame::Service { ttl, .. }) => ttl,
        other => panic!("{other:?}"),
    };
    outbox.opened(Millis(1_000));
    service(&mut outbox);
    assert_eq!(left(&outbox.take(Millis(1_050)).unwrap()), Millis(1_000), "not worth the work yet");
    service(&mut outbox);
    assert_eq!(left(&outbox.take(Millis(1_700)).unwrap()), Millis(300));
}

proptest! {
    #[test]
    fn only_the_time_to_live_changes_when_a_connection_opens(
        head in head(),
        told in 0_u64..100,
        first in 0_u64..100,
        second in 0_u64..100,
    ) {
        let mut outbox = Outbox::new(0, OutboxSettings::default());
        let mut head = head.borrow();
        let deadline = Millis(told + 150);
        outbox.tell::<Refused>(Millis(told), |out| {
            Told { head: head.clone(), payload: b"payload" }.encode(out);
            Ok(())
        }).unwrap();
        let id = outbox.ask::<Refused>(deadline, (), |out, call| {
            Asked { call, head: Head { ttl: Some(Millis(150)), ..head.clone() }, payload: b"payload" }.encode(out);
            Ok(())
        }).unwrap();
        let (first, second) = (told + first, told + first + second);
        outbox.opened(Millis(first));
        outbox.lost(Millis(first));
        outbox.opened(Millis(second));
        let batch = outbox.take(Millis(0)).unwrap();
        head.ttl = head.ttl.map(|ttl| ttl - Millis(second - told));
        let (tell, next) = next_frame(&batch, 4_096).unwrap().unwrap();
        prop_assert_eq!(Frame::decode(tell), Ok(Frame::Tell(Told { head: head.clone(), payload: b"payload" })));
        head.ttl = Some(deadline - Millis(second));
        let (ask, _) = next_frame(&batch[next..], 4_096).unwrap().unwrap();
        prop_assert_eq!(Frame::decode(ask), Ok(Frame::Ask(Asked { call: id, head, payload: b"payload" })));
    }
}
