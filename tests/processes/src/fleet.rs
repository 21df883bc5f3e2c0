//! A cluster of processes that a test hurts, the node it calls them through, and the judgement in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use actix::clock::sleep;
use archipelago::prelude::*;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::MemberStatus;
use archipelago_runtime::CallOptions;
use tempfile::TempDir;

use crate::account::{Account, State, Visit};
use crate::bell::Bell;
use crate::journal::Journals;
use crate::load::{ACCOUNTS, Book};
use crate::member::{MemberProcess, Settings, member};
use crate::oracle::{Ledger, Verdict, check_sum, judge};

/// Members in processes of their own, and a node here that hosts nothing.
pub struct Fleet {
    /// The node here.
    pub node: Node,
    /// The members that run.
    pub members: Vec<MemberProcess>,
    program: &'static str,
    settings: Settings,
    folder: TempDir,
    /// Visits outside of any load, and of loads that are over.
    visits: Ledger,
}

impl Fleet {
    /// Starts `program` so many times, and waits until all are up.
    ///
    /// # Panics
    ///
    /// If they are not within 30 s.
    pub async fn start(program: &'static str, settings: Settings, members: usize) -> Self {
        let start = |_, folder: &Path, settings: &Settings| MemberProcess::start(program, settings, folder);
        // The addresses of the members are lower, so that none of the low places in the cluster is taken here.
        Self::start_with(program, settings, members, "127.0.0.9:0", start).await
    }

    /// The same, with members that `start` starts, each told its number; the node here listens at `bind`.
    ///
    /// # Panics
    ///
    /// If they are not up within 30 s.
    pub async fn start_with(
        program: &'static str,
        settings: Settings,
        members: usize,
        bind: &str,
        start: impl Fn(usize, &Path, &Settings) -> MemberProcess,
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("archipelago-test-").tempdir();
        let folder = folder.expect("the temporary folder can be written");
        let processes = (0..members).map(|number| start(number, folder.path(), &settings)).collect();
        let builder = member(&settings).set("transport.bind", bind);
        let started = builder.remote_actor::<Account>().remote_actor::<Bell>().start().await;
        let node = started.unwrap_or_else(|error| panic!("the node here does not start: {error}"));
        let fleet = Self { node, members: processes, program, settings, folder, visits: Ledger::default() };
        fleet.all_up().await;
        fleet
    }

    /// Starts one more.
    pub fn add(&mut self) {
        self.members.push(MemberProcess::start(self.program, &self.settings, self.folder.path()));
    }

    /// Waits until every member that runs is up, and nobody else is there.
    ///
    /// # Panics
    ///
    /// If that takes longer than 30 s.
    pub async fn all_up(&self) {
        self.count_up(self.members.len() + 1).await;
    }

    /// Waits until the node here sees so many members, itself among them, and all are up and reached.
    ///
    /// # Panics
    ///
    /// If that takes longer than 30 s.
    pub async fn count_up(&self, count: usize) {
        let until = Instant::now() + CONVERGE_LIMIT;
        loop {
            let members = self.node.members();
            let good =
                |one: &archipelago_runtime::ClusterMember| one.status == MemberStatus::Up && !one.suspect;
            if members.len() == count && members.iter().all(good) {
                return;
            }
            assert!(Instant::now() < until, "{count} members are not up: {members:?}");
            sleep(LOOK).await;
        }
    }

    /// Visits every account; which are where.
    pub async fn homes(&mut self) -> BTreeMap<NodeId, Vec<usize>> {
        let mut homes: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for account in 0..ACCOUNTS {
            let home = self.answered(account, &BTreeSet::new()).await;
            homes.entry(home).or_default().push(account);
        }
        homes
    }

    /// How long it takes from now until these accounts answer from nodes that are not among the `gone`.
    pub async fn time_until_answered(&mut self, accounts: &[usize], gone: &BTreeSet<NodeId>) -> Duration {
        let since = Instant::now();
        for account in accounts {
            self.answered(*account, gone).await;
        }
        since.elapsed()
    }

    /// Visits an account until it answers. What was on its way when its node died is unknown; what is asked afterwards is
    /// answered.
    async fn answered(&mut self, account: usize, gone: &BTreeSet<NodeId>) -> NodeId {
        let until = Instant::now() + ANSWER_LIMIT;
        loop {
            self.visits.attempt(account);
            // What was given to a node that fell silent waits for its deadline: somebody who is in a hurry asks again.
            let soon = CallOptions::new().timeout(Duration::from_secs(1));
            let visit = self.node.actor::<Account>(account.to_string()).send_with(Visit, soon);
            match visit.await {
                Ok(visited) => {
                    self.visits.acknowledge(account);
                    if !gone.contains(&visited.node) {
                        return visited.node;
                    }
                }
                Err(error) => assert!(Instant::now() < until, "account {account} does not answer: {error}"),
            }
            assert!(Instant::now() < until, "account {account} stays where it was");
            sleep(LOOK).await;
        }
    }

    /// What the members have written down so far.
    pub fn journals(&self) -> Journals {
        Journals::read(self.folder.path())
    }

    /// Waits until the journals say that `begin` happened so many times.
    ///
    /// # Panics
    ///
    /// If that takes longer than 30 s.
    pub async fn noted(&self, begin: &str, times: usize) {
        let until = Instant::now() + CONVERGE_LIMIT;
        while self.journals().events_like(begin) < times {
            assert!(
                Instant::now() < until,
                "no member noted {begin:?} {times} times: {:?}",
                self.journals().events
            );
            sleep(LOOK).await;
        }
    }

    /// Judges everything that happened: the journals, the ledger of the load and of this fleet, and the sum of all accounts.
    ///
    /// # Panics
    ///
    /// If the oracle objects.
    pub async fn judge(&self, book: &Book) -> Verdict {
        let mut ledger = self.visits.clone();
        ledger.add(&book.ledger);
        let mut balances = Vec::new();
        for account in 0..ACCOUNTS {
            let patient = CallOptions::new().timeout(Duration::from_secs(20));
            let state = self.node.actor::<Account>(account.to_string()).send_with(State, patient).await;
            let state = state.unwrap_or_else(|error| panic!("account {account} does not answer: {error}"));
            ledger.check(account, state.visits).unwrap_or_else(|objection| panic!("{objection}"));
            balances.push(state.balance);
        }
        check_sum(balances).unwrap_or_else(|objection| panic!("{objection}"));
        judge(self.journals().marks).unwrap_or_else(|objection| panic!("{objection}"))
    }

    /// Ends the node here; the members end with the fleet.
    ///
    /// # Panics
    ///
    /// If it does not stop well.
    pub async fn end(self) {
        self.node.stop().await.expect("the node here stops");
    }
}

const LOOK: Duration = Duration::from_millis(10);
const CONVERGE_LIMIT: Duration = Duration::from_secs(30);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
