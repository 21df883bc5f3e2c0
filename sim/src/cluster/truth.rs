//! Ground truth about a cluster: what was sent, what the counters really did, and on which node.
//!
//! Every message has a ticket. What senders are told and what handlers do is checked against it at once, on whatever node it
//! happens, and against what the store says about sessions and owners at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_directory::owner_id;
use archipelago_protocol::identity::{ActorId, Generation, NodeId, OwnedKey};

use super::counter::Tally;
use super::span::{Home, Running, Span, Whereabouts};
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
    beats: Arc<Beats>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    ops: Vec<Op>,
    actors: BTreeMap<ActorNumber, ActorFacts>,
    activations: Vec<ActivationFacts>,
    /// The last message of a sender that an actor has started.
    last: BTreeMap<(u64, ActorNumber), u64>,
    senders: u64,
    crashed: BTreeSet<u64>,
    leaving: BTreeSet<u64>,
}

/// A counter: its kind and its key.
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
    /// The place of its sender's node in the world.
    pub(crate) from: usize,
    /// The life of that node.
    pub(crate) life: u64,
    /// Who sends it, if that one sends one message after the other.
    pub(crate) sender: Option<u64>,
    pub(crate) tell: bool,
    /// An actor sends it.
    pub(crate) inside: bool,
}

struct Op {
    sending: Sending,
    started: bool,
    reported: Option<Reported>,
    /// Its sender's node was about to leave when its end was reported.
    leaving: bool,
}

#[derive(Clone, Debug, Default)]
struct ActorFacts {
    /// Activations alive, by the life of the node they are in.
    spans: BTreeMap<u64, u32>,
    running: BTreeMap<u64, u32>,
    /// The newest grant, and the life that has it.
    newest: Option<(Generation, u64)>,
}

#[derive(Clone, Debug, Default)]
struct ActivationFacts {
    generation: Option<Generation>,
    /// Its generation is the first one that anybody has seen of it.
    fresh: bool,
    attempted: u64,
    /// The values that were acknowledged.
    acked: BTreeSet<u64>,
}

impl Truth {
    pub(crate) fn new(clock: TrueClock, beats: Arc<Beats>) -> Arc<Self> {
        let (judge, lives) = (Judge::default(), Lives::new(Arc::clone(&beats)));
        Arc::new(Self { clock, judge, lives, beats, inner: Mutex::default() })
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
        inner.ops.push(Op { sending, started: false, reported: None, leaving: false });
        inner.ops.len() as u64 - 1
    }

    /// The sender was told something.
    pub(crate) fn reported(&self, ticket: u64, told: Reported) {
        let mut inner = self.lock();
        let leaving = inner.leaving.contains(&inner.ops[index(ticket)].sending.life);
        let op = &mut inner.ops[index(ticket)];
        op.leaving = leaving;
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

    /// A counter's answer has come: no other message has had this value of this activation, and it was counted.
    pub(crate) fn acknowledged(&self, tally: Tally) {
        let Tally { activation, value, .. } = tally;
        let mut inner = self.lock();
        let facts = &mut inner.activations[index(activation)];
        let new = facts.acked.insert(value);
        let (acked, attempted) = (facts.acked.len() as u64, facts.attempted);
        drop(inner);
        let holds = new && value >= 1 && acked <= attempted && value <= attempted;
        self.check(Invariant::AckedValueAttempted, holds, || {
            format!("{tally:?} is the {acked}th answer after {attempted} attempts; new: {new}")
        });
    }

    // ---- what actors note ----

    /// An activation begins.
    pub(crate) fn activation(
        self: &Arc<Self>,
        actor: ActorNumber,
        id: &ActorId,
        home: &Home,
        node: NodeId,
    ) -> Arc<Span> {
        let (life, sender) = (self.life(home, node), self.new_sender());
        let shard = u32::try_from(id.stable_hash() % SHARDS).unwrap_or(u32::MAX);
        let record = owner_id(&OwnedKey::shard(id.kind().clone(), shard));
        let rival = self.rival(actor, life, true);
        let mut inner = self.lock();
        inner.activations.push(ActivationFacts::default());
        let activation = inner.activations.len() as u64 - 1;
        *inner.actors.entry(actor).or_default().spans.entry(life).or_default() += 1;
        drop(inner);
        self.check(Invariant::AtMostOneActivation, rival.is_none(), || {
            format!("{actor:?} begins in life {life} while one lives in life {rival:?}")
        });
        let at = Whereabouts { actor, activation, life, node, sender, index: home.index, record };
        Arc::new(Span::new(Arc::clone(self), at))
    }

    /// An activation has been told under which generation its node owns it.
    pub(crate) fn granted(&self, span: &Span, generation: Generation) {
        let Whereabouts { actor, life, activation, .. } = *span.at();
        let mut inner = self.lock();
        let facts = inner.actors.entry(actor).or_default();
        let before = facts.newest.replace((generation, life));
        let fresh = before.is_none_or(|(last, _)| last < generation);
        let facts = &mut inner.activations[index(activation)];
        (facts.generation, facts.fresh) = (Some(generation), fresh);
        let after_crash = before.is_some_and(|(_, life)| inner.crashed.contains(&life));
        drop(inner);
        if after_crash {
            sometimes!("shard taken over after a crash");
        }
        let grows = fresh || before == Some((generation, life));
        self.check(Invariant::GenerationGrows, grows, || {
            format!("{actor:?} has generation {generation} in life {life} after {before:?}")
        });
    }

    /// A handler begins, and has counted to `value`.
    pub(crate) fn started(self: &Arc<Self>, ticket: u64, value: u64, span: &Arc<Span>) -> Running {
        let Whereabouts { actor, life, activation, index: here, .. } = *span.at();
        let mut inner = self.lock();
        let op = &mut inner.ops[index(ticket)];
        let (twice, told, sending) = (std::mem::replace(&mut op.started, true), op.reported, op.sending);
        let last = sending.sender.and_then(|sender| inner.last.insert((sender, actor), ticket));
        let running = inner.actors.entry(actor).or_default().running.entry(life).or_default();
        *running += 1;
        let alone = *running == 1;
        let facts = &mut inner.activations[index(activation)];
        facts.attempted += 1;
        let (attempted, acked) = (facts.attempted, facts.acked.len() as u64);
        if std::mem::take(&mut facts.fresh) && sending.from != here {
            sometimes!("shard placed by request of another node");
        }
        drop(inner);
        self.check_message(ticket, actor, (twice, told, sending, last));
        self.check(Invariant::AckedValueAttempted, acked < value && value == attempted, || {
            format!("{actor:?} has {value} after {attempted} attempts, {acked} acknowledged")
        });
        self.check(Invariant::OneMessageAtATime, alone, || {
            format!("{actor:?} starts {ticket} beside another")
        });
        self.check_place(ticket, span);
        Running::new(Arc::clone(span))
    }

    fn check_message(
        &self,
        ticket: u64,
        actor: ActorNumber,
        (twice, told, sending, last): (bool, Option<Reported>, Sending, Option<u64>),
    ) {
        self.check(Invariant::NoMessageHandledTwice, !twice, || format!("message {ticket} starts again"));
        self.check(Invariant::NotStartedIsTrue, told != Some(Reported::NotStarted), || {
            format!("message {ticket} starts after it was reported as not started")
        });
        self.check(Invariant::StartedIsTrue, sending.to == actor, || {
            format!("message {ticket} to {:?} starts at {actor:?}", sending.to)
        });
        if sending.sender.is_some() {
            self.check(Invariant::FifoPerSender, last.is_none_or(|last| last < ticket), || {
                format!("{actor:?} starts message {ticket} of sender {:?} after {last:?}", sending.sender)
            });
        }
    }

    /// A message starts here: nobody else may have the actor, and the store must say that it is ours.
    fn check_place(&self, ticket: u64, span: &Span) {
        let Whereabouts { actor, life, node, activation, ref record, .. } = *span.at();
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
        let generation = self.lock().activations[index(activation)].generation;
        let owned = generation.is_some_and(|generation| self.beats.is_owner(record, node, generation));
        self.check(Invariant::ServerIsRecorded, owned, || {
            format!(
                "{actor:?} starts {ticket} in life {life} at {generation:?}, of which the store knows nothing"
            )
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
    pub(super) fn activation_ended(&self, at: &Whereabouts) {
        let mut inner = self.lock();
        let count = inner.actors.entry(at.actor).or_default().spans.entry(at.life).or_default();
        *count = count.saturating_sub(1);
    }

    /// A handler has ended, or was dropped.
    pub(super) fn handler_ended(&self, at: &Whereabouts) {
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

    /// The life of a node that has been made known.
    pub(crate) fn life_of(&self, node: NodeId) -> u64 {
        self.lives.number(node)
    }

    /// A node is about to crash.
    pub(crate) fn crashes(&self, life: u64) {
        self.lock().crashed.insert(life);
    }

    /// A node is about to leave.
    pub(crate) fn leaves(&self, life: u64) {
        self.lock().leaving.insert(life);
    }

    /// How many activations and handlers are alive in a life of a node.
    pub(crate) fn alive_in(&self, life: u64) -> (u32, u32) {
        let inner = self.lock();
        let sum = |counts: fn(&ActorFacts) -> &BTreeMap<u64, u32>| {
            inner.actors.values().filter_map(|actor| counts(actor).get(&life)).sum()
        };
        (sum(|actor| &actor.spans), sum(|actor| &actor.running))
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

    /// All is over and quiet, and nothing was ever wrong: no message may be missing. A node that leaves answers nobody outside
    /// of it any more; whoever asks through it knows that.
    pub(crate) fn look_back(&self) {
        let inner = self.lock();
        for (ticket, op) in inner.ops.iter().enumerate() {
            let (told, tell) = (op.reported, op.sending.tell);
            let lost = tell && told == Some(Reported::Accepted) && !op.started;
            let excused = op.leaving && !op.sending.inside;
            let unanswered = !tell && !excused && !matches!(told, Some(Reported::Answered(_)));
            self.check(Invariant::NoAcceptedMessageLost, !lost && !unanswered, || {
                format!("nothing was wrong, but message {ticket} {:?} ended as {told:?}", op.sending)
            });
        }
    }

    /// A message, for people.
    pub(crate) fn describe(&self, ticket: u64) -> String {
        let inner = self.lock();
        let op = &inner.ops[index(ticket)];
        let started = if op.started { "started" } else { "not started" };
        format!("message {ticket} {:?}, {started},", op.sending)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Into how many shards a kind is divided.
const SHARDS: u64 = 256;
