//! Asks: so many callers, each waiting for its answer before it asks again.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Caller, Peer, Reason, reason};

/// What the asks came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    per_second: f64,
    p50_micros: f64,
    p99_micros: f64,
    /// Callers that still wait for their last answer.
    unanswered: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, p50_micros, p99_micros, unanswered } = self;
        write!(f, "{per_second:>10.0}/s p50 {p50_micros:>9.1} p99 {p99_micros:>9.1} µs")?;
        if *unanswered > 0 {
            write!(f, " unanswered {unanswered}")?;
        }
        Ok(())
    }
}

/// Asks with `in_flight` callers for a fixed time and counts the answers that come in it.
pub(crate) async fn measure<P: Peer>(peer: &P, in_flight: u64) -> Result<Figures, Reason> {
    let mut callers = Vec::new();
    for number in 0..in_flight {
        callers.push(peer.caller(number).await?);
    }
    let start = Instant::now() + WARM_UP;
    let mut tasks = JoinSet::new();
    for (number, caller) in (0..).zip(callers) {
        tasks.spawn(peer.surround(number, Box::pin(ask_until_end(caller, start))));
    }
    let ended = timeout(WARM_UP + MEASURED + PATIENCE, all_of(&mut tasks)).await;
    let waits = merged();
    match ended {
        Ok(Err(reason)) => Err(format!("{reason} (after {} answers)", waits.len())),
        Ok(Ok(())) | Err(_) => Ok(figures(&waits, tasks.len())),
    }
}

async fn ask_until_end(mut caller: impl Caller, start: Instant) -> Result<(), Reason> {
    let end = start + MEASURED;
    let mut sent = Instant::now();
    while sent < end {
        caller.ask().await?;
        let answered = Instant::now();
        if start <= answered && answered < end {
            record(answered - sent);
        }
        sent = answered;
    }
    Ok(())
}

async fn all_of(tasks: &mut JoinSet<Result<(), Reason>>) -> Result<(), Reason> {
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(reason)??;
    }
    Ok(())
}

fn figures(waits: &Histogram<u64>, unanswered: usize) -> Figures {
    let micros = |quantile| waits.value_at_quantile(quantile) as f64 / 1_000.0;
    Figures {
        per_second: waits.len() as f64 / MEASURED.as_secs_f64(),
        p50_micros: micros(0.5),
        p99_micros: micros(0.99),
        unanswered,
    }
}

type Shared = Arc<Mutex<Histogram<u64>>>;

/// One histogram per thread: one per caller would fill the caches that are to be measured, and one for all would make
/// the threads wait for each other.
static HISTOGRAMS: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

fn record(wait: Duration) {
    let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    OWN.with_borrow_mut(|own| lock(own.get_or_insert_with(registered)).saturating_record(nanos));
}

fn registered() -> Shared {
    let histogram = Arc::new(Mutex::new(empty()));
    lock(&HISTOGRAMS).push(Arc::clone(&histogram));
    histogram
}

fn merged() -> Histogram<u64> {
    let mut all = empty();
    for histogram in lock(&HISTOGRAMS).iter() {
        all.add(&*lock(histogram)).expect("all have the same bounds");
    }
    all
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds fit")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_secs(1);
/// How long a last answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_all_threads_count() {
        let threads: Vec<_> = [(98, 20), (2, 500)]
            .into_iter()
            .map(|(times, micros)| {
                std::thread::spawn(move || (0..times).for_each(|_| record(Duration::from_micros(micros))))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("nothing panics"));
        let Figures { per_second, p50_micros, p99_micros, .. } = figures(&merged(), 0);
        assert!((per_second - 100.0 / MEASURED.as_secs_f64()).abs() < 0.1, "{per_second}");
        assert!((p50_micros - 20.0).abs() < 0.2, "{p50_micros}");
        assert!((p99_micros - 500.0).abs() < 5.0, "{p99_micros}");
    }
}
