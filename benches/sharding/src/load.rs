//! Callers, the keys they choose, and what they noted down.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use archipelago::prelude::*;
use futures_channel::mpsc;
use futures_util::StreamExt;
use hdrhistogram::Histogram;

use crate::node::{Target, Where};

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Each as often as any other.
    Uniform,
    /// The n-th so often as 1/n.
    Zipf,
}

impl Mix {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }

    /// A sequence of keys, the same in each run.
    pub(crate) fn keys(self, count: usize) -> Vec<usize> {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let weights: Vec<f64> = (1..=KEYS).map(|n| 1.0 / n as f64).collect();
        let sum: f64 = weights.iter().sum();
        let cumulated: Vec<f64> = weights
            .iter()
            .scan(0.0, |all, weight| {
                *all += weight / sum;
                Some(*all)
            })
            .collect();
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let choose = |random: u64| match self {
            Self::Uniform => usize::try_from(random % KEYS as u64).unwrap_or(0),
            Self::Zipf => {
                let at = random as f64 / u64::MAX as f64;
                cumulated.partition_point(|sum| *sum < at).min(KEYS - 1)
            }
        };
        (0..count).map(|_| choose(next())).collect()
    }
}

/// Asks all keys of the mix with so many callers at a time; how many per second.
pub(crate) async fn throughput(node: &Node, mix: Mix, asks: usize) -> f64 {
    let (done, all_done) = mpsc::unbounded::<()>();
    let task = {
        let node = node.clone();
        move || async move {
            let refs: Rc<Vec<_>> =
                Rc::new((0..KEYS).map(|key| node.actor::<Target>(key.to_string())).collect());
            let keys = Rc::new(RefCell::new(mix.keys(asks).into_iter()));
            let callers = (0..IN_FLIGHT).map(|_| {
                let (refs, keys) = (Rc::clone(&refs), Rc::clone(&keys));
                async move {
                    loop {
                        let Some(key) = keys.borrow_mut().next() else { return };
                        refs[key].send(Where).await.expect("the target answers");
                    }
                }
            });
            futures_util::future::join_all(callers).await;
            drop(done);
        }
    };
    let begun = Instant::now();
    node.spawn_beside(&node.actor::<Target>("0"), task).expect("the arbiter takes tasks");
    all_done.collect::<Vec<()>>().await;
    asks as f64 / begun.elapsed().as_secs_f64()
}

/// Asks all keys in turn, one call at a time; the median time of a call in microseconds.
pub(crate) async fn one_by_one(node: &Node, asks: usize) -> f64 {
    let (done, mut is_done) = mpsc::unbounded::<f64>();
    let task = {
        let node = node.clone();
        move || async move {
            let refs: Vec<_> = (0..KEYS).map(|key| node.actor::<Target>(key.to_string())).collect();
            let mut waits = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds fit");
            for key in Mix::Uniform.keys(asks) {
                let begun = Instant::now();
                refs[key].send(Where).await.expect("the target answers");
                waits.saturating_record(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
            let _ = done.unbounded_send(waits.value_at_quantile(0.5) as f64 / 1_000.0);
        }
    };
    node.spawn_beside(&node.actor::<Target>("0"), task).expect("the arbiter takes tasks");
    is_done.next().await.expect("the arbiter answers")
}

/// Asks so many distinct keys once each; how long that took.
pub(crate) async fn once_each(node: &Node, keys: usize) -> Duration {
    let begun = Instant::now();
    let patient = CallOptions::new().timeout(Duration::from_secs(60));
    let asks = (0..keys).map(|key| {
        let target = node.actor::<Target>(format!("k{key}"));
        async move { target.send_with(Where, patient).await.expect("the target answers") }
    });
    let mut answers = futures_util::stream::iter(asks).buffer_unordered(IN_FLIGHT);
    while answers.next().await.is_some() {}
    begun.elapsed()
}

/// So many keys are asked.
pub(crate) const KEYS: usize = 10_000;
const IN_FLIGHT: usize = 256;
