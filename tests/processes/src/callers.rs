//! Callers in several datacenters at once, on a thread of their own: they go on while a test kills processes and waits.
//!
//! Each account has its home in one of the datacenters, which another one gave it: so both have written it down, and silence of
//! one brings nobody to life in the other.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix::clock::{sleep, timeout};
use archipelago::CallOptions;
use archipelago::datacenter::{DataCenterId, DataCenterState};
use archipelago::prelude::*;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::account::{Account, State, Stated};
use crate::load::{ACCOUNTS, Book, Calls, Load};
use crate::member::{Settings, member};
use crate::oracle::check_sum;

/// Callers that are at work in every datacenter.
pub struct Callers {
    orders: Sender<Order>,
    thread: JoinHandle<Book>,
}

/// Waits until all accounts answer, and says how long that took.
struct Order(SyncSender<Duration>);

/// A datacenter with callers: its name, and what nodes of it are told.
pub type Island = (&'static str, Settings);

impl Callers {
    /// Starts a node in each of these datacenters that hosts nothing, gives every account its home, and sends callers to work
    /// through every node.
    ///
    /// # Panics
    ///
    /// If that cannot be.
    pub fn begin(islands: Vec<Island>) -> Self {
        let (orders, told) = channel(1);
        let (ready, is_ready) = sync_channel(1);
        let thread = std::thread::spawn(move || actix::System::new().block_on(work(islands, ready, told)));
        is_ready.recv().expect("the callers begin");
        Self { orders, thread }
    }

    /// Waits until every account answers in every datacenter, and says how long that took.
    ///
    /// # Panics
    ///
    /// If one does not within a minute, or a caller saw something wrong.
    pub fn until_all_answer(&self) -> Duration {
        let (tell, told) = sync_channel(1);
        self.orders.try_send(Order(tell)).expect("the callers are at work");
        told.recv().expect("all accounts answer")
    }

    /// Calls them back. Of what was acknowledged nothing is lost, nothing is there that nobody wrote, and all money is there.
    ///
    /// # Panics
    ///
    /// If not.
    pub fn end(self) -> Book {
        drop(self.orders);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// In which datacenter of so many an account has its home.
pub fn home_of(account: usize, islands: usize) -> usize {
    account % islands
}

async fn work(islands: Vec<Island>, ready: SyncSender<()>, mut orders: Receiver<Order>) -> Book {
    let nodes = join_all(islands.iter().map(|(_, settings)| start(settings))).await;
    let names: Vec<_> = islands.iter().map(|(name, _)| *name).collect();
    join_all(nodes.iter().map(|node| until_all_are_active(node, &names))).await;
    settle(&nodes, &names).await;
    let loads = (0..).zip(&nodes).map(|(others, node)| Load::begin_beside(others, node, Calls::MayFail));
    let loads: Vec<Load> = loads.collect();
    ready.send(()).expect("the test waits");
    while let Some(Order(done)) = orders.recv().await {
        // The test may have failed meanwhile.
        let _ = done.send(until_all_answer(&nodes).await);
    }
    let mut book = Book::default();
    for load in loads {
        book.add(&load.end().await);
    }
    check(&nodes, &book).await;
    for node in nodes {
        node.stop().await.expect("a node that hosts nothing stops");
    }
    book
}

async fn start(settings: &Settings) -> Node {
    // The addresses of the members are lower, so that none of the low places in a cluster is taken here.
    let builder = member(settings).set("transport.bind", "127.0.0.9:0").remote_actor::<Account>();
    builder.start().await.unwrap_or_else(|error| panic!("a node of the callers does not start: {error}"))
}

async fn until_all_are_active(node: &Node, names: &[&str]) {
    let until = Instant::now() + LIMIT;
    let active = |name: &&str| {
        let id = DataCenterId::new(name).expect("a plain name is an id");
        node.datacenters().get(&id).is_some_and(|entry| entry.standing == DataCenterState::Active)
    };
    while !names.iter().all(active) {
        assert!(Instant::now() < until, "the callers do not know all datacenters: {:?}", node.datacenters());
        sleep(LOOK).await;
    }
}

/// The node of another datacenter says where an account has its home.
async fn settle(nodes: &[Node], names: &[&str]) {
    let place = |account: usize| async move {
        let home = home_of(account, names.len());
        let abroad = &nodes[(home + 1) % nodes.len()];
        let placed = abroad.spawn_in(names[home], Account::KIND, &account.to_string()).await;
        placed.unwrap_or_else(|error| panic!("account {account} is not placed: {error}"));
    };
    stream::iter(0..ACCOUNTS).map(place).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

async fn until_all_answer(nodes: &[Node]) -> Duration {
    let since = Instant::now();
    let all = nodes.iter().flat_map(|node| (0..ACCOUNTS).map(move |account| answered(node, account)));
    let all = stream::iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
    timeout(LIMIT, all).await.expect("all accounts answer in every datacenter");
    since.elapsed()
}

async fn answered(node: &Node, account: usize) {
    // What was given to a node that fell silent waits for its deadline: somebody who is in a hurry asks again.
    let soon = CallOptions::new().timeout(Duration::from_secs(1));
    while node.actor::<Account>(account.to_string()).send_with(State, soon).await.is_err() {
        sleep(LOOK).await;
    }
}

async fn check(nodes: &[Node], book: &Book) {
    let mut balances = Vec::new();
    for account in 0..ACCOUNTS {
        let patient = CallOptions::new().timeout(Duration::from_secs(20));
        let asked =
            nodes.iter().map(|node| node.actor::<Account>(account.to_string()).send_with(State, patient));
        let of = |state: Result<Stated, CallError>| {
            let state = state.unwrap_or_else(|error| panic!("account {account} does not answer: {error}"));
            (state.stamp, state.visits, state.balance)
        };
        let states: Vec<_> = join_all(asked).await.into_iter().map(of).collect();
        assert!(states.iter().all(|state| *state == states[0]), "account {account} lives once: {states:?}");
        let (_, visits, balance) = states[0];
        book.ledger.check(account, visits).unwrap_or_else(|objection| panic!("{objection}"));
        balances.push(balance);
    }
    check_sum(balances).unwrap_or_else(|objection| panic!("{objection}"));
}

const AT_ONCE: usize = 64;
const LOOK: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);
