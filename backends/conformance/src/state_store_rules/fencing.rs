//! Rules about whose writes are taken.

use futures_util::FutureExt;
use futures_util::future::{join, join_all};

use super::{ALICE, BOB, StateStoreFixture, fenced, state};

/// From the moment a load is answered nothing of a lower generation is applied, also if nothing was ever saved. A save that
/// was sent before is refused, or it is part of what the load showed.
///
/// Proves: R493
pub async fn load_fences_before_it_reads(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    assert_eq!(f.load(ALICE, 2).await, None, "nothing was saved");
    assert_eq!(fenced(f.try_save(ALICE, 1, "late").await), 2);
    assert_eq!(f.load(ALICE, 2).await, None);

    f.load(BOB, 1).await;
    f.save(BOB, 1, "old").await;
    for generation in 2..20 {
        let late = format!("late {generation}");
        let (loaded, saved) = join(f.try_load(BOB, generation), f.try_save(BOB, generation - 1, &late)).await;
        let shown = loaded.expect("a newer generation loads");
        let stands = f.load(BOB, generation).await;
        assert_eq!(stands, shown, "generation {generation}: nothing lands after the load");
        if saved.is_ok() {
            assert_eq!(shown, Some(state(&late)), "generation {generation}: what was answered is shown");
        }
    }
}

/// A load of a lower generation is refused and reads nothing.
pub async fn stale_load_is_refused(f: StateStoreFixture) {
    f.load(ALICE, 5).await;
    f.save(ALICE, 5, "of five").await;
    for stale in [0, 1, 4] {
        assert_eq!(fenced(f.try_load(ALICE, stale).await), 5, "generation {stale}");
    }
    assert_eq!(f.load(ALICE, 5).await, Some(state("of five")));
}

/// A save of a lower generation is refused; the state stays as it is.
///
/// Proves: R493
pub async fn stale_save_is_refused(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    f.save(ALICE, 1, "of one").await;
    f.load(ALICE, 3).await;
    for stale in [0, 1, 2] {
        assert_eq!(fenced(f.try_save(ALICE, stale, "stale").await), 3, "generation {stale}");
    }
    assert_eq!(f.load(ALICE, 3).await, Some(state("of one")), "the stale ones changed nothing");
    f.save(ALICE, 7, "of seven").await;
    assert_eq!(fenced(f.try_save(ALICE, 3, "stale").await), 7, "a save fences, too");
}

/// A delete of a lower generation is refused; the state stays.
pub async fn stale_delete_is_refused(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    f.save(ALICE, 1, "of one").await;
    f.load(ALICE, 2).await;
    assert_eq!(fenced(f.try_delete(ALICE, 1).await), 2);
    assert_eq!(f.load(ALICE, 2).await, Some(state("of one")));
}

/// The highest generation may load, save and delete as often as it likes: an actor comes and goes many times under one.
pub async fn same_generation_goes_on(f: StateStoreFixture) {
    for round in ["one", "two", "three"] {
        f.load(ALICE, 4).await;
        f.save(ALICE, 4, round).await;
        f.save(ALICE, 4, round).await;
        assert_eq!(f.load(ALICE, 4).await, Some(state(round)));
        f.try_delete(ALICE, 4).await.expect("deletes");
        f.try_delete(ALICE, 4).await.expect("deletes nothing");
        assert_eq!(f.load(ALICE, 4).await, None);
    }
}

/// After a delete there is no state, and lower generations are refused as before.
pub async fn delete_keeps_the_fence(f: StateStoreFixture) {
    f.load(ALICE, 6).await;
    f.save(ALICE, 6, "of six").await;
    f.try_delete(ALICE, 6).await.expect("deletes");
    assert_eq!(fenced(f.try_save(ALICE, 5, "stale").await), 6);
    assert_eq!(fenced(f.try_load(ALICE, 5).await), 6);
    assert_eq!(f.load(ALICE, 6).await, None);
    f.try_delete(BOB, 6).await.expect("there is nothing to delete");
    assert_eq!(f.load(BOB, 6).await, None);
}

/// A save that was given up, at whatever point of its way, is not applied after a later save or load was answered.
pub async fn a_save_given_up_never_overtakes(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    for round in 0..10 {
        let late = format!("late {round}");
        drop(f.try_save(ALICE, 1, &late).now_or_never());
        f.save(ALICE, 1, "kept").await;
        let loads = join_all((0..3).map(|_| f.load(ALICE, 1))).await;
        assert_eq!(loads, [(); 3].map(|()| Some(state("kept"))), "round {round}");
        drop(f.try_save(ALICE, 1, &late).now_or_never());
        let shown = f.load(ALICE, 1).await;
        assert_eq!(f.load(ALICE, 1).await, shown, "round {round}: nothing lands after a load");
    }
}
