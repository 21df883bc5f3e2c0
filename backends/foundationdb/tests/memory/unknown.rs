//! Commits without an answer, one by one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use archipelago_directory::{CasAnswer, Expect, Store, StoreError, Write};
use archipelago_foundationdb::{Breakage, FoundationDbConfig, MemoryEngine};

use crate::support::{
    applied, calm, create, current, forgetful, owner, put, run, settings, store, store_with,
};

type Answer<'a> = Pin<Box<dyn Future<Output = Result<CasAnswer, StoreError>> + Send + 'a>>;

/// Every request waits once, so that a test can stop between any two.
const STEPWISE: Breakage = Breakage {
    waits: 1_000,
    refused: 0,
    unknown_applied: 0,
    unknown_lost: 0,
    unknown_late: 0,
    timed_out: 0,
    too_old: 0,
    future_version: 0,
    short_page: 0,
    watch_refused: 0,
    watch_deaf: 0,
    shared_version: 0,
};

/// Goes on until a commit has been answered as unknown; from then on nothing goes wrong any more.
fn until_unknown(engine: &MemoryEngine, answer: &mut Answer<'_>) {
    let before = engine.tally().unknown;
    let mut context = Context::from_waker(Waker::noop());
    while engine.tally().unknown == before {
        assert!(answer.as_mut().poll(&mut context).is_pending());
    }
    engine.set_breakage(STEPWISE);
}

#[test]
fn applied_without_an_answer_is_recognised_and_not_repeated() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        engine.set_breakage(Breakage { unknown_applied: 1_000, ..STEPWISE });
        let k = owner("k");
        let mut answer = store.cas(&k, Expect::Absent, put("a", "mine"), None);
        until_unknown(&engine, &mut answer);
        let version = applied(answer.await);
        assert_eq!(current(&store, "k").await.unwrap().version, version);
        assert_eq!(engine.tally().applied, 1);
    });
}

#[test]
fn applied_without_an_answer_is_recognised_after_somebody_else_has_replaced_it() {
    run(|timer| async move {
        let engine = calm();
        let (store, other) = (store(&engine, &timer).await, store(&engine, &timer).await);
        engine.set_breakage(Breakage { unknown_applied: 1_000, ..STEPWISE });
        let k = owner("k");
        let mut answer = store.cas(&k, Expect::Absent, put("a", "mine"), None);
        until_unknown(&engine, &mut answer);
        let mine = current(&other, "k").await.unwrap();
        let newer = applied(other.cas(&mine.id, mine.expect(), put("b", "theirs"), None).await);
        assert_eq!(applied(answer.await), mine.version);
        assert_eq!(current(&store, "k").await.unwrap().version, newer);
    });
}

#[test]
fn a_delete_without_an_answer_is_told_from_the_delete_of_somebody_else() {
    for (mine, expected) in [
        (Breakage { unknown_applied: 1_000, ..STEPWISE }, true),
        (Breakage { unknown_lost: 1_000, ..STEPWISE }, false),
    ] {
        run(|timer| async move {
            let engine = calm();
            let (store, other) = (store(&engine, &timer).await, store(&engine, &timer).await);
            create(&store, "k").await;
            let expect = current(&store, "k").await.unwrap().expect();
            engine.set_breakage(mine);
            let k = owner("k");
            let mut answer = store.cas(&k, expect.clone(), Write::Delete, None);
            until_unknown(&engine, &mut answer);
            let theirs = other.cas(&owner("k"), expect, Write::Delete, None).await.unwrap();
            assert_eq!(matches!(theirs, CasAnswer::Applied(_)), !expected);
            let told = answer.await.unwrap();
            assert_eq!(matches!(told, CasAnswer::Applied(_)), expected, "{told:?}");
        });
    }
}

#[test]
fn lost_without_an_answer_is_repeated() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        engine.set_breakage(Breakage { unknown_lost: 1_000, ..STEPWISE });
        let k = owner("k");
        let mut answer = store.cas(&k, Expect::Absent, put("a", "mine"), None);
        until_unknown(&engine, &mut answer);
        let version = applied(answer.await);
        assert_eq!(current(&store, "k").await.unwrap().version, version);
    });
}

/// The first attempt lands while the second is under way: one of them, and it is the one that is told of.
#[test]
fn a_commit_that_lands_late_excludes_the_attempt_after_it_or_is_excluded() {
    let mut landed = 0;
    for steps in 0..12 {
        landed += run(|timer| async move {
            let engine = calm();
            let store = store(&engine, &timer).await;
            engine.set_breakage(Breakage { unknown_late: 1_000, ..STEPWISE });
            let k = owner("k");
            let mut answer = store.cas(&k, Expect::Absent, put("a", "mine"), None);
            until_unknown(&engine, &mut answer);
            let mut context = Context::from_waker(Waker::noop());
            let mut answered = None;
            for _ in 0..steps {
                if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
                    answered = Some(answer);
                    break;
                }
            }
            engine.land_all();
            let version = match answered {
                Some(answered) => applied(answered),
                None => applied(answer.await),
            };
            assert_eq!(current(&store, "k").await.unwrap().version, version, "after {steps} steps");
            assert_eq!(engine.tally().applied, 1, "after {steps} steps");
            engine.tally().late
        });
    }
    assert!((1..12).contains(&landed), "{landed} of 12 landed: both must happen");
}

#[test]
fn a_write_whose_outcome_never_becomes_known_is_unknown_at_its_deadline() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        engine.set_breakage(Breakage { unknown_lost: 1_000, ..STEPWISE });
        let answer = deadline(&timer, store.cas(&owner("k"), Expect::Absent, put("a", "x"), None)).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
    });
}

#[test]
fn a_write_that_was_never_committed_is_unavailable_at_its_deadline() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        for breakage in
            [Breakage { future_version: 1_000, ..STEPWISE }, Breakage { refused: 1_000, ..STEPWISE }]
        {
            engine.set_breakage(breakage);
            let answer = deadline(&timer, store.cas(&owner("k"), Expect::Absent, put("a", "x"), None)).await;
            assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        }
        engine.set_breakage(Breakage::default());
        assert_eq!(current(&store, "k").await, None);
    });
}

/// A time limit of the client cuts the answer off, and is not repeated.
#[test]
fn a_commit_that_timed_out_is_unknown_at_once() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        engine.set_breakage(Breakage { timed_out: 1_000, ..STEPWISE });
        let answer = store.cas(&owner("k"), Expect::Absent, put("a", "x"), None).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        engine.set_breakage(Breakage::default());
        assert_eq!(current(&store, "k").await, None);
        engine.land_all();
        assert!(current(&store, "k").await.is_some(), "it was applied later");
    });
}

/// A history that does not reach back to the first attempt cannot tell what became of it.
#[test]
fn a_doubt_that_outlives_the_history_is_unknown() {
    run(|timer| async move {
        let engine = calm();
        let config = FoundationDbConfig {
            request_timeout: Duration::from_secs(1),
            history: Duration::from_secs(5),
            ..settings()
        };
        let store = store_with(&engine, &timer, config).await;
        let others = store_with(&engine, &timer, forgetful()).await;
        create(&others, "before").await;
        engine.set_breakage(Breakage { unknown_applied: 1_000, ..STEPWISE });
        let k = owner("k");
        let mut answer = store.cas(&k, Expect::Absent, put("a", "mine"), None);
        until_unknown(&engine, &mut answer);
        engine.set_breakage(Breakage::default());
        for n in 0..200 {
            create(&others, &format!("k{n}")).await;
        }
        let answer = answer.await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
    });
}

/// The answer, while time passes although requests go on.
async fn deadline<T>(
    timer: &archipelago_backend_conformance::ManualTimer,
    answer: impl Future<Output = T>,
) -> T {
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|context| {
        let polled = answer.as_mut().poll(context);
        timer.advance(archipelago_protocol::time::Millis(5));
        polled
    })
    .await
}
