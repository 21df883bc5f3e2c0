//! Ground truth about one node: what is stored, which hooks run, and what became of tells.
//!
//! What holds for every message and activation is checked by the ledger; here is what only this workload knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_backend_conformance::Rng;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{Generation, NodeId};

use super::bank::Bank;
use super::report::note;
use crate::common::{self, ActorNumber, Ground, Home, Ledger, Letter, Reported};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// An activation of this workload.
pub(crate) type Span = common::Span<Truth>;
/// A handler of this workload.
pub(crate) type Running = common::Running<Truth>;

/// Everything that is true in one run.
pub(crate) struct Truth {
    ledger: Ledger<()>,
    rng: Mutex<Rng>,
    inner: Mutex<Inner>,
    bank: Bank,
}

#[derive(Default)]
struct Inner {
    actors: BTreeMap<u64, ActorFacts>,
}

/// One actor, over all its activations.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActorFacts {
    top_life: u64,
    /// The last life in which it was activated, and the generation then.
    generation: Option<(u64, Generation)>,
    /// The hooks that run now, by life.
    phases: BTreeMap<u64, Phase>,
    /// What its storage holds.
    value: u64,
    acked: u64,
    attempted: u64,
    pub(crate) tells_accepted: u64,
    pub(crate) tells_started: u64,
    pub(crate) dead_letters: u64,
}

/// Whether a hook of an actor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Activating,
    Farewell,
}

impl Ground for Truth {
    type More = ();

    fn ledger(&self) -> &Ledger<()> {
        &self.ledger
    }
}

impl Truth {
    pub(crate) fn new(world: &World, seed: u64) -> Self {
        let (ledger, rng) = (Ledger::new(world), Mutex::new(Rng::new(seed)));
        Self { ledger, rng, inner: Mutex::default(), bank: Bank::default() }
    }

    // ---- what senders note ----

    /// A message is about to be sent. Answers with its ticket.
    pub(crate) fn sending(&self, key: u64, sender: Option<u64>, tell: bool) -> u64 {
        let mut inner = self.lock();
        let actor = inner.actor(key);
        actor.attempted += 1;
        match actor.phases.values().next_back() {
            Some(Phase::Activating) => sometimes!("message sent during activation"),
            Some(Phase::Farewell) => sometimes!("message sent during farewell"),
            None => {}
        }
        drop(inner);
        self.ledger.sending(Letter { to: actor_number(key), sender, tell, more: () })
    }

    /// The sender was told something.
    pub(crate) fn reported(&self, ticket: u64, told: Reported) {
        let (letter, started) = self.ledger.reported(ticket, told);
        let key = letter.to.key;
        match told {
            Reported::Accepted => self.lock().actor(key).tells_accepted += 1,
            Reported::Answered(_) => {
                let mut inner = self.lock();
                inner.actor(key).acked += 1;
                self.check_value(&inner, key);
            }
            Reported::Dropped if started => sometimes!("call cancelled while it ran"),
            Reported::Dropped => {
                sometimes!("call cancelled before it started");
                self.ledger.must_not_start(ticket);
            }
            Reported::NotStarted | Reported::Started | Reported::Unknown => {}
        }
    }

    /// Notes the end of an ask that was made on its actor's arbiter, or from `outside` of it.
    pub(crate) fn answered(&self, ticket: u64, answer: &Result<u64, CallError>, outside: bool) {
        let told = match answer {
            Ok(reply) => Reported::Answered(*reply),
            // A caller outside may have given up by itself; then it cannot know, and says the worse.
            Err(CallError::Timeout { started: true }) if outside => Reported::Unknown,
            Err(error) => {
                note(error);
                if error.is_not_started() { Reported::NotStarted } else { Reported::Started }
            }
        };
        self.reported(ticket, told);
    }

    /// A dead letter for this actor was published.
    pub(crate) fn dead_letter(&self, key: u64) {
        sometimes!("tell became a dead letter");
        self.lock().actor(key).dead_letters += 1;
    }

    // ---- what actors note ----

    /// An activation begins in this life of the node.
    pub(crate) fn activation(self: &Arc<Self>, key: u64, home: &Home, node: NodeId) -> Arc<Span> {
        Span::new(self, self.ledger.activation(actor_number(key), home, node))
    }

    /// The activation was told its generation.
    pub(crate) fn generation(&self, span: &Span, generation: Generation) {
        let (key, life) = (span.at().actor.key, span.at().life);
        let before = self.lock().actor(key).generation.replace((life, generation));
        let grows = before.is_none_or(
            |(last, before)| if life > last { generation > before } else { generation == before },
        );
        self.ledger.check(Invariant::GenerationGrows, grows, || {
            format!("actor {key} has {generation:?} in life {life}, after {before:?}")
        });
    }

    /// A handler begins.
    pub(crate) fn started(&self, ticket: u64, span: &Arc<Span>) -> Running {
        let (key, life) = (span.at().actor.key, span.at().life);
        let letter = self.ledger.started(ticket, span.at());
        let mut inner = self.lock();
        let actor = inner.actor(key);
        actor.tells_started += u64::from(letter.tell);
        let top = actor.top_life;
        actor.top_life = top.max(life);
        let phase = actor.phases.get(&life).copied();
        drop(inner);
        self.ledger.check(Invariant::HandledOnlyWhenValid, phase.is_none(), || {
            format!("actor {key} starts {ticket} while it is {phase:?}")
        });
        self.ledger.check(Invariant::NothingStartsAfterTheSession, top <= life, || {
            format!("actor {key} starts {ticket} in life {life}, after life {top}")
        });
        Running::new(span)
    }

    /// A hook begins, or has ended.
    pub(crate) fn set_phase(&self, span: &Span, phase: Option<Phase>) {
        let mut inner = self.lock();
        let phases = &mut inner.actor(span.at().actor.key).phases;
        match phase {
            Some(phase) => phases.insert(span.at().life, phase),
            None => phases.remove(&span.at().life),
        };
    }

    /// Reads an actor's storage.
    pub(crate) fn load(&self, key: u64) -> u64 {
        self.lock().actor(key).value
    }

    /// Writes an actor's storage.
    pub(crate) fn save(&self, key: u64, value: u64) {
        let mut inner = self.lock();
        inner.actor(key).value = value;
        self.check_value(&inner, key);
    }

    // ---- what the script notes and asks ----

    pub(crate) const fn bank(&self) -> &Bank {
        &self.bank
    }

    /// The facts about every actor that was ever sent to.
    pub(crate) fn actors(&self) -> BTreeMap<u64, ActorFacts> {
        self.lock().actors.clone()
    }

    /// A number below `bound`, for what actors do.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }

    fn check_value(&self, inner: &Inner, key: u64) {
        let Some(ActorFacts { value, acked, attempted, .. }) = inner.actors.get(&key) else { return };
        self.ledger.check(Invariant::AckedValueAttempted, acked <= value && value <= attempted, || {
            format!("actor {key}: {acked} acknowledged, {value} stored, {attempted} attempted")
        });
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn actor(&mut self, key: u64) -> &mut ActorFacts {
        self.actors.entry(key).or_default()
    }
}

/// The actor with this key; subjects and accounts have keys of their own.
const fn actor_number(key: u64) -> ActorNumber {
    ActorNumber { kind: 0, key }
}
