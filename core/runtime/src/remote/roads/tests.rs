use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::message::CodecId;
use bytes::Bytes;

use super::*;
use crate::remote::MessageEnvelope;

fn address() -> NodeAddress {
    NodeAddress::new("elsewhere", 4_000).expect("a plain address is valid")
}

/// A letter to `path` that can be told from others by its number.
fn letter(path: &str, number: u64) -> Letter {
    let target = ActorPath::remote("default", address(), path).expect("a plain path is valid");
    let mut letter = Letter::of_envelope(MessageEnvelope {
        target,
        sender: None,
        type_hint: number.to_string(),
        codec: CodecId::POSTCARD,
        payload: Bytes::new(),
    });
    letter.expires = Millis(number * 10);
    letter
}

fn numbers(letters: impl IntoIterator<Item = Letter>) -> Vec<u64> {
    letters.into_iter().map(|letter| letter.expires.0 / 10).collect()
}

fn kept(turn: &Turn) -> Option<bool> {
    match turn {
        Turn::Kept { meet } => Some(*meet),
        _ => None,
    }
}

#[test]
fn the_first_letter_has_the_node_met_and_the_others_wait_behind_it() {
    let roads = Roads::default();
    assert_eq!(kept(&roads.take_on(&address(), letter("/a", 1), 9)), Some(true));
    assert_eq!(kept(&roads.take_on(&address(), letter("/b", 2), 9)), Some(false));
    assert!(roads.failed(&address(), "nobody answers".to_owned()), "letters wait: try again");
    assert_eq!(numbers(roads.take_all()), [1, 2]);
}

#[test]
fn what_comes_back_goes_before_what_waits() {
    let roads = Roads::default();
    roads.take_on(&address(), letter("/a", 3), 9);
    for number in [2, 1] {
        assert!(!roads.put_back(&address(), letter("/a", number)), "somebody looks already");
    }
    assert!(roads.was_lost(&address()), "whoever was there may have gone");
    assert_eq!(numbers(roads.take_all()), [1, 2, 3]);
}

#[test]
fn a_road_takes_no_more_than_its_bound() {
    let roads = Roads::default();
    roads.take_on(&address(), letter("/a", 1), 2);
    roads.take_on(&address(), letter("/a", 2), 2);
    assert!(matches!(roads.take_on(&address(), letter("/a", 3), 2), Turn::Full(_)));
    assert_eq!(roads.waiting(), 2);
}

#[test]
fn letters_whose_time_is_over_come_out_with_the_trouble_and_the_rest_stays() {
    let roads = Roads::default();
    for number in 1..=3 {
        roads.take_on(&address(), letter("/a", number), 9);
    }
    roads.failed(&address(), "nobody answers".to_owned());
    let ended = roads.take_ended(Millis(20));
    assert!(ended.iter().all(|(_, trouble)| trouble.as_deref() == Some("nobody answers")));
    assert_eq!(numbers(ended.into_iter().map(|(letter, _)| letter)), [1, 2]);
    assert_eq!(roads.waiting(), 1);
    roads.take_ended(Millis(30));
    assert!(!roads.failed(&address(), "still nobody".to_owned()), "nothing waits: leave it");
}

#[test]
fn only_letters_to_the_same_actor_wait_behind_a_large_one() {
    let roads = Roads::default();
    roads.take_on(&address(), letter("/other", 1), 9);
    let hash = letter("/large", 0).hash();
    roads.hold_up(&address(), hash, 7);
    roads.take_on(&address(), letter("/large", 2), 9);
    roads.take_on(&address(), letter("/other", 3), 9);
    assert!(roads.release(&address(), hash, 6).is_empty(), "another transfer has ended");
    assert_eq!(numbers(roads.release(&address(), hash, 7)), [2]);
    assert_eq!(numbers(roads.take_all()), [1, 3]);
}
