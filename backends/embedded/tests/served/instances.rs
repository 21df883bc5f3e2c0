//! A server that starts anew has forgotten everything, and its clients must know (H14).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipelago_directory::{Expect, Position, Read, Space, Store, StoreError, Timer};
use archipelago_embedded::{EmbeddedConfig, EmbeddedStore, StoreServer};
use archipelago_protocol::time::Millis;
use futures_util::{FutureExt, StreamExt};

use crate::rig::{BASE, Fate, Rig, create, now, owner, put, read};

fn counted(rig: &Rig) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&count);
    rig.remote.on_new_instance(Box::new(move || {
        told.fetch_add(1, Ordering::SeqCst);
    }));
    count
}

fn is_told_of_the_new_instance<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    match answer {
        Err(StoreError::Fatal { source }) => assert!(source.to_string().contains("anew"), "{source}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_meets_a_new_instance_is_told_once_and_ends() {
    let mut rig = Rig::new();
    let told = counted(&rig);
    create(&*rig.remote, "k", put("a", "1"));
    rig.restart(2, Millis::ZERO);
    assert_eq!(told.load(Ordering::SeqCst), 0);
    is_told_of_the_new_instance(now(rig.remote.get(&owner("k"), Read::Any)));
    assert_eq!(told.load(Ordering::SeqCst), 1);
    let carried = *rig.courier.carried.lock().unwrap();
    is_told_of_the_new_instance(now(rig.remote.cas(&owner("k"), Expect::Absent, put("a", "2"), None)));
    is_told_of_the_new_instance(now(rig.remote.list(Space::OWNERS, None)));
    is_told_of_the_new_instance(now(rig.remote.watch(Space::OWNERS, Position(BASE))).map(drop));
    assert_eq!(*rig.courier.carried.lock().unwrap(), carried, "nothing is sent any more");
    assert_eq!(told.load(Ordering::SeqCst), 1);
    let late = counted(&rig);
    assert_eq!(late.load(Ordering::SeqCst), 1, "who asks late is told at once");
    let anew = Rig::client(&rig.courier, &rig.clock);
    create(&anew, "k", put("a", "3"));
}

/// A write that was meant for the earlier instance is not carried out by the next.
#[test]
fn a_write_for_another_instance_is_not_carried_out() {
    let mut rig = Rig::new();
    let told = counted(&rig);
    assert_eq!(read(&*rig.remote, "k"), None);
    rig.restart(2, Millis::ZERO);
    is_told_of_the_new_instance(now(rig.remote.cas(&owner("k"), Expect::Absent, put("a", "1"), None)));
    assert_eq!(read(&*rig.local, "k"), None);
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[test]
fn a_waiting_watch_ends_when_it_meets_a_new_instance() {
    let mut rig = Rig::new();
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE))).unwrap();
    rig.courier.meets([Fate::NotSent]);
    assert!(watch.next().now_or_never().is_none(), "pauses");
    rig.restart(2, Millis::ZERO);
    rig.clock.advance(Millis(50));
    let Some(item) = now(watch.next()) else { panic!("ended without a word") };
    is_told_of_the_new_instance(item);
    assert!(now(watch.next()).is_none());
}

/// Not even back to the first: what happened in between is unknown.
#[test]
fn there_is_no_way_back_to_the_first_instance() {
    let mut rig = Rig::new();
    let (first, timer): (_, Arc<dyn Timer>) = (Arc::clone(&rig.local), Arc::new(rig.clock.clone()));
    create(&*rig.remote, "k", put("a", "1"));
    rig.restart(2, Millis::ZERO);
    is_told_of_the_new_instance(now(rig.remote.get(&owner("k"), Read::Any)));
    rig.courier.connect_to(StoreServer::new(first, 1, timer, Millis::ZERO));
    is_told_of_the_new_instance(now(rig.remote.get(&owner("k"), Read::Any)));
}

#[test]
fn versions_begin_above_the_base() {
    let store = EmbeddedStore::with_version_base(EmbeddedConfig::default(), BASE);
    assert_eq!(create(&store, "k", put("a", "1")).0, BASE + 1);
    assert_eq!(now(store.list(Space::OWNERS, None)).unwrap().position, Position(BASE + 1));
    let old = now(store.watch(Space::OWNERS, Position(3))).map(drop);
    assert!(matches!(old, Err(StoreError::Compacted)), "a position of an earlier instance");
    assert!(now(store.watch(Space::OWNERS, Position(BASE))).is_ok());
}
