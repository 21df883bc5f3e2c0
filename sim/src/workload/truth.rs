//! Ground truth: what was sent, what handlers really did, what is stored. Neither runtime nor actors decide by it.
//!
//! Every message has a ticket. The clients note what they were told about it, the handlers note what happened to
//! it, and each note is checked against the others at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_backend_conformance::Rng;
use archipelago_protocol::identity::{Generation, NodeId};

use super::bank::Bank;
use super::lives::Lives;
use super::span::{Running, Span};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::{Invariant, Judge};
use crate::sometimes;
use crate::world::Beats;

/// Everything that is true in one run.
pub(crate) struct Truth {
    clock: TrueClock,
    judge: Judge,
    rng: Mutex<Rng>,
    inner: Mutex<Inner>,
    lives: Lives,
    bank: Bank,
}

#[derive(Default)]
struct Inner {
    ops: Vec<Op>,
    actors: BTreeMap<u64, ActorFacts>,
    last_seq: BTreeMap<(u64, u64), u64>,
}

/// One message.
struct Op {
    key: u64,
    /// Who sent it, and as which message to this actor.
    sender: Option<(u64, u64)>,
    tell: bool,
    started: bool,
    reported: Option<Reported>,
}

/// What a sender was told about its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    /// A tell was taken.
    Accepted,
    /// An ask was answered with this ticket.
    Answered(u64),
    /// It will never start: refused, or dropped before it began.
    NotStarted,
    /// It did start; how it ended is not known.
    Started,
    /// It may have started.
    Unknown,
    /// Nobody waited for the end of it.
    Dropped,
}

/// One actor, over all its activations.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActorFacts {
    /// Activations alive, by the life of the node they are in.
    spans: BTreeMap<u64, u32>,
    running: BTreeMap<u64, u32>,
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

impl Truth {
    pub(crate) fn new(clock: TrueClock, beats: Arc<Beats>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            clock,
            judge: Judge::default(),
            rng: Mutex::new(Rng::new(seed)),
            inner: Mutex::default(),
            lives: Lives::new(beats),
            bank: Bank::default(),
        })
    }

    // ---- what senders note ----

    /// A message is about to be sent. Answers with its ticket.
    pub(crate) fn sending(&self, key: u64, sender: Option<u64>, tell: bool) -> u64 {
        let mut inner = self.lock();
        let ticket = inner.ops.len() as u64;
        let actor = inner.actors.entry(key).or_default();
        actor.attempted += 1;
        match actor.phases.values().next_back() {
            Some(Phase::Activating) => sometimes!("message sent during activation"),
            Some(Phase::Farewell) => sometimes!("message sent during farewell"),
            None => {}
        }
        let sender = sender.map(|sender| (sender, ticket));
        inner.ops.push(Op { key, sender, tell, started: false, reported: None });
        ticket
    }

    /// The sender was told something.
    pub(crate) fn reported(&self, ticket: u64, told: Reported) {
        let mut inner = self.lock();
        let op = &mut inner.ops[index(ticket)];
        let (started, before, key) = (op.started, op.reported.replace(told), op.key);
        // A call that is dropped before it starts is one that never starts.
        if told == Reported::Dropped && !started {
            sometimes!("call cancelled before it started");
            op.reported = Some(Reported::NotStarted);
        }
        self.check(Invariant::CompletionExactlyOnce, before.is_none(), || {
            format!("message {ticket} ended as {before:?} and then as {told:?}")
        });
        match told {
            Reported::Accepted => inner.actor(key).tells_accepted += 1,
            Reported::Answered(with) => {
                self.check(Invariant::CompletionExactlyOnce, with == ticket, || {
                    format!("message {ticket} got the reply of {with}")
                });
                self.check(Invariant::StartedIsTrue, started, || {
                    format!("message {ticket} was answered by nobody")
                });
                inner.actor(key).acked += 1;
                self.check_value(&inner, key);
            }
            Reported::NotStarted => self.check(Invariant::NotStartedIsTrue, !started, || {
                format!("message {ticket} was reported as not started, but had")
            }),
            Reported::Started => self.check(Invariant::StartedIsTrue, started, || {
                format!("message {ticket} was reported as started, but had not")
            }),
            Reported::Dropped if started => sometimes!("call cancelled while it ran"),
            Reported::Unknown | Reported::Dropped => {}
        }
    }

    /// A dead letter for this actor was published.
    pub(crate) fn dead_letter(&self, key: u64) {
        sometimes!("tell became a dead letter");
        self.lock().actor(key).dead_letters += 1;
    }

    // ---- what actors note ----

    /// An activation begins in this life of the node.
    pub(crate) fn activation(self: &Arc<Self>, key: u64, node: NodeId) -> Arc<Span> {
        let life = self.lives.number(node);
        let mut inner = self.lock();
        let spans = &mut inner.actor(key).spans;
        let rival = spans
            .iter()
            .find(|(other, count)| **count > 0 && (**other == life || self.lives.is_live(**other)));
        let rival = rival.map(|(other, _)| *other);
        *spans.entry(life).or_default() += 1;
        drop(inner);
        self.check(Invariant::AtMostOneActivation, rival.is_none(), || {
            format!("actor {key} begins in life {life} while one lives in life {}", rival.unwrap_or_default())
        });
        Arc::new(Span::new(Arc::clone(self), key, life))
    }

    /// The activation was told its generation.
    pub(crate) fn generation(&self, key: u64, life: u64, generation: Generation) {
        let before = self.lock().actor(key).generation.replace((life, generation));
        let grows = before.is_none_or(
            |(last, before)| if life > last { generation > before } else { generation == before },
        );
        self.check(Invariant::GenerationGrows, grows, || {
            format!("actor {key} has {generation:?} in life {life}, after {before:?}")
        });
    }

    /// A handler begins.
    pub(crate) fn started(self: &Arc<Self>, ticket: u64, span: &Arc<Span>) -> Running {
        let (key, life) = (span.key(), span.life());
        let mut inner = self.lock();
        let op = &mut inner.ops[index(ticket)];
        let (twice, told, sender, tell) =
            (std::mem::replace(&mut op.started, true), op.reported, op.sender, op.tell);
        self.check(Invariant::NoMessageHandledTwice, !twice, || format!("message {ticket} starts again"));
        self.check(Invariant::NotStartedIsTrue, told != Some(Reported::NotStarted), || {
            format!("message {ticket} starts after it was reported as not started")
        });
        if let Some((sender, seq)) = sender {
            let last = inner.last_seq.insert((sender, key), seq);
            self.check(Invariant::FifoPerSender, last.is_none_or(|last| last < seq), || {
                format!("actor {key} starts message {seq} of sender {sender} after {last:?}")
            });
        }
        let actor = inner.actor(key);
        actor.tells_started += u64::from(tell);
        let top = actor.top_life;
        actor.top_life = top.max(life);
        let running = actor.running.entry(life).or_default();
        *running += 1;
        let (alone, phase) = (*running == 1, actor.phases.get(&life).copied());
        drop(inner);
        self.check(Invariant::HandledOnlyWhenValid, phase.is_none(), || {
            format!("actor {key} starts {ticket} while it is {phase:?}")
        });
        self.check(Invariant::OneMessageAtATime, alone, || {
            format!("actor {key} starts {ticket} beside another")
        });
        let serves = self.lives.may_start(life);
        self.check(Invariant::NothingStartsAfterTheSession, top <= life && serves, || {
            format!(
                "actor {key} starts {ticket} in life {life}, after life {top}; its session is live: {serves}"
            )
        });
        Running::new(Arc::clone(span))
    }

    /// Nothing of an activation is left.
    pub(super) fn activation_ended(&self, span: &Span) {
        let mut inner = self.lock();
        let count = inner.actor(span.key()).spans.entry(span.life()).or_default();
        *count = count.saturating_sub(1);
    }

    /// A handler has ended, or was dropped.
    pub(super) fn handler_ended(&self, span: &Span) {
        let mut inner = self.lock();
        let count = inner.actor(span.key()).running.entry(span.life()).or_default();
        *count = count.saturating_sub(1);
    }

    /// User code goes on after a wait.
    pub(crate) fn goes_on(&self, life: u64) {
        let may = self.lives.is_live(life);
        self.check(Invariant::NothingRunsAfterTheFence, may, || {
            format!("a task of life {life} goes on after its fence")
        });
    }

    /// A hook begins, or has ended.
    pub(crate) fn set_phase(&self, span: &Span, phase: Option<Phase>) {
        let mut inner = self.lock();
        let phases = &mut inner.actor(span.key()).phases;
        match phase {
            Some(phase) => phases.insert(span.life(), phase),
            None => phases.remove(&span.life()),
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

    /// A life of the node has begun.
    pub(crate) fn born(&self, node: NodeId, env: Arc<SimEnvironment>) {
        self.lives.born(node, env);
    }

    pub(crate) const fn lives(&self) -> &Lives {
        &self.lives
    }

    pub(crate) const fn bank(&self) -> &Bank {
        &self.bank
    }

    pub(crate) const fn judge(&self) -> &Judge {
        &self.judge
    }

    pub(crate) fn check(&self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        self.judge.check(invariant, holds, self.clock.elapsed(), detail);
    }

    /// How many activations are alive in a life of the node.
    pub(crate) fn alive_in(&self, life: u64) -> usize {
        self.lock()
            .actors
            .values()
            .filter(|actor| actor.spans.get(&life).is_some_and(|count| *count > 0))
            .count()
    }

    /// The facts about every actor that was ever sent to.
    pub(crate) fn actors(&self) -> BTreeMap<u64, ActorFacts> {
        self.lock().actors.clone()
    }

    /// How many messages were sent, and how many of them started.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let inner = self.lock();
        (inner.ops.len() as u64, inner.ops.iter().filter(|op| op.started).count() as u64)
    }

    /// A number below `bound`, for what actors do.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }

    fn check_value(&self, inner: &Inner, key: u64) {
        let Some(ActorFacts { value, acked, attempted, .. }) = inner.actors.get(&key) else { return };
        self.check(Invariant::AckedValueAttempted, acked <= value && value <= attempted, || {
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

fn index(ticket: u64) -> usize {
    usize::try_from(ticket).unwrap_or(usize::MAX)
}
