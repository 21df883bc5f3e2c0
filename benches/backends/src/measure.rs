//! How much is done in a short time, by ours and by the plain client in turn.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::contestant::{Contestant, Pair};

/// How many are at work at once.
pub(crate) const CROWDS: [usize; 3] = [1, 64, 256];
/// The most that ever are.
pub(crate) const MOST: usize = 256;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Claims,
    Lookups,
    Renewals,
    Watch,
}

impl Work {
    pub(crate) const ALL: [Self; 4] = [Self::Claims, Self::Lookups, Self::Renewals, Self::Watch];
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Claims => "claims",
            Self::Lookups => "lookups",
            Self::Renewals => "renewals",
            Self::Watch => "watch",
        })
    }
}

/// What a contestant reached; more is better in a rate, less in a delay.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sample {
    PerSecond(f64),
    Delay(Duration),
}

impl Sample {
    /// How good this is, compared with `other`.
    fn against(self, other: Self) -> f64 {
        self.goodness() / other.goodness()
    }

    fn goodness(self) -> f64 {
        match self {
            Self::PerSecond(rate) => rate,
            Self::Delay(delay) => 1.0 / delay.as_secs_f64(),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate:>8.0}/s"),
            Self::Delay(delay) => write!(f, "{:>7.2} ms", delay.as_secs_f64() * 1e3),
        }
    }
}

/// The medians of all rounds.
pub(crate) struct Figure {
    pub(crate) ours: Sample,
    pub(crate) raw: Sample,
    pub(crate) ratio: f64,
}

/// Lets both work in turn. Who begins alternates.
pub(crate) async fn race(pair: &Pair, work: Work, crowd: usize) -> Figure {
    let keys = AtomicU32::new(next_keys());
    let (mut ours, mut raw, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (mine, theirs) = if round % 2 == 0 {
            let mine = sample(&pair.ours, work, crowd, &keys).await;
            (mine, sample(&pair.raw, work, crowd, &keys).await)
        } else {
            let theirs = sample(&pair.raw, work, crowd, &keys).await;
            (sample(&pair.ours, work, crowd, &keys).await, theirs)
        };
        // The first round warms both up.
        if round > 0 {
            ours.push(mine);
            raw.push(theirs);
            ratios.push(mine.against(theirs));
        }
    }
    ratios.sort_by(f64::total_cmp);
    Figure { ours: median(ours), raw: median(raw), ratio: ratios[ratios.len() / 2] }
}

/// What one contestant reaches without a rival.
pub(crate) async fn alone(contestant: &Arc<dyn Contestant>, work: Work, crowd: usize) -> Sample {
    let keys = AtomicU32::new(next_keys());
    let mut samples = Vec::new();
    for _ in 0..ROUNDS {
        samples.push(sample(contestant, work, crowd, &keys).await);
    }
    median(samples)
}

async fn sample(contestant: &Arc<dyn Contestant>, work: Work, crowd: usize, keys: &AtomicU32) -> Sample {
    // Both contestants have places of their own, so they may use the same numbers; every sample has new ones.
    let first = keys.fetch_add(KEYS_PER_SAMPLE, Ordering::Relaxed);
    if work == Work::Watch {
        return Sample::Delay(watch_delay(contestant, crowd, first).await);
    }
    if work == Work::Lookups {
        join_all((0..LOOKED_UP).map(|n| contestant.claim(first + n))).await;
    }
    let next = Arc::new(AtomicU32::new(first));
    let start = Instant::now();
    let workers = (0..crowd).map(|worker| {
        let (contestant, next) = (Arc::clone(contestant), Arc::clone(&next));
        tokio::spawn(async move {
            let mut done = 0_u32;
            while start.elapsed() < LENGTH {
                match work {
                    Work::Claims | Work::Watch => {
                        contestant.claim(next.fetch_add(1, Ordering::Relaxed)).await
                    }
                    Work::Lookups => contestant.lookup(first + done % LOOKED_UP).await,
                    Work::Renewals => contestant.renew(worker).await,
                }
                done += 1;
            }
            done
        })
    });
    let done: u32 = join_all(workers).await.into_iter().map(|done| done.expect("works")).sum();
    Sample::PerSecond(f64::from(done) / start.elapsed().as_secs_f64())
}

/// The median time from the moment a claim is sent to the moment a watch shows it.
async fn watch_delay(contestant: &Arc<dyn Contestant>, crowd: usize, first: u32) -> Duration {
    let mut watch = contestant.watch().await;
    let sent: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let start = Instant::now();
    let workers = (0..crowd).map(|_| {
        let (contestant, sent) = (Arc::clone(contestant), Arc::clone(&sent));
        tokio::spawn(async move {
            while start.elapsed() < LENGTH {
                let n = {
                    let mut sent = sent.lock().unwrap();
                    sent.push(Instant::now());
                    u32::try_from(sent.len() - 1).expect("not so many")
                };
                contestant.claim(first + n).await;
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut delays = Vec::new();
    // Signs of life may come for ever, also if a claim never does.
    while (delays.len() < sent.lock().unwrap().len() || start.elapsed() < LENGTH)
        && start.elapsed() < PATIENCE
    {
        let Ok(key) = tokio::time::timeout(LENGTH, watch.next()).await else { break };
        let key = key.expect("the watch goes on");
        let at = key.checked_sub(first).and_then(|n| sent.lock().unwrap().get(n as usize).copied());
        delays.extend(at.map(|at| at.elapsed()));
    }
    join_all(workers).await;
    let sent = sent.lock().unwrap().len();
    if delays.len() < sent {
        println!("a watch has shown {} of {sent} claims within {PATIENCE:?}", delays.len());
    }
    delays.sort();
    delays[delays.len() / 2]
}

fn median(mut samples: Vec<Sample>) -> Sample {
    samples.sort_by(|one, two| one.goodness().total_cmp(&two.goodness()));
    samples[samples.len() / 2]
}

/// Where the keys of the next race begin: within one engine every race uses others.
fn next_keys() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(KEYS_PER_RACE, Ordering::Relaxed)
}

const ROUNDS: usize = 7;
const LENGTH: Duration = Duration::from_millis(400);
/// How long a watch is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOKED_UP: u32 = 64;
const KEYS_PER_SAMPLE: u32 = 4_000_000;
const KEYS_PER_RACE: u32 = 64_000_000;
