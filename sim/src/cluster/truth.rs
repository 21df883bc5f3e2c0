//! Ground truth about a cluster: what the counters really did, on which node, and by which right.
//!
//! Besides what every workload checks, each start of a message is compared with what the store says about the owner at that
//! moment, and each answer with what the counter had counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archipelago_directory::RecordId;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{Generation, NodeId};

use super::counter::Tally;
use super::memory::{Lineages, Memory};
use crate::common::{self, ActorNumber, Ground, Home, Ledger, Place, Reported};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// A message of this workload.
pub(crate) type Letter = common::Letter<From>;
/// An activation of this workload.
pub(crate) type Span = common::Span<Truth>;
/// A handler of this workload.
pub(crate) type Running = common::Running<Truth>;

/// Everything that is true in one run.
pub(crate) struct Truth {
    ledger: Ledger<From>,
    inner: Mutex<Inner>,
    /// For how long a state that goes along waits for its actor.
    kept: Duration,
    /// Nothing is wrong in this run.
    calm: bool,
}

#[derive(Default)]
struct Inner {
    /// The newest grant of each actor, and the life that has it.
    newest: BTreeMap<ActorNumber, (Generation, u64)>,
    activations: BTreeMap<u64, Activated>,
    crashed: BTreeSet<u64>,
    leaving: BTreeSet<u64>,
    /// The newest generation under which anything was started in a shard, and by whom.
    served: BTreeMap<RecordId, (Generation, u64)>,
    /// The last message of a sender that an actor has started, and in which life.
    last: BTreeMap<(u64, ActorNumber), (u64, u64)>,
    lineages: Lineages,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From {
    /// The place of its sender's node in the world.
    pub(crate) index: usize,
    /// The life of that node.
    pub(crate) life: u64,
    /// An actor sends it.
    pub(crate) inside: bool,
    /// That node was about to leave when the end of the message was reported.
    pub(crate) leaving: bool,
}

/// An activation, and what it has counted.
struct Activated {
    /// The record that says who owns the actor.
    record: RecordId,
    generation: Option<Generation>,
    /// Its generation is the first one that anybody has seen of it.
    fresh: bool,
    /// It has got the state of the last one.
    warm: bool,
    attempted: u64,
    /// The values that were acknowledged.
    acked: BTreeSet<u64>,
}

impl Ground for Truth {
    type More = From;

    fn ledger(&self) -> &Ledger<From> {
        &self.ledger
    }
}

impl Truth {
    pub(crate) fn new(world: &World, kept: Duration, calm: bool) -> Self {
        Self { ledger: Ledger::new(world), inner: Mutex::default(), kept, calm }
    }

    // ---- what senders note ----

    /// Where a message of node `index` comes from that a client sends.
    pub(crate) fn sender_of_client(&self, index: usize, node: NodeId) -> From {
        From { index, life: self.ledger.lives().number(node), inside: false, leaving: false }
    }

    /// The sender was told something.
    pub(crate) fn reported(&self, ticket: u64, told: Reported) {
        let (letter, _) = self.ledger.reported(ticket, told);
        let leaving = self.lock().leaving.contains(&letter.more.life);
        self.ledger.note(ticket, |from| from.leaving = leaving);
    }

    /// Notes the end of an ask.
    pub(crate) fn answered(&self, ticket: u64, answer: &Result<Tally, CallError>) {
        let told = match answer {
            Ok(tally) => {
                self.acknowledged(*tally);
                Reported::Answered(tally.ticket)
            }
            // Whether the handler runs is its own node's to know.
            Err(error) if error.is_not_started() => Reported::NotStarted,
            Err(_) => Reported::Unknown,
        };
        self.reported(ticket, told);
    }

    /// A counter's answer has come: no other message has had this value of this activation, and it was counted.
    fn acknowledged(&self, tally: Tally) {
        let Tally { activation, value, .. } = tally;
        let counted = self.with(activation, |facts| {
            let new = facts.acked.insert(value);
            (new, facts.acked.len() as u64, facts.attempted)
        });
        let holds = counted.is_some_and(|(new, acked, attempted)| {
            new && value >= 1 && acked <= attempted && value <= attempted
        });
        self.ledger.check(Invariant::AckedValueAttempted, holds, || {
            format!("{tally:?} was answered; new, answers and attempts are {counted:?}")
        });
    }

    // ---- what actors note ----

    /// An activation begins of an actor whose owner stands in `record`.
    pub(crate) fn activation(
        self: &Arc<Self>,
        actor: ActorNumber,
        record: RecordId,
        home: &Home,
        node: NodeId,
    ) -> Arc<Span> {
        let place = self.ledger.activation(actor, home, node);
        let (generation, attempted, acked) = (None, 0, BTreeSet::new());
        let activated = Activated { record, generation, fresh: false, warm: false, attempted, acked };
        self.lock().activations.insert(place.activation, activated);
        Span::new(self, place)
    }

    /// An activation has been told under which generation its node owns it.
    pub(crate) fn granted(&self, span: &Span, generation: Generation) {
        let Place { actor, life, activation, .. } = *span.at();
        let mut inner = self.lock();
        let before = inner.newest.insert(actor, (generation, life));
        let after_crash = before.is_some_and(|(_, life)| inner.crashed.contains(&life));
        drop(inner);
        let fresh = before.is_none_or(|(last, _)| last < generation);
        self.with(activation, |facts| (facts.generation, facts.fresh) = (Some(generation), fresh));
        if after_crash {
            sometimes!("shard taken over after a crash");
        }
        let grows = fresh || before == Some((generation, life));
        self.ledger.check(Invariant::GenerationGrows, grows, || {
            format!("{actor:?} has generation {generation} in life {life} after {before:?}")
        });
    }

    /// A handler begins, and has counted to `value`.
    pub(crate) fn started(&self, ticket: u64, value: u64, span: &Arc<Span>) -> Running {
        let Place { actor, activation, index: here, .. } = *span.at();
        let letter = self.ledger.started(ticket, span.at());
        let counted = self.with(activation, |facts| {
            facts.attempted += 1;
            (facts.attempted, facts.acked.len() as u64, std::mem::take(&mut facts.fresh))
        });
        if counted.is_some_and(|(_, _, fresh)| fresh) && letter.more.index != here {
            sometimes!("shard placed by request of another node");
        }
        let holds = counted.is_some_and(|(attempted, acked, _)| acked < value && value == attempted);
        self.ledger.check(Invariant::AckedValueAttempted, holds, || {
            format!("{actor:?} has {value}; attempts, acknowledged and first are {counted:?}")
        });
        self.check_owner(ticket, span);
        self.check_order(ticket, letter.sender, span);
        self.check_memory(span);
        Running::new(span)
    }

    /// A handler has ended.
    pub(crate) fn ended(&self, span: &Span) {
        self.lock().lineages.ended(span.at());
    }

    /// The state of an activation goes along with its shard.
    pub(crate) fn packed(&self, span: &Span) {
        let (warm, now) = (self.is_warm(span), self.ledger.now());
        self.lock().lineages.packed(span.at(), warm, now);
    }

    /// An activation has got state along with its shard: that of the last one, as it was at its end.
    pub(crate) fn rehydrated(&self, span: &Span, memory: Memory) {
        let Place { actor, activation, node, .. } = *span.at();
        let (expected, from) = self.lock().lineages.taken(span.at());
        self.with(activation, |facts| facts.warm = true);
        if from == Some(node) {
            sometimes!("state taken back");
        } else {
            sometimes!("state taken along");
        }
        self.ledger.check(Invariant::MigratedStateIsComplete, memory == expected, || {
            format!("{actor:?} has got {memory:?} from {from:?}, and its last activation had {expected:?}")
        });
    }

    /// A message starts: if the state of the actor came along with its shard, the activation has got it.
    fn check_memory(&self, span: &Span) {
        let Place { actor, activation, node, .. } = *span.at();
        if actor.kind != 0 {
            return;
        }
        let (warm, now) = (self.is_warm(span), self.ledger.now());
        let Some(cold) = self.lock().lineages.begun(span.at(), warm, now) else { return };
        let record = self.with(activation, |facts| facts.record.clone());
        let moved = record.and_then(|record| self.ledger.beats().moved(&record));
        self.ledger.check(Invariant::MigratedStateIsComplete, !cold.is_loss(moved, self.kept), || {
            format!("{actor:?} starts on {node} without its state, which came along by {moved:?}: {cold:?}")
        });
    }

    fn is_warm(&self, span: &Span) -> bool {
        self.with(span.at().activation, |facts| facts.warm).unwrap_or(false)
    }

    /// A message starts in another life of a node than the last one of its sender: still in order.
    fn check_order(&self, ticket: u64, sender: Option<u64>, span: &Span) {
        let Place { actor, life, .. } = *span.at();
        let Some(sender) = sender else { return };
        let last = self.lock().last.insert((sender, actor), (ticket, life));
        if let Some((before, _)) = last.filter(|(_, there)| *there != life) {
            self.ledger.check(Invariant::HandoffKeepsOrder, before < ticket, || {
                format!("{actor:?} starts message {ticket} in life {life} after {last:?}")
            });
        }
    }

    /// A message starts here: the store must say that the actor is ours.
    fn check_owner(&self, ticket: u64, span: &Span) {
        let Place { actor, life, node, activation, .. } = *span.at();
        let by = self.with(activation, |facts| (facts.record.clone(), facts.generation));
        let owned = by.as_ref().is_some_and(|(record, generation)| {
            generation.is_some_and(|generation| self.ledger.beats().is_owner(record, node, generation))
        });
        self.ledger.check(Invariant::ServerIsRecorded, owned, || {
            format!("{actor:?} starts {ticket} in life {life} by {by:?}, of which the store knows nothing")
        });
        let Some((record, Some(generation))) = by else { return };
        let before = self.lock().served.get(&record).copied();
        let newest = before.is_none_or(|(last, by)| last < generation || (last == generation && by == life));
        self.ledger.check(Invariant::ShardHasOneOwner, newest, || {
            format!("{actor:?} starts {ticket} in life {life} at {generation} after {before:?}")
        });
        if newest {
            self.lock().served.insert(record, (generation, life));
        }
    }

    // ---- what the script notes and asks ----

    /// A node is about to crash.
    pub(crate) fn crashes(&self, life: u64) {
        self.lock().crashed.insert(life);
    }

    /// A node has its session still, or has lost it.
    pub(crate) fn check_session(&self, index: usize, has_it: bool) {
        if self.calm {
            self.ledger.check(Invariant::CalmKeepsSessions, has_it, || {
                format!("nothing is wrong, but node {index} has lost its session")
            });
        }
    }

    /// A node is about to leave.
    pub(crate) fn leaves(&self, life: u64) {
        self.lock().leaving.insert(life);
    }

    /// All is over and quiet, and nothing was ever wrong: no message may be missing. A node that leaves answers nobody outside
    /// of it any more; whoever asks through it knows that.
    pub(crate) fn look_back(&self, moves: bool) {
        self.ledger.look_back(|ticket, letter, started, told| {
            let lost = letter.tell && told == Some(Reported::Accepted) && !started;
            let excused = letter.more.leaving && !letter.more.inside;
            let unanswered = !letter.tell && !excused && !matches!(told, Some(Reported::Answered(_)));
            let moved = moves.then_some(Invariant::NoMessageLostWithoutFault);
            for invariant in moved.into_iter().chain([Invariant::NoAcceptedMessageLost]) {
                self.ledger.check(invariant, !lost && !unanswered, || {
                    format!("nothing was wrong, but message {ticket} {letter:?} ended as {told:?}")
                });
            }
        });
    }

    /// The facts about an activation; `None` if there never was such a one.
    fn with<T>(&self, activation: u64, look: impl FnOnce(&mut Activated) -> T) -> Option<T> {
        self.lock().activations.get_mut(&activation).map(look)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
