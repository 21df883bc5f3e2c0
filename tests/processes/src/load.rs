//! Callers that visit accounts and move money between them while something happens to the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix::clock::sleep;
use archipelago::prelude::*;
use archipelago_protocol::identity::Generation;
use archipelago_runtime::CallOptions;

use crate::account::{Account, Post, Visit};
use crate::journal::machine_nanos;
use crate::oracle::Ledger;

/// How many accounts there are.
pub const ACCOUNTS: usize = 96;

/// Whether calls may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// None may: nothing breaks.
    AllAnswered,
    /// They may, and are given up early.
    MayFail,
}

/// Callers that are at work.
pub struct Load {
    over: Arc<AtomicBool>,
    callers: Vec<tokio::task::JoinHandle<Book>>,
}

/// What the callers know.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// The visits.
    pub ledger: Ledger,
    /// The transfers, all of them done in the end.
    pub transfers: u64,
    /// How long the longest call took, answered or not.
    pub slowest: Duration,
}

impl Load {
    /// Sends the callers to work through `node`.
    pub fn begin(node: &Node, calls: Calls) -> Self {
        Self::begin_beside(0, node, calls)
    }

    /// The same, beside so many other loads on the same accounts: each account tells all these callers apart.
    pub fn begin_beside(others: u8, node: &Node, calls: Calls) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let send = |number| {
            // Later than all numbers of an earlier load: an account posts what is new to it.
            let first = machine_nanos();
            let caller = Caller { node: node.clone(), number, calls, first, book: Book::default() };
            actix::spawn(caller.work(Arc::clone(&over)))
        };
        let first = others * CALLERS;
        Self { callers: (first..first + CALLERS).map(send).collect(), over }
    }

    /// Calls them back.
    ///
    /// # Panics
    ///
    /// If a caller saw something wrong, or hardly anything.
    pub async fn end(self) -> Book {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Book::default();
        for caller in self.callers {
            let book = actix::clock::timeout(LONGEST_POST * 2, caller).await.expect("a caller comes back");
            let book = book.expect("no caller saw anything wrong");
            assert!(book.ledger.acknowledged() > 10 && book.transfers > 0, "there was load: {book:?}");
            all.add(&book);
        }
        all
    }
}

impl Book {
    /// Adds what others know.
    pub fn add(&mut self, other: &Self) {
        self.ledger.add(&other.ledger);
        self.transfers += other.transfers;
        self.slowest = self.slowest.max(other.slowest);
    }
}

struct Caller {
    node: Node,
    number: u8,
    calls: Calls,
    first: u64,
    book: Book,
}

impl Caller {
    async fn work(mut self, over: Arc<AtomicBool>) -> Book {
        let first = usize::from(self.number % CALLERS);
        let own: Vec<usize> = (first..ACCOUNTS).step_by(usize::from(CALLERS)).collect();
        let mut seen = vec![(Generation::new(0), 0); own.len()];
        while !over.load(Ordering::Relaxed) {
            for (account, seen) in own.iter().zip(&mut seen) {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                self.visit(*account, seen).await;
                sleep(PAUSE).await;
            }
            self.transfer().await;
        }
        self.book
    }

    /// This caller visits the account once at a time: of what was acknowledged nothing is lost, and generations do not fall.
    async fn visit(&mut self, account: usize, seen: &mut (Generation, u64)) {
        self.book.ledger.attempt(account);
        let began = Instant::now();
        let visited = self.account(account).send_with(Visit, self.options()).await;
        self.took(began);
        match visited {
            Ok(visited) => {
                let now = (visited.stamp.generation, visited.visits);
                assert!(now.0 >= seen.0 && now.1 > seen.1, "{account} answered {now:?} after {seen:?}");
                *seen = now;
                self.book.ledger.acknowledge(account);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Moves money from one account to another; what is not answered is said again until it is.
    async fn transfer(&mut self) {
        self.book.transfers += 1;
        let number = self.first + self.book.transfers;
        let spread =
            usize::from(self.number) * 31 + usize::try_from(self.book.transfers).unwrap_or_default() * 7;
        let (from, to) = (spread % ACCOUNTS, (spread * 5 + 1) % ACCOUNTS);
        let amount = i64::from(self.number) + 1;
        // An account posts each number once, so one that pays itself would only pay.
        if from != to {
            self.post(from, number, -amount).await;
            self.post(to, number, amount).await;
        }
    }

    async fn post(&mut self, account: usize, number: u64, amount: i64) {
        let until = Instant::now() + LONGEST_POST;
        loop {
            let post = Post { caller: self.number, number, amount };
            let began = Instant::now();
            let posted = self.account(account).send_with(post, self.options()).await;
            self.took(began);
            match posted {
                Ok(_) => return,
                Err(error) => self.failed(&error),
            }
            assert!(Instant::now() < until, "account {account} has not answered for {LONGEST_POST:?}");
            sleep(PAUSE).await;
        }
    }

    fn account(&self, account: usize) -> ActorRef<Account> {
        self.node.actor(account.to_string())
    }

    fn took(&mut self, began: Instant) {
        self.book.slowest = self.book.slowest.max(began.elapsed());
    }

    fn failed(&self, error: &CallError) {
        assert!(self.calls == Calls::MayFail, "a call failed: {error}");
    }

    fn options(&self) -> CallOptions {
        CallOptions::new().timeout(match self.calls {
            Calls::AllAnswered => Duration::from_secs(20),
            Calls::MayFail => CALL_LIMIT,
        })
    }
}

/// How long a call may take that may fail.
pub const CALL_LIMIT: Duration = Duration::from_secs(3);

const CALLERS: u8 = 8;
/// So that callers, members and the store have room on two cores.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_POST: Duration = Duration::from_secs(90);
