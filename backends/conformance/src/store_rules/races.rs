//! Rules about many writers of one record.

use std::sync::Arc;

use archipelago_directory::{CasAnswer, Expect, Record, RecordId, Space, Store, Write};
use futures_util::future::join_all;

use super::{at, current, keys, owner, put, write};

/// Again and again, of many who want to create a record one does, and the record is what that one wrote.
///
/// Proves: R208, R212, R221
pub async fn every_creation_has_one_winner(store: Arc<dyn Store>) {
    for round in 0..15 {
        let id = owner(&format!("k{}", round % 3));
        let values: Vec<String> = (0..12).map(|n| format!("{round}-{n}")).collect();
        let writes = values.iter().map(|value| store.cas(&id, Expect::Absent, put("a", value), None));
        let mut winners = Vec::new();
        for (value, answer) in values.iter().zip(join_all(writes).await) {
            if let CasAnswer::Applied(version) = answer.expect("answers") {
                winners.push((value.clone(), version));
            }
        }
        let [(value, version)] = &winners[..] else { panic!("round {round}: {winners:?}") };
        let record = current(&*store, &id).await.expect("stands");
        assert_eq!((&record.value[..], record.version), (value.as_bytes(), *version));
        write(&*store, &id, record.expect(), Write::Delete).await;
    }
}

/// Two holders who want one key under different tags: one gets it, and the other's listing stays empty.
///
/// Proves: R220, R221
pub async fn two_tags_one_winner(store: Arc<dyn Store>) {
    for round in 0..15 {
        let id = owner(&format!("k{round}"));
        let tags = [format!("a{round}"), format!("b{round}")];
        let writes = tags.iter().map(|tag| store.cas(&id, Expect::Absent, put(tag, tag), None));
        let mut applied = Vec::new();
        for (tag, answer) in tags.iter().zip(join_all(writes).await) {
            match answer.expect("answers") {
                CasAnswer::Applied(_) => applied.push(tag),
                CasAnswer::Conflict(found) => {
                    assert_ne!(found.expect("the other stands").tag.as_ref(), Some(tag));
                }
                CasAnswer::GuardFailed => panic!("no guard was asked for"),
            }
        }
        let [winner] = applied[..] else { panic!("round {round}: {applied:?}") };
        assert_eq!(current(&*store, &id).await.expect("stands").tag.as_ref(), Some(winner));
        for tag in &tags {
            assert_eq!(keys(&*store, Some(tag)).await.len(), usize::from(tag == winner), "{tag} of {tags:?}");
        }
    }
}

/// Writers who all read, add one and write back lose no addition.
///
/// Proves: R212
pub async fn concurrent_additions_are_all_kept(store: Arc<dyn Store>) {
    let id = owner("counter");
    write(&*store, &id, Expect::Absent, put("a", "0")).await;
    join_all((0..4).map(|n| add(&*store, &id, n, 8))).await;
    assert_eq!(number(&current(&*store, &id).await.expect("stands")), 32);
}

/// Of a delete and a write over one version one is applied.
pub async fn a_delete_and_a_write_exclude_each_other(store: Arc<dyn Store>) {
    for round in 0..15 {
        let id = owner(&format!("k{round}"));
        let version = write(&*store, &id, Expect::Absent, put("a", "one")).await;
        let writes = [Write::Delete, put("b", "two"), Write::Delete, put("c", "three")];
        let answers = join_all(writes.map(|write| store.cas(&id, at(version, "a"), write, None))).await;
        let applied: Vec<usize> =
            (0..4).filter(|&n| matches!(&answers[n], Ok(CasAnswer::Applied(_)))).collect();
        let [winner] = applied[..] else { panic!("round {round}: {answers:?}") };
        let tag = current(&*store, &id).await.and_then(|record| record.tag);
        assert_eq!(tag.as_deref(), [None, Some("b"), None, Some("c")][winner], "round {round}");
    }
}

/// A record that moved from tag to tag is listed under its newest alone; and when that one is deleted, none of the older
/// comes back (H15).
///
/// Proves: R230
pub async fn listing_shows_no_former_owner(store: Arc<dyn Store>) {
    let id = owner("k");
    let first = write(&*store, &id, Expect::Absent, put("a", "1")).await;
    let second = write(&*store, &id, at(first, "a"), put("b", "2")).await;
    let third = write(&*store, &id, at(second, "b"), put("c", "3")).await;
    let listed =
        [keys(&*store, Some("a")).await, keys(&*store, Some("b")).await, keys(&*store, Some("c")).await];
    assert_eq!(listed.map(|keys| keys.len()), [0, 0, 1]);
    write(&*store, &id, at(third, "c"), Write::Delete).await;
    assert_eq!(current(&*store, &id).await, None);
    assert_eq!(keys(&*store, None).await, [""; 0]);
    for (version, tag) in [(first, "a"), (second, "b"), (third, "c")] {
        let late = store.cas(&id, at(version, tag), put("d", "late"), None).await.expect("answers");
        assert_eq!(late, CasAnswer::Conflict(None), "{tag}");
    }
    let fourth = write(&*store, &id, Expect::Absent, put("a", "4")).await;
    assert!(fourth > third);
    assert_eq!(keys(&*store, Some("a")).await, ["k"]);
}

/// The same key in different spaces is a different record.
pub async fn spaces_are_apart(store: Arc<dyn Store>) {
    for space in Space::ALL {
        write(&*store, &RecordId::new(space, "k"), Expect::Absent, put("a", space.as_str())).await;
    }
    let gone = current(&*store, &RecordId::new(Space::NODES, "k")).await.expect("stands");
    write(&*store, &gone.id, gone.expect(), Write::Delete).await;
    for space in Space::ALL {
        let record = current(&*store, &RecordId::new(space, "k")).await;
        let listed = store.list(space, Some("a")).await.expect("lists").records;
        assert_eq!(listed, record.clone().into_iter().collect::<Vec<_>>(), "{space}");
        let value = record.map(|record| record.value);
        assert_eq!(value.as_deref(), (space != Space::NODES).then_some(space.as_str().as_bytes()), "{space}");
    }
}

async fn add(store: &dyn Store, id: &RecordId, n: usize, times: u32) {
    for _ in 0..times {
        loop {
            let record = current(store, id).await.expect("stands");
            let sum = (number(&record) + 1).to_string();
            let answer = store.cas(id, record.expect(), put(&format!("t{n}"), &sum), None).await;
            if matches!(answer.expect("answers"), CasAnswer::Applied(_)) {
                break;
            }
        }
    }
}

fn number(record: &Record) -> u32 {
    std::str::from_utf8(&record.value).ok().and_then(|text| text.parse().ok()).expect("a number")
}
