//! FoundationDB's rules in memory, and everything that FoundationDB may break, at random from a seed: for tests.
//!
//! Snapshots, conflicts between what was read and what was written since, versionstamps, shared commit versions and watches
//! are real, not simulated by locks; so are transactions that have become too old, and the limits on keys, values and
//! transactions. Time passes with every commit, and as [`MemoryEngine::let_time_pass`] and [`MemoryEngine::slow_down`] say. On top of that a [`Breakage`] says how
//! often commits are refused, lose their answer or land late. Reads show the snapshot alone, not what the transaction
//! itself wrote: the store does not do that.

mod database;
mod limits;
mod transaction;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use archipelago_directory::Read;

use crate::code::Code;
use crate::engine::{Engine, Transaction};
use database::{Commit, Database};
use transaction::MemoryTransaction;

/// A database in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryEngine {
    shared: Arc<Mutex<State>>,
}

/// How often things go wrong, each per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakage {
    /// A commit is refused with `not_committed` without a reason.
    pub refused: u32,
    /// A commit is applied, but answered with `commit_unknown_result`.
    pub unknown_applied: u32,
    /// A commit is not applied, and answered with `commit_unknown_result`.
    pub unknown_lost: u32,
    /// A commit is answered with `commit_unknown_result`, and applied later unless something that it read has changed by
    /// then.
    pub unknown_late: u32,
    /// As before, but with `transaction_timed_out`, after which nothing is repeated.
    pub timed_out: u32,
    /// A read is answered with `transaction_too_old`.
    pub too_old: u32,
    /// A read version is refused with `future_version`.
    pub future_version: u32,
    /// A range is cut after one or two keys.
    pub short_page: u32,
    /// A watch is refused with `too_many_watches`.
    pub watch_refused: u32,
    /// A watch never tells.
    pub watch_deaf: u32,
    /// A commit has the version of the one before, if nobody has seen that one yet.
    pub shared_version: u32,
    /// A request waits until others have had their turn.
    pub waits: u32,
}

/// What has happened so far: a test checks that it was not idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions begun, those that began anew included.
    pub begun: u32,
    /// Commits applied, late ones included.
    pub applied: u32,
    /// Commits refused because something that they read had changed.
    pub conflicts: u32,
    /// Commits that were answered as unknown.
    pub unknown: u32,
    /// Of those answered as unknown, those that were applied later.
    pub late: u32,
    /// Transactions that became too old.
    pub too_old: u32,
    /// Commits that shared their version with another.
    pub shared: u32,
    /// How large the largest transaction was that came to its commit, in bytes.
    pub largest: usize,
}

impl MemoryEngine {
    /// An empty database where things go wrong as `breakage` says.
    pub fn new(seed: u64, breakage: Breakage) -> Self {
        let state = State {
            database: Database::default(),
            breakage,
            tally: Tally::default(),
            random: seed,
            late: Vec::new(),
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
            largest: limits::LARGEST_TRANSACTION,
            micros_per_key: 0,
            away: false,
            life: 0,
            waiting: Vec::new(),
        };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// From now on things go wrong as `breakage` says.
    pub fn set_breakage(&self, breakage: Breakage) {
        self.lock().breakage = breakage;
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.lock().tally
    }

    /// Every commit that was to land late lands now, if it still can.
    pub fn land_all(&self) {
        let mut state = self.lock();
        while state.land_one() {}
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        sleepers.into_values().for_each(Waker::wake);
    }

    /// Sets the version of the database, as a restore to another cluster does.
    pub fn set_version(&self, version: u64) {
        self.lock().database.set_version(version);
    }

    /// So much time passes on the servers. A transaction that has lasted longer than five seconds is too old.
    pub fn let_time_pass(&self, length: Duration) {
        self.lock().database.pass(micros(length));
    }

    /// From now on the servers need so long for every key that is read.
    pub fn slow_down(&self, per_key: Duration) {
        self.lock().micros_per_key = micros(per_key);
    }

    /// From now on transactions may have so many bytes, as FoundationDB's option `transaction_size_limit` says.
    pub fn limit_transactions(&self, bytes: usize) {
        self.lock().largest = bytes.min(limits::LARGEST_TRANSACTION);
    }

    /// The servers go away: nothing is answered until they are [back](Self::start).
    pub fn stop(&self) {
        self.lock().away = true;
    }

    /// The servers come back, with all that was committed. Of commits that were under way nobody knows, transactions that
    /// were open are too old, watches are lost, and versions have leapt ahead.
    pub fn start(&self) {
        let mut state = self.lock();
        state.away = false;
        state.life += 1;
        state.database.pass(LEAP);
        let woken = std::mem::take(&mut state.waiting);
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        woken.into_iter().chain(sleepers.into_values()).for_each(Waker::wake);
    }

    /// Waits until the servers are there; answers whether they were away.
    async fn is_back(&self) -> bool {
        let mut was_away = false;
        poll_fn(|context| {
            let mut state = self.lock();
            if state.away {
                was_away = true;
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        was_away
    }

    /// What reading so many keys at a version costs.
    fn takes_time(&self, keys: usize, at: u64) -> Result<(), Code> {
        let mut state = self.lock();
        let length = state.micros_per_key.saturating_mul(keys as u64);
        state.database.pass(length);
        let aged = state.database.check_age(at);
        state.tally.too_old += u32::from(aged.is_err());
        aged
    }

    /// How many keys stand there.
    pub fn keys(&self) -> usize {
        self.lock().database.keys()
    }

    /// A new transaction, before which a late commit may land.
    fn transaction(&self) -> MemoryTransaction {
        let mut state = self.lock();
        state.tally.begun += 1;
        let lands = state.chance(LANDS) && state.land_one();
        let sleepers = if lands { std::mem::take(&mut state.sleepers) } else { BTreeMap::new() };
        drop(state);
        sleepers.into_values().for_each(Waker::wake);
        MemoryTransaction::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    fn begin(&self, _read: Read) -> Result<Box<dyn Transaction>, Code> {
        Ok(Box::new(self.transaction()))
    }
}

struct State {
    database: Database,
    breakage: Breakage,
    tally: Tally,
    random: u64,
    /// Commits that have been answered as unknown and are still under way, at most [`LATE`].
    late: Vec<Commit>,
    /// Watches that wait for the next commit.
    sleepers: BTreeMap<u64, Waker>,
    next_sleeper: u64,
    /// The largest transaction that is taken.
    largest: usize,
    micros_per_key: u64,
    /// Whether nobody is served, and who waits for that to end.
    away: bool,
    waiting: Vec<Waker>,
    /// How often the servers have come back.
    life: u32,
}

impl State {
    /// Whether something happens that happens so often, per mille.
    fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1_000) < u64::from(per_mille)
    }

    /// A number below `bound`, from the seed (splitmix64).
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn apply(&mut self, commit: &Commit) -> Result<u64, Code> {
        let share = self.chance(self.breakage.shared_version);
        let applied = self.database.commit(commit, share);
        match applied {
            Ok((_, shared)) => {
                self.tally.applied += 1;
                self.tally.shared += u32::from(shared);
            }
            Err(Code::NOT_COMMITTED) => self.tally.conflicts += 1,
            Err(_) => self.tally.too_old += 1,
        }
        applied.map(|(version, _)| version)
    }

    /// A commit that was under way when the servers went.
    fn lose(&mut self) -> Result<u64, Code> {
        self.tally.unknown += 1;
        Err(Code::COMMIT_UNKNOWN_RESULT)
    }

    /// Commits as the breakage allows.
    fn commit(&mut self, commit: Commit) -> Result<u64, Code> {
        if let Some(code) = commit.refused {
            return Err(code);
        }
        self.tally.largest = self.tally.largest.max(commit.size());
        if commit.size() > self.largest {
            return Err(Code::TRANSACTION_TOO_LARGE);
        }
        let Breakage { refused, unknown_applied, unknown_lost, unknown_late, timed_out, .. } = self.breakage;
        if self.chance(refused) {
            return Err(Code::NOT_COMMITTED);
        }
        if self.chance(unknown_lost) {
            self.tally.unknown += 1;
            return Err(Code::COMMIT_UNKNOWN_RESULT);
        }
        for (per_mille, code) in
            [(unknown_late, Code::COMMIT_UNKNOWN_RESULT), (timed_out, Code::TRANSACTION_TIMED_OUT)]
        {
            if self.chance(per_mille) && self.late.len() < LATE {
                self.tally.unknown += 1;
                self.late.push(commit);
                return Err(code);
            }
        }
        let version = self.apply(&commit)?;
        if self.chance(unknown_applied) {
            self.tally.unknown += 1;
            return Err(Code::COMMIT_UNKNOWN_RESULT);
        }
        Ok(version)
    }

    /// Lands one of the late commits; answers whether there was one.
    fn land_one(&mut self) -> bool {
        if self.late.is_empty() {
            return false;
        }
        let n = usize::try_from(self.below(self.late.len() as u64)).unwrap_or(0);
        let commit = self.late.swap_remove(n);
        self.tally.late += u32::from(self.apply(&commit).is_ok());
        true
    }
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

/// By how many versions FoundationDB leaps when its servers change: a hundred seconds.
const LEAP: u64 = 100_000_000;
/// How often a late commit lands before a transaction begins, per mille.
const LANDS: u32 = 300;
/// So many commits may be late at once; more are answered at once.
const LATE: usize = 64;
