//! Requests and answers that get lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use archipelago_backend_conformance::Rng;
use archipelago_directory::{CasAnswer, Expect, Read, Space, Store, StoreError, Write};
use bytes::Bytes;

use crate::rig::{Fate, Rig, create, now, owner, put, read};

/// The first request of a client asks for the instance; afterwards fates hit the calls themselves.
fn met() -> Rig {
    let rig = Rig::new();
    assert_eq!(read(&*rig.remote, "nothing"), None);
    rig
}

#[test]
fn a_write_that_was_not_sent_is_unavailable_and_not_applied() {
    let rig = met();
    rig.courier.meets([Fate::NotSent]);
    let answer = now(rig.remote.cas(&owner("k"), Expect::Absent, put("a", "1"), None));
    assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    assert_eq!(read(&*rig.local, "k"), None);
}

#[test]
fn a_write_without_answer_is_unknown_whether_it_was_applied_or_not() {
    let rig = met();
    for (fate, applied) in [(Fate::AnswerLost, true), (Fate::RequestLost, false)] {
        let key = format!("{fate:?}");
        rig.courier.meets([fate]);
        let answer = now(rig.remote.cas(&owner(&key), Expect::Absent, put("a", "1"), None));
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        assert_eq!(read(&*rig.local, &key).is_some(), applied);
    }
}

#[test]
fn a_read_without_answer_is_unavailable() {
    let rig = met();
    for fate in [Fate::NotSent, Fate::AnswerLost, Fate::RequestLost] {
        rig.courier.meets([fate, fate]);
        let got = now(rig.remote.get(&owner("k"), Read::Any));
        assert!(matches!(got, Err(StoreError::Unavailable { .. })), "{fate:?}: {got:?}");
        let listed = now(rig.remote.list(Space::OWNERS, None));
        assert!(matches!(listed, Err(StoreError::Unavailable { .. })), "{fate:?}: {listed:?}");
    }
}

/// The write itself was never sent: it waits for the name of the instance.
#[test]
fn a_write_before_the_instance_is_known_is_unavailable() {
    for fate in [Fate::NotSent, Fate::AnswerLost, Fate::RequestLost] {
        let rig = Rig::new();
        rig.courier.meets([fate]);
        let answer = now(rig.remote.cas(&owner("k"), Expect::Absent, put("a", "1"), None));
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{fate:?}: {answer:?}");
        create(&*rig.remote, "k", put("a", "2"));
    }
}

/// Deletes of the first batch have happened, so the whole is not "certainly not applied" any more.
#[test]
fn a_batch_of_deletes_that_breaks_off_is_unknown() {
    let rig = met();
    let keys: Vec<String> = (0..2_000).map(|n| format!("{n:0>1000}")).collect();
    for key in &keys {
        create(&*rig.local, key, put("a", ""));
    }
    let listed = now(rig.local.list(Space::OWNERS, None)).unwrap().records;
    rig.courier.meets([Fate::Answered, Fate::NotSent]);
    let answer = now(rig.remote.delete_all(&listed));
    assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
    let left = now(rig.local.list(Space::OWNERS, None)).unwrap().records.len();
    assert!(left > 0 && left < 2_000, "{left}");
    assert_eq!(now(rig.remote.delete_all(&listed)).unwrap(), left);
}

/// Several writers append their tokens to one record over connections that lose everything: what was answered as
/// applied stands exactly once, what was refused never does.
#[test]
fn nothing_is_applied_twice_and_nothing_answered_is_lost() {
    for seed in 0..30 {
        let (rig, mut rng) = (met(), Rng::new(seed));
        let clients: Vec<_> = (0..3).map(|_| Rig::client(&rig.courier, &rig.clock)).collect();
        clients.iter().for_each(|client| drop(read(client, "k")));
        let (mut applied, mut maybe) = (Vec::new(), BTreeSet::new());
        for token in 0..200_u64 {
            let client: &dyn Store = &clients[rng.index(3)];
            let fate = [Fate::Answered, Fate::NotSent, Fate::AnswerLost, Fate::RequestLost][rng.index(4)];
            let seen = read(&*rig.local, "k");
            // Sometimes the write finds something newer than it expects.
            if rng.chance(200) {
                append(&*rig.local, u64::MAX - token);
                applied.push(u64::MAX - token);
            }
            rig.courier.meets([fate]);
            let expect = seen.as_ref().map_or(Expect::Absent, |record| record.expect());
            match now(client.cas(&owner("k"), expect, with(seen.as_ref(), token), None)) {
                Ok(CasAnswer::Applied(_)) => applied.push(token),
                Ok(_) | Err(StoreError::Unavailable { .. }) => {}
                Err(StoreError::Unknown { .. }) => drop(maybe.insert(token)),
                Err(other) => panic!("{other:?}"),
            }
        }
        let stands = tokens(&read(&*rig.local, "k").unwrap().value);
        let distinct: BTreeSet<u64> = stands.iter().copied().collect();
        assert_eq!(stands.len(), distinct.len(), "seed {seed}: applied twice");
        assert!(applied.iter().all(|token| distinct.contains(token)), "seed {seed}: lost");
        let certain = |token: &&u64| !maybe.contains(*token);
        assert_eq!(
            distinct.iter().filter(certain).count(),
            applied.len(),
            "seed {seed}: refused but applied"
        );
        assert!(maybe.iter().any(|token| distinct.contains(token)), "no answer was lost");
        assert!(maybe.iter().any(|token| !distinct.contains(token)), "no request was lost");
    }
}

fn append(store: &dyn Store, token: u64) {
    let seen = read(store, "k");
    let expect = seen.as_ref().map_or(Expect::Absent, |record| record.expect());
    now(store.cas(&owner("k"), expect, with(seen.as_ref(), token), None)).unwrap();
}

fn with(seen: Option<&archipelago_directory::Record>, token: u64) -> Write {
    let mut value = seen.map(|record| record.value.to_vec()).unwrap_or_default();
    value.extend(token.to_le_bytes());
    Write::Put { tag: None, value: Bytes::from(value), ttl: None }
}

fn tokens(value: &[u8]) -> Vec<u64> {
    value.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// Dropped at any point, a call leaves nothing behind that stops the next.
#[test]
fn a_dropped_call_leaves_the_client_usable() {
    let rig = Rig::new();
    drop(rig.remote.cas(&owner("k"), Expect::Absent, put("a", "1"), None));
    create(&*rig.remote, "k", put("a", "2"));
    let remote: Arc<dyn Store> = rig.remote;
    assert_eq!(read(&*remote, "k").unwrap().value, "2");
}
