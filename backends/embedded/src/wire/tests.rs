use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn random_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode::<Request<'_>>(&bytes);
        let _ = decode::<Answer<'_>>(&bytes);
        let versioned = [&[VERSION][..], &bytes].concat();
        let _ = decode::<Request<'_>>(&versioned).map(|request| match request.op {
            Op::Get(id) => drop(id.read()),
            Op::Cas(cas) => drop(cas.read()),
            _ => {}
        });
        if let Ok(answer) = decode::<Answer<'_>>(&versioned) {
            match answer.outcome {
                Outcome::Page { records, .. } => records.into_iter().for_each(|item| drop(item.read())),
                Outcome::Changes { changes, .. } => changes.into_iter().for_each(|event| drop(event.read())),
                _ => {}
            }
        }
    }

    #[test]
    fn a_damaged_message_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let message = encode(&sample());
        let mut damaged = message.to_vec();
        damaged[at.index(message.len())] = byte;
        let _ = decode::<Request<'_>>(&damaged);
        prop_assert!(decode::<Request<'_>>(&message[..cut.index(message.len())]).is_err());
    }

    #[test]
    fn a_compare_and_swap_arrives_as_it_was_sent(
        key in "[a-z/:]{0,40}", tag in prop::option::of("[0-9a-f]{0,16}"),
        value in prop::collection::vec(any::<u8>(), 0..200), version in prop::option::of(any::<u64>()),
        ttl in prop::option::of(any::<u64>()), delete in any::<bool>(), guarded in any::<bool>(),
    ) {
        let id = RecordId::new(Space::OWNERS, key);
        let expect = version.map_or(Expect::Absent, |v| Expect::At(Seen { version: Version(v), tag: None }));
        let put = Write::Put { tag: tag.clone(), value: value.into(), ttl: ttl.map(Millis) };
        let write = if delete { Write::Delete } else { put };
        let guard = guarded.then(|| Guard { id: RecordId::new(Space::NODES, "n"), tag });
        let op = Op::Cas(Cas::of(&id, &expect, &write, guard.as_ref()));
        let message = encode(&Request { instance: Some(1), op });
        let Op::Cas(cas) = decode::<Request<'_>>(&message).unwrap().op else { panic!("another request") };
        prop_assert_eq!(cas.read().unwrap(), (id, expect, write, guard));
    }

    #[test]
    fn sizes_are_never_too_small(
        key in "[a-z]{0,200}", tag in prop::option::of("[a-z]{0,200}"),
        value in prop::collection::vec(any::<u8>(), 0..300), n in any::<u64>(),
    ) {
        let id = RecordId::new(Space::LEASES, key);
        let record = Record { id: id.clone(), tag, value: value.into(), version: Version(n) };
        let length = |change: &Change| encode(&Event::of(change)).len() - 1;
        prop_assert!(encode(&Item::of(&record)).len() <= Item::size(&record));
        prop_assert!(encode(&(Id::of(&id), n)).len() <= id_size(&id));
        for change in [Change::Deleted { position: Position(n), id }, Change::Put { position: Position(n), record }] {
            prop_assert!(length(&change) <= Event::size(&change));
        }
    }
}

#[test]
fn the_longest_compare_and_swap_fits() {
    let long = "k".repeat(MAX_KEY);
    let id = RecordId::new(Space::OWNERS, long.clone());
    let value = Bytes::from(vec![7; MAX_VALUE]);
    let write = Write::Put { tag: Some(long.clone()), value, ttl: Some(Millis::MAX) };
    let guard = Guard { id: id.clone(), tag: Some(long) };
    let expect = Expect::At(Seen { version: Version(u64::MAX), tag: None });
    let op = Op::Cas(Cas::of(&id, &expect, &write, Some(&guard)));
    let message = encode(&Request { instance: Some(u64::MAX), op });
    let Op::Cas(cas) = decode::<Request<'_>>(&message).unwrap().op else { panic!("another request") };
    assert_eq!(cas.read().unwrap(), (id, expect, write, Some(guard)));
}

#[test]
fn what_is_too_long_or_unknown_is_refused() {
    let refused = |space: &'static str, key: &str| Id { space, key }.read().unwrap_err();
    assert_eq!(refused("own", &"k".repeat(MAX_KEY + 1)), WireError::BadText { problem: "longer than 1 KiB" });
    assert_eq!(refused("own", "a\nb"), WireError::BadText { problem: "a control character" });
    assert_eq!(refused("table", "k"), WireError::UnknownSpace { space: "table".into() });
    assert_eq!(value(&vec![0; MAX_VALUE + 1]), Err(WireError::BigValue { length: MAX_VALUE + 1 }));
    let message = vec![VERSION; MAX_MESSAGE + 1];
    assert_eq!(decode::<Request<'_>>(&message), Err(WireError::TooLong { length: MAX_MESSAGE + 1 }));
    assert_eq!(decode::<Request<'_>>(&[9, 0, 0]), Err(WireError::OtherVersion { theirs: 9 }));
    let trailing = [&encode(&sample())[..], &[0]].concat();
    assert_eq!(decode::<Request<'_>>(&trailing), Err(WireError::Undecodable));
}

/// What is on the wire does not change by accident.
#[test]
fn the_format_of_version_one() {
    assert_eq!(
        encode(&sample())[..],
        [1, 1, 7, 2, 3, b'o', b'w', b'n', 1, b'k', 1, 5, 1, 1, 1, b't', 2, b'h', b'i', 0, 0]
    );
    let answer = Answer { instance: 7, outcome: Outcome::Applied(300) };
    assert_eq!(encode(&answer)[..], [1, 7, 2, 0xac, 2]);
}

fn sample() -> Request<'static> {
    let id = Id { space: "own", key: "k" };
    let put = Put { tag: Some("t"), value: b"hi", ttl: None };
    Request { instance: Some(7), op: Op::Cas(Cas { id, expect: Some(5), put: Some(put), guard: None }) }
}
