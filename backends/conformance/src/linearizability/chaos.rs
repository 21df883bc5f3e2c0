//! Clients that go on for as long as their server is being hurt, and the reckoning after it.
//!
//! Groups of clients claim, release, hand over and look up keys, a few requests per key so that the search for an order
//! stays short; pairs of writers race for new records. A request that certainly did nothing is made again, one whose
//! outcome is unknown may happen at any later time. In the end everything is read once more: what was acknowledged must
//! have outlived every kill.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use archipelago_directory::{Store, StoreDirectory, Timer};
use archipelago_protocol::contract::Directory;
use archipelago_protocol::time::Millis;
use futures_util::future::{join, join_all};

use super::ledger::{BrokenPromise, Ledger, LedgerError};
use super::{Ending, History, NotLinearizable, Op, Workload, carry_out};
use crate::Rng;
use crate::waiting::PATIENCE;

/// How much is going on.
#[derive(Clone, Copy, Debug)]
pub struct Chaos {
    /// What all choices are drawn from.
    pub seed: u64,
    /// How many groups of clients there are; each shares keys of its own.
    pub groups: u64,
    /// How many pairs of writers race for new records.
    pub pairs: u64,
    /// The longest pause between two requests of a client: so long that faults fall into the middle of a key's history.
    pub pause: Millis,
}

impl Default for Chaos {
    fn default() -> Self {
        Self { seed: 0, groups: 6, pairs: 4, pause: Millis(60) }
    }
}

/// A run: its clients, and what they were told.
pub struct ChaosRun {
    chaos: Chaos,
    stores: Vec<Arc<dyn Store>>,
    directories: Vec<Arc<dyn Directory>>,
    timer: Arc<dyn Timer>,
    history: History,
    ledger: Ledger,
    refused: AtomicUsize,
    unknown: AtomicUsize,
}

/// What a run came to, so that one in which nothing happened can be told from one that proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Keys whose history was explained.
    pub keys: usize,
    /// Requests about them that were answered.
    pub answered: usize,
    /// Requests about them that certainly did nothing.
    pub refused: usize,
    /// Requests about them whose outcome nobody knew.
    pub unknown: usize,
    /// New records that were acknowledged, and stood there in the end.
    pub acknowledged: usize,
}

/// What a store got wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChaosError {
    /// No order explains the answers about a key.
    NotLinearizable(NotLinearizable),
    /// An acknowledged record is lost, was granted twice, or stands there although it was refused.
    BrokenPromise(BrokenPromise),
    /// It does not answer although nobody hurts it any more.
    Silent(String),
}

impl fmt::Display for ChaosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLinearizable(error) => error.fmt(f),
            Self::BrokenPromise(error) => error.fmt(f),
            Self::Silent(error) => write!(f, "no answer in the end: {error}"),
        }
    }
}

impl std::error::Error for ChaosError {}

impl ChaosRun {
    /// Opens all sessions. The clients take turns to use the `stores`, which are doors to the same records.
    ///
    /// # Panics
    ///
    /// If there is no store, or if it does not serve yet.
    pub async fn prepare(chaos: Chaos, stores: Vec<Arc<dyn Store>>, timer: Arc<dyn Timer>) -> Self {
        let directory = |store: &Arc<dyn Store>| -> Arc<dyn Directory> {
            Arc::new(StoreDirectory::new(Arc::clone(store), Arc::clone(&timer)))
        };
        let directories: Vec<_> = stores.iter().map(directory).collect();
        for group in 0..chaos.groups {
            chaos.workload(group).open_sessions(&*directories[0]).await;
        }
        let (history, ledger) = (History::default(), Ledger::default());
        let (refused, unknown) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { chaos, stores, directories, timer, history, ledger, refused, unknown }
    }

    /// Runs all clients until `stop`; each ends the request that it has under way.
    pub async fn run(&self, stop: &AtomicBool) {
        let groups = (0..self.chaos.groups).map(|group| self.group(group, stop));
        let pairs = (0..self.chaos.pairs).map(|pair| self.pair(pair, stop));
        join(join_all(groups), join_all(pairs)).await;
    }

    /// Reads everything once more, and compares it with what was answered.
    ///
    /// # Errors
    ///
    /// Something does not fit.
    pub async fn check(&self) -> Result<Summary, ChaosError> {
        self.look_at_everything().await?;
        let answered = self.history.check().map_err(ChaosError::NotLinearizable)?;
        let acknowledged = self.ledger.check(&*self.stores[0]).await.map_err(|error| match error {
            LedgerError::Broken(promise) => ChaosError::BrokenPromise(promise),
            LedgerError::Unreadable(error) => ChaosError::Silent(format!("{error:?}")),
        })?;
        Ok(Summary {
            keys: self.history.keys().len(),
            answered,
            refused: self.refused.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            acknowledged,
        })
    }

    async fn group(&self, group: u64, stop: &AtomicBool) {
        let workload = self.chaos.workload(group);
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            join_all((0..workload.clients).map(|client| self.client(&workload, client, round, stop))).await;
            round += 1;
        }
    }

    /// One client of a group, and its requests about the keys of one round.
    async fn client(&self, workload: &Workload, client: u64, round: u32, stop: &AtomicBool) {
        let directory = &*self.directories[door(client, self.directories.len())];
        let mut asker = workload.asker(client, round);
        let mut turn = 0;
        while turn < workload.operations && !stop.load(Ordering::Relaxed) {
            let pause = asker.rng.below(self.chaos.pause.0.max(1));
            self.timer.sleep(Millis(pause)).await;
            let key = workload.key(round * workload.keys + turn % workload.keys);
            match asker.ask(directory, &self.history, &key).await {
                Ending::Answered => turn += 1,
                Ending::Refused => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
                Ending::Unknown => {
                    self.unknown.fetch_add(1, Ordering::Relaxed);
                    turn += 1;
                }
            }
        }
    }

    async fn pair(&self, pair: u64, stop: &AtomicBool) {
        let stores = [pair, pair + 1].map(|n| &*self.stores[door(n, self.stores.len())]);
        let mut rng = Rng::new(self.chaos.seed.wrapping_add(pair));
        let mut n = 0;
        while !stop.load(Ordering::Relaxed) {
            let answered = self.ledger.race(stores, &format!("{}-{pair}-{n}", self.chaos.seed)).await;
            n += 1;
            let longest = if answered { BREATH } else { PAUSE_AFTER_FAILURE };
            self.timer.sleep(Millis(rng.below(longest))).await;
        }
    }

    /// The last request about every key: who owns it. It is made until it is answered.
    async fn look_at_everything(&self) -> Result<(), ChaosError> {
        let until = self.timer.now() + PATIENCE;
        for key in self.history.keys() {
            self.history.invoke(JUDGE, &key, Op::Lookup);
            let ret = loop {
                match carry_out(&*self.directories[0], &key, &Op::Lookup).await {
                    Some(ret @ super::Ret::Found(_)) => break ret,
                    _ if self.timer.now() > until => return Err(ChaosError::Silent(key.to_string())),
                    _ => self.timer.sleep(Millis(PAUSE_AFTER_FAILURE)).await,
                }
            };
            self.history.answer(JUDGE, &key, ret);
        }
        Ok(())
    }
}

impl Chaos {
    fn workload(&self, group: u64) -> Workload {
        Workload { seed: self.seed.wrapping_mul(1_000).wrapping_add(group), ..Workload::default() }
    }
}

fn door(n: u64, doors: usize) -> usize {
    usize::try_from(n).unwrap_or(0) % doors
}

/// Who makes the last requests; no client is called so.
const JUDGE: u64 = u64::MAX;
/// Longest pauses of the writers, in milliseconds: short, so that the server is killed under load.
const BREATH: u64 = 4;
const PAUSE_AFTER_FAILURE: u64 = 40;
