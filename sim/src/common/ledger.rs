//! The book of every message and every activation: what senders were told, and what handlers really did.
//!
//! Every message has a ticket. Senders note what they are told about it, handlers note what happens to it, and each note is
//! checked against the others and against what the store says about sessions at that moment. Neither the runtime nor the
//! actors decide by it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archipelago_protocol::identity::NodeId;

use super::lives::Lives;
use super::span::{Home, Place};
use crate::clock::TrueClock;
use crate::invariants::{Invariant, Judge};
use crate::world::{Beats, World};

/// The truth of a workload.
pub(crate) trait Ground: 'static {
    /// What the workload knows of a message besides what all do.
    type More: Copy + Debug;

    fn ledger(&self) -> &Ledger<Self::More>;
}

/// The book of one run.
pub(crate) struct Ledger<M> {
    clock: TrueClock,
    judge: Judge,
    lives: Lives,
    beats: Arc<Beats>,
    inner: Mutex<Inner<M>>,
}

struct Inner<M> {
    messages: Vec<Message<M>>,
    actors: BTreeMap<ActorNumber, Alive>,
    /// The last message of a sender that an actor has started.
    last: BTreeMap<(u64, ActorNumber), u64>,
    senders: u64,
    activations: u64,
}

/// An actor: its kind and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ActorNumber {
    pub(crate) kind: usize,
    pub(crate) key: u64,
}

impl ActorNumber {
    /// As one number, for the trace.
    pub(crate) const fn as_u64(self) -> u64 {
        self.kind as u64 * 1_000 + self.key
    }
}

/// A message that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter<M> {
    pub(crate) to: ActorNumber,
    /// Who sends it, if that one sends one message after the other.
    pub(crate) sender: Option<u64>,
    pub(crate) tell: bool,
    pub(crate) more: M,
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

impl Reported {
    /// What the outcome of a tell says.
    pub(crate) const fn told<E>(told: &Result<(), E>) -> Self {
        if told.is_ok() { Self::Accepted } else { Self::NotStarted }
    }
}

struct Message<M> {
    letter: Letter<M>,
    started: bool,
    reported: Option<Reported>,
}

/// What there is of an actor, by the life of the node it is in.
#[derive(Clone, Debug, Default)]
struct Alive {
    spans: BTreeMap<u64, u32>,
    running: BTreeMap<u64, u32>,
}

impl<M: Copy + Debug> Ledger<M> {
    pub(crate) fn new(world: &World) -> Self {
        let beats = Arc::clone(world.beats());
        let (clock, judge, lives) = (world.true_clock(), Judge::default(), Lives::new(Arc::clone(&beats)));
        let inner = Inner {
            messages: Vec::new(),
            actors: BTreeMap::new(),
            last: BTreeMap::new(),
            senders: 0,
            activations: 0,
        };
        Self { clock, judge, lives, beats, inner: Mutex::new(inner) }
    }

    // ---- what senders note ----

    /// A number for somebody who sends one message after the other.
    pub(crate) fn new_sender(&self) -> u64 {
        let mut inner = self.lock();
        inner.senders += 1;
        inner.senders
    }

    /// A message is about to be sent. Answers with its ticket.
    pub(crate) fn sending(&self, letter: Letter<M>) -> u64 {
        let mut inner = self.lock();
        inner.messages.push(Message { letter, started: false, reported: None });
        inner.messages.len() as u64 - 1
    }

    /// The sender was told something. Answers with the message, and whether it has started.
    pub(crate) fn reported(&self, ticket: u64, told: Reported) -> (Letter<M>, bool) {
        let mut inner = self.lock();
        let message = inner.message(ticket);
        let (letter, started, before) = (message.letter, message.started, message.reported.replace(told));
        drop(inner);
        self.check(Invariant::CompletionExactlyOnce, before.is_none(), || {
            format!("message {ticket} ended as {before:?} and then as {told:?}")
        });
        match told {
            Reported::Answered(with) => {
                self.check(Invariant::CompletionExactlyOnce, with == ticket, || {
                    format!("message {ticket} got the reply of {with}")
                });
                self.check(Invariant::StartedIsTrue, started, || {
                    format!("message {ticket} was answered by nobody")
                });
            }
            Reported::NotStarted => self.check(Invariant::NotStartedIsTrue, !started, || {
                format!("message {ticket} was reported as not started, but had")
            }),
            Reported::Started => self.check(Invariant::StartedIsTrue, started, || {
                format!("message {ticket} was reported as started, but had not")
            }),
            Reported::Accepted | Reported::Unknown | Reported::Dropped => {}
        }
        (letter, started)
    }

    /// A message that has been given up must not start from now on.
    pub(crate) fn must_not_start(&self, ticket: u64) {
        self.lock().message(ticket).reported = Some(Reported::NotStarted);
    }

    /// Changes what the workload knows of a message.
    pub(crate) fn note(&self, ticket: u64, note: impl FnOnce(&mut M)) {
        note(&mut self.lock().message(ticket).letter.more);
    }

    // ---- what actors note ----

    /// An activation begins.
    pub(crate) fn activation(&self, actor: ActorNumber, home: &Home, node: NodeId) -> Place {
        let (life, sender) = (self.life(home, node), self.new_sender());
        let rival = self.rival(actor, life, true);
        let mut inner = self.lock();
        let activation = inner.activations;
        inner.activations += 1;
        *inner.actors.entry(actor).or_default().spans.entry(life).or_default() += 1;
        drop(inner);
        self.check(Invariant::AtMostOneActivation, rival.is_none(), || {
            format!("{actor:?} begins in life {life} while one lives in life {rival:?}")
        });
        Place { actor, activation, life, node, sender, index: home.index }
    }

    /// A handler begins. Answers with its message.
    pub(crate) fn started(&self, ticket: u64, at: &Place) -> Letter<M> {
        let Place { actor, life, .. } = *at;
        let mut inner = self.lock();
        let message = inner.message(ticket);
        let twice = std::mem::replace(&mut message.started, true);
        let (told, letter) = (message.reported, message.letter);
        let last = letter.sender.and_then(|sender| inner.last.insert((sender, actor), ticket));
        let running = inner.actors.entry(actor).or_default().running.entry(life).or_default();
        *running += 1;
        let alone = *running == 1;
        drop(inner);
        self.check(Invariant::NoMessageHandledTwice, !twice, || format!("message {ticket} starts again"));
        self.check(Invariant::NotStartedIsTrue, told != Some(Reported::NotStarted), || {
            format!("message {ticket} starts after it was reported as not started")
        });
        self.check(Invariant::StartedIsTrue, letter.to == actor, || {
            format!("message {ticket} {letter:?} starts at {actor:?}")
        });
        if letter.sender.is_some() {
            self.check(Invariant::FifoPerSender, last.is_none_or(|last| last < ticket), || {
                format!("{actor:?} starts message {ticket} {letter:?} after {last:?}")
            });
        }
        self.check(Invariant::OneMessageAtATime, alone, || {
            format!("{actor:?} starts {ticket} beside another")
        });
        self.check_place(ticket, at);
        letter
    }

    /// A message starts here: the session must be live, and nobody else may have the actor.
    fn check_place(&self, ticket: u64, at: &Place) {
        let Place { actor, life, node, .. } = *at;
        self.check(Invariant::NothingStartsAfterTheSession, self.lives.may_start(life), || {
            format!("{actor:?} starts {ticket} in life {life}, whose session is over")
        });
        let ended = self.beats.ended(node);
        self.check(Invariant::EndedSessionIsSilent, ended.is_none(), || {
            format!("{actor:?} starts {ticket} in life {life}, whose session has ended: {ended:?}")
        });
        let rival = self.rival(actor, life, false);
        self.check(Invariant::AtMostOneActivation, rival.is_none(), || {
            format!("{actor:?} starts {ticket} in life {life} while one lives in life {rival:?}")
        });
    }

    /// Another life that may run this actor now; with `own`, also the same life, if it has an activation already.
    fn rival(&self, actor: ActorNumber, life: u64, own: bool) -> Option<u64> {
        let inner = self.lock();
        let spans = &inner.actors.get(&actor)?.spans;
        let there = |other: u64| if other == life { own } else { self.lives.is_live(other) };
        spans.iter().find(|(other, count)| **count > 0 && there(**other)).map(|(other, _)| *other)
    }

    /// Nothing of an activation is left.
    pub(super) fn activation_ended(&self, at: &Place) {
        let mut inner = self.lock();
        let count = inner.actors.entry(at.actor).or_default().spans.entry(at.life).or_default();
        *count = count.saturating_sub(1);
    }

    /// A handler has ended, or was dropped.
    pub(super) fn handler_ended(&self, at: &Place) {
        let mut inner = self.lock();
        let count = inner.actors.entry(at.actor).or_default().running.entry(at.life).or_default();
        *count = count.saturating_sub(1);
    }

    /// User code goes on after a wait.
    pub(crate) fn goes_on(&self, life: u64) {
        self.check(Invariant::NothingRunsAfterTheFence, self.lives.is_live(life), || {
            format!("a task of life {life} goes on after its fence")
        });
    }

    // ---- what the script notes and asks ----

    /// The number of a life of a node; it is made known with it.
    pub(crate) fn life(&self, home: &Home, node: NodeId) -> u64 {
        if self.lives.number(node) == 0 {
            self.lives.born(node, Arc::clone(&home.env));
        }
        self.lives.number(node)
    }

    pub(crate) const fn lives(&self) -> &Lives {
        &self.lives
    }

    pub(crate) fn beats(&self) -> &Beats {
        &self.beats
    }

    pub(crate) const fn judge(&self) -> &Judge {
        &self.judge
    }

    /// How much true time has passed.
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    pub(crate) fn check(&self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        self.judge.check(invariant, holds, self.clock.elapsed(), detail);
    }

    /// How many activations and handlers are alive in a life of a node.
    pub(crate) fn alive_in(&self, life: u64) -> (u32, u32) {
        let inner = self.lock();
        let sum = |counts: fn(&Alive) -> &BTreeMap<u64, u32>| {
            inner.actors.values().filter_map(|actor| counts(actor).get(&life)).sum()
        };
        (sum(|actor| &actor.spans), sum(|actor| &actor.running))
    }

    /// Whether a handler of this actor runs now.
    pub(crate) fn is_busy(&self, actor: ActorNumber) -> bool {
        self.lock().actors.get(&actor).is_some_and(|alive| alive.running.values().any(|count| *count > 0))
    }

    /// Whether a message has started.
    pub(crate) fn has_started(&self, ticket: u64) -> bool {
        self.lock().message(ticket).started
    }

    /// How many messages were sent, and how many of them started.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let inner = self.lock();
        let started = inner.messages.iter().filter(|message| message.started).count();
        (inner.messages.len() as u64, started as u64)
    }

    /// Looks at every message once more: what it was, whether it has started, and what its sender was told.
    pub(crate) fn look_back(&self, mut look: impl FnMut(u64, &Letter<M>, bool, Option<Reported>)) {
        for (ticket, message) in self.lock().messages.iter().enumerate() {
            look(ticket as u64, &message.letter, message.started, message.reported);
        }
    }

    /// A message, for people.
    pub(crate) fn describe(&self, ticket: u64) -> String {
        let mut inner = self.lock();
        let message = inner.message(ticket);
        let started = if message.started { "started" } else { "not started" };
        format!("message {ticket} {:?}, {started},", message.letter)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Inner<M> {
    fn message(&mut self, ticket: u64) -> &mut Message<M> {
        &mut self.messages[usize::try_from(ticket).unwrap_or(usize::MAX)]
    }
}
