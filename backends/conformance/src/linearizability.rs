//! Whether concurrent claims, releases, hand-overs and lookups can be put in one order that explains all answers.
//!
//! A [`Workload`] makes clients that want the same few keys; a [`History`] records when each request was sent and
//! answered; [`History::check`] looks, key by key, for an order in which every answer is right and generations grow. The
//! clients are plain futures: an engine runs them on as many threads or tasks as it has, or together on one.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::contract::{Directory, DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

use crate::Rng;
use crate::directory_rules::{Fixture, info, session, shard};

mod key_spec;

use key_spec::{KeySpec, Owned};
pub use key_spec::{Op, Ret};

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
        for client in 0..self.clients {
            let id = self.session(client);
            directory.open_session(session(id), 1).await.expect("opens");
            directory.announce(&info(id)).await.expect("announces");
        }
        let keys = (0..self.keys).map(|n| self.key(n));
        let testers = keys.map(|key| (key, LinearizabilityTester::new(KeySpec::default()))).collect();
        Arc::new(History { recorded: Mutex::new(Recorded { testers, answered: 0 }) })
    }

    /// The clients.
    pub fn clients(&self, directory: &Arc<dyn Directory>, history: &Arc<History>) -> Vec<Client> {
        let client = |n| -> Client {
            let (workload, directory, history) = (*self, Arc::clone(directory), Arc::clone(history));
            Box::pin(async move { workload.run(n, &*directory, &history).await })
        };
        (0..self.clients).map(client).collect()
    }

    async fn run(&self, client: u64, directory: &dyn Directory, history: &History) {
        let mut rng = Rng::new(self.seed.wrapping_mul(0x1_0001).wrapping_add(client));
        let mut thread = client;
        let mut known: BTreeMap<OwnedKey, Placement> = BTreeMap::new();
        for turn in 0..self.operations {
            let key = self.key(turn % self.keys.max(1));
            let op = self.draw(&mut rng, client, known.get(&key));
            history.invoke(thread, &key, op.clone());
            match carry_out(directory, &key, &op).await {
                Some(ret) => {
                    if let Some(owned) = ret.owned(&op) {
                        known.insert(key.clone(), owned.placement(&key));
                    }
                    history.answer(thread, &key, ret);
                }
                // Nobody knows whether it happened: for the history it is still under way, so another thread goes on.
                None => thread += self.clients,
            }
        }
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

/// What clients asked and were answered, and in which order.
pub struct History {
    recorded: Mutex<Recorded>,
}

struct Recorded {
    testers: BTreeMap<OwnedKey, LinearizabilityTester<u64, KeySpec>>,
    answered: usize,
}

/// No order of the requests explains the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLinearizable {
    /// The key.
    pub key: OwnedKey,
    /// What was recorded about it, for people.
    pub history: String,
}

impl fmt::Display for NotLinearizable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no order explains what was answered about {}: {}", self.key, self.history)
    }
}

impl std::error::Error for NotLinearizable {}

impl History {
    /// Looks for an order that explains everything, key by key; answers how many requests were answered.
    ///
    /// # Errors
    ///
    /// There is none for a key.
    pub fn check(&self) -> Result<usize, NotLinearizable> {
        let recorded = self.lock();
        for (key, tester) in &recorded.testers {
            if tester.serialized_history().is_none() {
                return Err(NotLinearizable { key: key.clone(), history: format!("{tester:#?}") });
            }
        }
        Ok(recorded.answered)
    }

    fn invoke(&self, thread: u64, key: &OwnedKey, op: Op) {
        self.lock().tester(key).on_invoke(thread, op).expect("one request at a time");
    }

    fn answer(&self, thread: u64, key: &OwnedKey, ret: Ret) {
        let mut recorded = self.lock();
        recorded.answered += 1;
        recorded.tester(key).on_return(thread, ret).expect("it was sent");
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    fn tester(&mut self, key: &OwnedKey) -> &mut LinearizabilityTester<u64, KeySpec> {
        self.testers.get_mut(key).expect("a key of the workload")
    }
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
