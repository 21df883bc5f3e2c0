//! Watches by long polls.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use archipelago_directory::{Change, Expect, Position, RecordId, Space, Store, StoreError};
use archipelago_embedded::EmbeddedConfig;
use archipelago_protocol::time::Millis;
use futures_util::{FutureExt, StreamExt};

use crate::rig::{BASE, Fate, Rig, create, now, owner, put};

fn small() -> Rig {
    Rig::with(EmbeddedConfig { history: NonZeroUsize::new(4).unwrap() }, Millis::ZERO)
}

fn write(rig: &Rig, keys: Range<u32>) {
    for key in keys {
        create(&*rig.local, &key.to_string(), put("a", ""));
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_waiting_poll_is_answered_by_the_write() {
    let rig = Rig::new();
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE))).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(watch.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    let carried = *rig.courier.carried.lock().unwrap();
    create(&*rig.local, "k", put("a", "1"));
    assert!(woken.0.load(Ordering::SeqCst));
    assert_eq!(now(watch.next()).unwrap().unwrap().id(), &owner("k"));
    assert_eq!(*rig.courier.carried.lock().unwrap(), carried, "the poll under way brought it");
}

#[test]
fn a_poll_without_changes_ends_after_two_seconds_and_is_followed_by_the_next() {
    let rig = Rig::new();
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE))).unwrap();
    assert!(watch.next().now_or_never().is_none());
    let carried = *rig.courier.carried.lock().unwrap();
    for polls in 1..4 {
        rig.clock.advance(Millis(1_999));
        assert!(watch.next().now_or_never().is_none());
        assert_eq!(*rig.courier.carried.lock().unwrap(), carried + polls - 1);
        rig.clock.advance(Millis(1));
        assert!(watch.next().now_or_never().is_none());
        assert_eq!(*rig.courier.carried.lock().unwrap(), carried + polls);
    }
}

/// The position moves with the polls, so a silent space is not compacted by the others.
#[test]
fn a_watch_of_a_silent_space_outlives_the_history() {
    let rig = small();
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE))).unwrap();
    for n in 0..20 {
        assert!(watch.next().now_or_never().is_none(), "round {n}");
        let id = RecordId::new(Space::LEASES, n.to_string());
        now(rig.local.cas(&id, Expect::Absent, put("a", "beat"), None)).unwrap();
        if n % 3 == 0 {
            rig.clock.advance(Millis(2_000));
        }
    }
    create(&*rig.local, "k", put("a", "1"));
    assert_eq!(now(watch.next()).unwrap().unwrap().id(), &owner("k"));
}

#[test]
fn a_watch_goes_on_after_requests_and_answers_were_lost() {
    let rig = Rig::new();
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE))).unwrap();
    let fates = [Fate::NotSent, Fate::RequestLost, Fate::NotSent, Fate::AnswerLost];
    rig.courier.meets(fates);
    create(&*rig.local, "k", put("a", "1"));
    for pause in [50, 100, 200, 400] {
        assert!(watch.next().now_or_never().is_none(), "pauses {pause} ms");
        let carried = *rig.courier.carried.lock().unwrap();
        rig.clock.advance(Millis(pause - 1));
        assert!(watch.next().now_or_never().is_none());
        assert_eq!(*rig.courier.carried.lock().unwrap(), carried);
        rig.clock.advance(Millis(1));
    }
    assert_eq!(now(watch.next()).unwrap().unwrap().id(), &owner("k"));
    assert!(watch.next().now_or_never().is_none(), "told once");
}

#[test]
fn a_watch_that_falls_behind_is_compacted_and_ends() {
    let rig = small();
    write(&rig, 0..6);
    let late = now(rig.remote.watch(Space::OWNERS, Position(BASE))).map(drop);
    assert!(matches!(late, Err(StoreError::Compacted)), "{late:?}");
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE + 6))).unwrap();
    write(&rig, 6..12);
    assert!(matches!(now(watch.next()), Some(Err(StoreError::Compacted))));
    assert!(now(watch.next()).is_none());
}

/// More changes than one answer holds, by number and by size.
#[test]
fn a_flood_comes_in_order_and_without_a_gap() {
    let rig = Rig::new();
    let long = "v".repeat(100_000);
    for n in 0..1_500 {
        create(&*rig.local, &format!("{n}"), put("a", if n % 50 == 0 { &long } else { "short" }));
    }
    let mut watch = now(rig.remote.watch(Space::OWNERS, Position(BASE))).unwrap();
    for n in 0..1_500 {
        let change = now(watch.next()).unwrap().unwrap();
        assert!(matches!(&change, Change::Put { record, .. } if record.id == owner(&n.to_string())));
        assert_eq!(change.position(), Position(BASE + 1 + n));
    }
}
