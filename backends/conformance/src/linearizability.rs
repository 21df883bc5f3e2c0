//! Whether concurrent claims, releases, hand-overs and lookups can be put in one order that explains all answers.
//!
//! A [`Workload`] makes clients that want the same few keys; a [`History`] records when each request was sent and
//! answered; [`History::check`] looks, key by key, for an order in which every answer is right and generations grow. The
//! clients are plain futures: an engine runs them on as many threads or tasks as it has, or together on one. [`Chaos`] keeps
//! many of them busy while somebody hurts the server.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use archipelago_protocol::contract::{Directory, DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;

use crate::Rng;
use crate::directory_rules::{Fixture, info, shard};

mod chaos;
mod history;
mod key_spec;
mod ledger;

pub use chaos::{Chaos, ChaosError, ChaosRun, Summary};
pub use history::{History, NotLinearizable};
use key_spec::Owned;
pub use key_spec::{Op, Ret};
pub use ledger::BrokenPromise;

/// Concurrent claims, releases, hand-overs and lookups of a few keys can be put in one order.
///
/// Proves: R208, R212
pub async fn ownership_is_linearizable(f: Fixture) {
    for seed in 0..6 {
        let workload = Workload { seed, ..Workload::default() };
        let history = workload.prepare(&*f.directory).await;
        let clients = workload.clients(&f.directory, &history);
        futures_util::future::join_all(clients).await;
        history.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What all choices are drawn from; workloads of different seeds use different keys and sessions.
    pub seed: u64,
    /// How many clients there are, each with a session of its own.
    pub clients: u64,
    /// How many requests each of them makes, about one key after the other. The search for an order tries every
    /// interleaving of what was asked about a key, if it must: keep to four requests per client and key.
    pub operations: u32,
    /// How many keys they share.
    pub keys: u32,
    /// Whether they look keys up. An engine whose reads may be old says no.
    pub lookups: bool,
}

impl Default for Workload {
    fn default() -> Self {
        Self { seed: 0, clients: 3, operations: 12, keys: 3, lookups: true }
    }
}

/// A client of a workload, to be run to its end.
pub type Client = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Workload {
    /// Opens the clients' sessions; the history that they will make.
    pub async fn prepare(&self, directory: &dyn Directory) -> Arc<History> {
        self.open_sessions(directory).await;
        Arc::new(History::default())
    }

    /// The clients.
    pub fn clients(&self, directory: &Arc<dyn Directory>, history: &Arc<History>) -> Vec<Client> {
        let client = |n| -> Client {
            let (workload, directory, history) = (*self, Arc::clone(directory), Arc::clone(history));
            Box::pin(async move { workload.run(n, &*directory, &history).await })
        };
        (0..self.clients).map(client).collect()
    }

    async fn open_sessions(&self, directory: &dyn Directory) {
        for client in 0..self.clients {
            let id = self.session(client);
            directory.open_session(session(id), 1).await.expect("opens");
            directory.announce(&info(id)).await.expect("announces");
        }
    }

    async fn run(&self, client: u64, directory: &dyn Directory, history: &History) {
        let mut asker = self.asker(client, 0);
        for turn in 0..self.operations {
            asker.ask(directory, history, &self.key(turn % self.keys.max(1))).await;
        }
    }

    /// One client; in every round it draws other requests.
    fn asker(&self, client: u64, round: u32) -> Asker<'_> {
        let seed = self.seed.wrapping_mul(0x1_0001).wrapping_add(client);
        let rng = Rng::new(seed.wrapping_add(u64::from(round) << 32));
        Asker { workload: self, client, rng, thread: client, known: BTreeMap::new() }
    }

    fn draw(&self, rng: &mut Rng, client: u64, known: Option<&Placement>) -> Op {
        let by = self.session(client);
        match (rng.below(10), known.map(Owned::of)) {
            (0..2, _) if self.lookups => Op::Lookup,
            (2..5, Some(owned)) => Op::Release(owned),
            (5..7, Some(owned)) => Op::Transfer { owned, to: self.session(rng.below(self.clients)) },
            _ => Op::Claim { by },
        }
    }

    fn key(&self, n: u32) -> OwnedKey {
        shard(&format!("Linear{}", self.seed), n)
    }

    fn session(&self, client: u64) -> u64 {
        1_000 + self.seed * 100 + client
    }
}

/// A client, and what it has been told.
struct Asker<'a> {
    workload: &'a Workload,
    client: u64,
    rng: Rng,
    /// As whom the history knows it.
    thread: u64,
    known: BTreeMap<OwnedKey, Placement>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Answered,
    /// Certainly nothing was done.
    Refused,
    /// Nobody knows whether it happened.
    Unknown,
}

impl Asker<'_> {
    /// Makes one request about `key`.
    async fn ask(&mut self, directory: &dyn Directory, history: &History, key: &OwnedKey) -> Ending {
        let op = self.workload.draw(&mut self.rng, self.client, self.known.get(key));
        history.invoke(self.thread, key, op.clone());
        let Some(ret) = carry_out(directory, key, &op).await else {
            // For the history it is under way for ever, and may happen at any time; another thread goes on.
            self.thread += self.workload.clients;
            return Ending::Unknown;
        };
        if let Some(owned) = ret.owned(&op) {
            self.known.insert(key.clone(), owned.placement(key));
        }
        let ending = if ret == Ret::Nothing { Ending::Refused } else { Ending::Answered };
        history.answer(self.thread, key, ret);
        ending
    }
}

/// A session that outlives every workload, so that no engine removes it meanwhile.
fn session(id: u64) -> Session {
    Session { id: NodeId::new(id), ttl: Millis(60_000) }
}

/// Asks the directory; `None` if the outcome is unknown.
async fn carry_out(directory: &dyn Directory, key: &OwnedKey, op: &Op) -> Option<Ret> {
    let answer = match op {
        Op::Claim { by } => directory.claim(key, session(*by), None).await.map(|decision| match decision {
            PlacementDecision::Placed(placement) => Ret::Placed(placement.generation.as_u64()),
            PlacementDecision::AlreadyPlaced(record) | PlacementDecision::Raced { winner: record } => {
                Ret::Held(Owned::of(&record.placement))
            }
        }),
        Op::Release(owned) => directory.release(&owned.placement(key)).await.map(|()| Ret::Released),
        Op::Transfer { owned, to } => {
            let given = directory.transfer(&owned.placement(key), session(*to), None).await;
            given.map(|placement| Ret::Placed(placement.generation.as_u64()))
        }
        Op::Lookup => {
            let found = directory.lookup(key).await;
            found.map(|record| Ret::Found(record.map(|record| Owned::of(&record.placement))))
        }
    };
    match (answer, op) {
        (Ok(ret), _) => Some(ret),
        // A claim gives up after a few rounds of losing; nothing was written.
        (Err(DirectoryError::Conflict { .. }), Op::Claim { .. }) => Some(Ret::Nothing),
        (Err(DirectoryError::Conflict { current }), _) => {
            Some(Ret::NotOwner(current.map(|record| Owned::of(&record.placement))))
        }
        (Err(DirectoryError::Unavailable { .. }), _) => Some(Ret::Nothing),
        // Whether it was carried out or not, nothing was written.
        (Err(DirectoryError::Unknown { .. }), Op::Lookup) => Some(Ret::Nothing),
        (Err(DirectoryError::Unknown { .. }), _) => None,
        (Err(other), _) => panic!("{key}: {op:?}: {other}"),
    }
}

impl Owned {
    fn of(placement: &Placement) -> Self {
        Self { node: placement.node.as_u64(), generation: placement.generation.as_u64() }
    }

    fn placement(self, key: &OwnedKey) -> Placement {
        let (node, generation) = (NodeId::new(self.node), Generation::new(self.generation));
        Placement { key: key.clone(), node, generation }
    }
}
