//! Ground truth about several nodes: what was sent, what handlers really did, and where.
//!
//! As in the workload of one node, every message has a ticket; what senders are told and what handlers do is
//! checked against it at once, on whatever node it happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::identity::NodeId;

use super::plan::NODES;
use super::span::{Home, Running, Span};
use crate::clock::TrueClock;
use crate::invariants::{Invariant, Judge};
use crate::sometimes;
use crate::workload::{Lives, Reported};
use crate::world::Beats;

/// Everything that is true in one run.
pub(crate) struct Truth {
    clock: TrueClock,
    judge: Judge,
    lives: Lives,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    ops: Vec<Op>,
    actors: BTreeMap<ActorNumber, ActorFacts>,
    /// The last message of a sender that an actor has started.
    last: BTreeMap<(u64, ActorNumber), u64>,
    senders: u64,
    /// Where each kind was active last.
    owners: [Option<usize>; NODES],
    /// The newest small message of each kind that has started.
    newest_small: [u64; NODES],
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
pub(crate) struct Sending {
    pub(crate) to: ActorNumber,
    /// Who sends it, if that one sends one message after the other.
    pub(crate) sender: Option<u64>,
    pub(crate) tell: bool,
    /// Too long for a frame.
    pub(crate) large: bool,
    /// In a calm run it must be answered.
    pub(crate) must: bool,
}

struct Op {
    sending: Sending,
    started: bool,
    reported: Option<Reported>,
    /// It was given up while it waited at its actor's node.
    cancelled_there: bool,
}

#[derive(Clone, Debug, Default)]
struct ActorFacts {
    /// Activations alive, by the life of the node they are in.
    spans: BTreeMap<u64, u32>,
    running: BTreeMap<u64, u32>,
}

impl Truth {
    pub(crate) fn new(clock: TrueClock, beats: Arc<Beats>) -> Arc<Self> {
        let (judge, lives) = (Judge::default(), Lives::new(beats));
        Arc::new(Self { clock, judge, lives, inner: Mutex::default() })
    }

    // ---- what senders note ----

    /// A number for somebody who sends one message after the other.
    pub(crate) fn new_sender(&self) -> u64 {
        let mut inner = self.lock();
        inner.senders += 1;
        inner.senders
    }

    /// A message is about to be sent. Answers with its ticket.
    pub(crate) fn sending(&self, sending: Sending) -> u64 {
        let mut inner = self.lock();
        inner.ops.push(Op { sending, started: false, reported: None, cancelled_there: false });
        inner.ops.len() as u64 - 1
    }

    /// The sender was told something.
    pub(crate) fn reported(&self, ticket: u64, told: Reported) {
        let mut inner = self.lock();
        let op = &mut inner.ops[index(ticket)];
        let (started, before) = (op.started, op.reported.replace(told));
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
            Reported::Accepted | Reported::Started | Reported::Unknown | Reported::Dropped => {}
        }
    }

    /// A call was given up that must have come to its actor's node by now, where another one runs.
    pub(crate) fn cancelled_there(&self, ticket: u64) {
        let mut inner = self.lock();
        let op = &mut inner.ops[index(ticket)];
        op.cancelled_there = !op.started;
    }

    // ---- what actors note ----

    /// An activation begins.
    pub(crate) fn activation(self: &Arc<Self>, actor: ActorNumber, home: &Home, node: NodeId) -> Arc<Span> {
        let life = self.life(home, node);
        let sender = self.new_sender();
        let mut inner = self.lock();
        let moved = inner.owners[actor.kind].replace(home.index).is_some_and(|before| before != home.index);
        let spans = &mut inner.actors.entry(actor).or_default().spans;
        let rival = spans
            .iter()
            .find(|(other, count)| **count > 0 && (**other == life || self.lives.is_live(**other)))
            .map(|(other, _)| *other);
        *spans.entry(life).or_default() += 1;
        drop(inner);
        if moved {
            sometimes!("kind moved to another node");
        }
        self.check(Invariant::AtMostOneActivation, rival.is_none(), || {
            format!("{actor:?} begins in life {life} while one lives in life {}", rival.unwrap_or_default())
        });
        Arc::new(Span::new(Arc::clone(self), actor, life, sender, home.index))
    }

    /// A handler begins.
    pub(crate) fn started(self: &Arc<Self>, ticket: u64, span: &Arc<Span>) -> Running {
        let (actor, life) = (span.actor(), span.life());
        let mut inner = self.lock();
        let op = &mut inner.ops[index(ticket)];
        let (twice, told, sending) = (std::mem::replace(&mut op.started, true), op.reported, op.sending);
        if sending.large && inner.newest_small[actor.kind] > ticket {
            sometimes!("large message beside small ones");
        }
        if !sending.large {
            inner.newest_small[actor.kind] = inner.newest_small[actor.kind].max(ticket);
        }
        let last = sending.sender.and_then(|sender| inner.last.insert((sender, actor), ticket));
        let running = inner.actors.entry(actor).or_default().running.entry(life).or_default();
        *running += 1;
        let alone = *running == 1;
        drop(inner);
        self.check(Invariant::NoMessageHandledTwice, !twice, || format!("message {ticket} starts again"));
        self.check(Invariant::NotStartedIsTrue, told != Some(Reported::NotStarted), || {
            format!("message {ticket} starts after it was reported as not started")
        });
        self.check(Invariant::StartedIsTrue, sending.to == actor, || {
            format!("message {ticket} to {:?} starts at {actor:?}", sending.to)
        });
        if sending.sender.is_some() {
            self.check(Invariant::FifoPerSender, last.is_none_or(|last| last < ticket), || {
                format!(
                    "{actor:?} starts message {ticket} of sender {:?} after {last:?}; large: {}",
                    sending.sender, sending.large
                )
            });
        }
        self.check(Invariant::OneMessageAtATime, alone, || {
            format!("{actor:?} starts {ticket} beside another")
        });
        self.check(Invariant::NothingStartsAfterTheSession, self.lives.may_start(life), || {
            format!("{actor:?} starts {ticket} in life {life}, whose session is over")
        });
        Running::new(Arc::clone(span))
    }

    /// Nothing of an activation is left.
    pub(super) fn activation_ended(&self, span: &Span) {
        let mut inner = self.lock();
        let count = inner.actors.entry(span.actor()).or_default().spans.entry(span.life()).or_default();
        *count = count.saturating_sub(1);
    }

    /// A handler has ended, or was dropped.
    pub(super) fn handler_ended(&self, span: &Span) {
        let mut inner = self.lock();
        let count = inner.actors.entry(span.actor()).or_default().running.entry(span.life()).or_default();
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

    /// How many activations and handlers are alive in a life of a node.
    pub(crate) fn alive_in(&self, life: u64) -> (u32, u32) {
        let inner = self.lock();
        let sum = |counts: fn(&ActorFacts) -> &BTreeMap<u64, u32>| {
            inner.actors.values().filter_map(|actor| counts(actor).get(&life)).sum()
        };
        (sum(|actor| &actor.spans), sum(|actor| &actor.running))
    }

    /// The node where a kind was active last.
    pub(crate) fn owner(&self, kind: usize) -> Option<usize> {
        self.lock().owners[kind]
    }

    /// Whether a handler of this actor runs now.
    pub(crate) fn is_busy(&self, actor: ActorNumber) -> bool {
        self.lock().actors.get(&actor).is_some_and(|facts| facts.running.values().any(|count| *count > 0))
    }

    pub(crate) const fn judge(&self) -> &Judge {
        &self.judge
    }

    pub(crate) fn check(&self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        self.judge.check(invariant, holds, self.clock.elapsed(), detail);
    }

    /// How many messages were sent, and how many of them started.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let inner = self.lock();
        (inner.ops.len() as u64, inner.ops.iter().filter(|op| op.started).count() as u64)
    }

    /// All is over and quiet: looks at the messages once more. In a `calm` run none may be missing.
    pub(crate) fn look_back(&self, calm: bool) {
        let inner = self.lock();
        for (ticket, op) in inner.ops.iter().enumerate() {
            if op.cancelled_there && !op.started {
                sometimes!("cancel reached the receiver before start");
            }
            if !calm {
                continue;
            }
            let (told, tell) = (op.reported, op.sending.tell);
            let lost = tell && told == Some(Reported::Accepted) && !op.started;
            let unanswered = op.sending.must && !tell && !matches!(told, Some(Reported::Answered(_)));
            self.check(Invariant::NoAcceptedMessageLost, !lost && !unanswered, || {
                format!("nothing was wrong, but message {ticket} {:?} ended as {told:?}", op.sending)
            });
        }
    }

    /// A message, for people.
    pub(crate) fn describe(&self, ticket: u64) -> String {
        let inner = self.lock();
        let op = &inner.ops[index(ticket)];
        let size = if op.sending.large { "large" } else { "small" };
        let started = if op.started { "started" } else { "not started" };
        format!("{size} message {ticket} to {:?}, {started},", op.sending.to)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(ticket: u64) -> usize {
    usize::try_from(ticket).unwrap_or(usize::MAX)
}
