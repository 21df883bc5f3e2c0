//! Listings of more than one page.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use archipelago_backend_conformance::Rng;
use archipelago_directory::{Expect, Record, Space, Store, StoreError, Write};
use archipelago_embedded::{CarryError, Courier, EmbeddedConfig, EmbeddedStore, MAX_VALUE, ServedStore};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::rig::{Direct, Rig, create, now, owner};

fn big(tag: &str, length: usize) -> Write {
    Write::Put { tag: Some(tag.into()), value: Bytes::from(vec![b'v'; length]), ttl: None }
}

fn fill(store: &dyn Store, count: usize) {
    for n in 0..count {
        create(store, &format!("key {n:05}"), big(if n % 3 == 0 { "a" } else { "b" }, 600));
    }
}

#[test]
fn thousands_of_records_come_page_by_page() {
    let rig = Rig::new();
    fill(&*rig.local, 6_000);
    for tag in [None, Some("a"), Some("b"), Some("nobody")] {
        let before = *rig.courier.carried.lock().unwrap();
        let listed = now(rig.remote.list(Space::OWNERS, tag)).unwrap();
        assert_eq!(listed, now(rig.local.list(Space::OWNERS, tag)).unwrap());
        let requests = *rig.courier.carried.lock().unwrap() - before;
        assert_eq!(requests > 1, tag != Some("nobody"), "{tag:?}: {requests}");
    }
    let all = now(rig.remote.list(Space::OWNERS, None)).unwrap().records;
    assert_eq!(now(rig.remote.delete_all(&all)).unwrap(), 6_000);
    assert_eq!(now(rig.remote.list(Space::OWNERS, None)).unwrap().records, []);
}

/// Writes at random between any two requests: the listing is what stood at its position, neither older nor newer.
#[test]
fn a_listing_shows_one_point_in_history() {
    for seed in 0..8 {
        let rig = Rig::new();
        fill(&*rig.local, 4_000);
        let restless = Restless::new(&rig, seed);
        let remote = ServedStore::new(restless.clone(), Arc::new(rig.clock.clone()));
        for tag in [None, Some("a")] {
            let listed = now(remote.list(Space::OWNERS, tag)).unwrap();
            let moment = restless.history.lock().unwrap();
            let (position, stood) = moment
                .iter()
                .find(|(position, _)| *position == listed.position.0)
                .expect("a moment there was");
            let matching = stood.iter().filter(|r| tag.is_none() || r.tag.as_deref() == tag);
            let expected: Vec<Record> = matching.cloned().collect();
            assert!(listed.records == expected, "seed {seed}, {tag:?}, position {position}");
            assert!(moment.len() > 3, "it took several pages");
        }
    }
}

#[test]
fn a_listing_that_the_history_cannot_follow_is_given_up() {
    let rig = Rig::with(EmbeddedConfig { history: NonZeroUsize::new(2).unwrap() }, Millis::ZERO);
    fill(&*rig.local, 4_000);
    let remote = ServedStore::new(Restless::new(&rig, 1), Arc::new(rig.clock.clone()));
    let listed = now(remote.list(Space::OWNERS, None));
    assert!(matches!(listed, Err(StoreError::Unavailable { .. })));
}

#[test]
fn values_of_any_length_up_to_the_limit_are_carried() {
    let rig = Rig::new();
    for (key, length) in [("a", MAX_VALUE), ("b", 0), ("c", MAX_VALUE), ("d", MAX_VALUE / 2)] {
        create(&*rig.remote, key, big("t", length));
    }
    assert_eq!(now(rig.remote.list(Space::OWNERS, None)).unwrap().records.len(), 4);
    for length in [MAX_VALUE + 1, 3 << 20] {
        let refused = now(rig.remote.cas(&owner("e"), Expect::Absent, big("t", length), None));
        assert!(matches!(refused, Err(StoreError::Fatal { .. })));
    }
}

/// What a node of the serving process may write but nobody can carry.
#[test]
fn a_record_too_large_for_a_message_is_fatal_to_its_readers_only() {
    let rig = Rig::new();
    create(&*rig.local, "huge", big("t", 2 << 20));
    create(&*rig.local, "small", big("u", 10));
    let get = now(rig.remote.get(&owner("huge"), archipelago_directory::Read::Any));
    assert!(matches!(get, Err(StoreError::Fatal { .. })));
    let cas = now(rig.remote.cas(&owner("huge"), Expect::Absent, big("t", 1), None));
    assert!(matches!(cas, Err(StoreError::Fatal { .. })), "a conflict that cannot be shown");
    assert!(matches!(now(rig.remote.list(Space::OWNERS, None)), Err(StoreError::Fatal { .. })));
    assert_eq!(now(rig.remote.list(Space::OWNERS, Some("u"))).unwrap().records.len(), 1);
}

/// Writes a little before each request, and notes what stood at each position.
struct Restless {
    inner: Arc<Direct>,
    store: Arc<EmbeddedStore>,
    rng: Mutex<Rng>,
    history: Mutex<Vec<(u64, Vec<Record>)>>,
}

impl Restless {
    fn new(rig: &Rig, seed: u64) -> Arc<Self> {
        let (inner, store) = (Arc::clone(&rig.courier), Arc::clone(&rig.local));
        Arc::new(Self { inner, store, rng: Mutex::new(Rng::new(seed)), history: Mutex::default() })
    }

    fn write(&self) {
        let mut rng = self.rng.lock().unwrap();
        for _ in 0..rng.below(6) + 3 {
            let key = format!("key {:05}", rng.below(4_100));
            let expect = crate::rig::read(&*self.store, &key).map_or(Expect::Absent, |r| r.expect());
            let delete = rng.chance(300) && expect != Expect::Absent;
            let tag = if rng.chance(500) { "a" } else { "b" };
            let write = if delete { Write::Delete } else { big(tag, 610) };
            now(self.store.cas(&owner(&key), expect, write, None)).unwrap();
        }
        let now = now(self.store.list(Space::OWNERS, None)).unwrap();
        self.history.lock().unwrap().push((now.position.0, now.records));
    }
}

impl Courier for Restless {
    fn carry(&self, request: Bytes, timeout: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
        self.write();
        self.inner.carry(request, timeout)
    }
}
