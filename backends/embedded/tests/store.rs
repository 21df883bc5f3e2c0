//! The store's rules on the embedded store, and what is particular to it.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use archipelago_backend_conformance::store_conformance;
use archipelago_directory::{Expect, Position, RecordId, Space, Store, StoreError, Write};
use archipelago_embedded::{EmbeddedConfig, EmbeddedStore};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
    rule(Arc::new(EmbeddedStore::default())).now_or_never().expect("the store answers at once");
}

store_conformance!(run, no_server);

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn small() -> EmbeddedStore {
    EmbeddedStore::new(EmbeddedConfig { history: NonZeroUsize::new(3).unwrap() })
}

fn write(store: &EmbeddedStore, key: u32) {
    let write = Write::Put { tag: None, value: Bytes::new(), ttl: None };
    let id = RecordId::new(Space::OWNERS, key.to_string());
    store.cas(&id, Expect::Absent, write, None).now_or_never().unwrap().unwrap();
}

fn watch(store: &EmbeddedStore, after: u64) -> Result<archipelago_directory::StoreWatch, StoreError> {
    store.watch(Space::OWNERS, Position(after)).now_or_never().unwrap()
}

#[test]
fn a_watch_from_before_the_history_is_compacted() {
    let store = small();
    (0..4).for_each(|key| write(&store, key));
    assert!(matches!(watch(&store, 0), Err(StoreError::Compacted)));
    assert!(watch(&store, 1).is_ok());
}

#[test]
fn a_watch_that_falls_behind_is_compacted_and_ends() {
    let store = small();
    let mut watch = watch(&store, 0).unwrap();
    (0..4).for_each(|key| write(&store, key));
    assert!(matches!(watch.next().now_or_never(), Some(Some(Err(StoreError::Compacted)))));
    assert!(matches!(watch.next().now_or_never(), Some(None)));
}

/// A position of another store is no position of this one.
#[test]
fn a_watch_from_the_future_is_compacted() {
    assert!(matches!(watch(&small(), 7), Err(StoreError::Compacted)));
}

#[test]
fn a_waiting_watch_is_woken_by_a_write() {
    let store = small();
    let mut watch = watch(&store, 0).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(watch.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    write(&store, 1);
    assert!(woken.0.load(Ordering::SeqCst));
    assert!(matches!(watch.next().now_or_never(), Some(Some(Ok(_)))));
}
