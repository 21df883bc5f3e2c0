//! Ground truth about several nodes: where each kind is, and what is special about a message.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::NodeId;

use super::plan::NODES;
use crate::common::{self, ActorNumber, Ground, Home, Ledger, Reported};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// A message of this workload.
pub(crate) type Letter = common::Letter<More>;
/// An activation of this workload.
pub(crate) type Span = common::Span<Truth>;
/// A handler of this workload.
pub(crate) type Running = common::Running<Truth>;

/// Everything that is true in one run.
pub(crate) struct Truth {
    ledger: Ledger<More>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Where each kind was active last.
    owners: [Option<usize>; NODES],
    /// The newest small message of each kind that has started.
    newest_small: [u64; NODES],
}

/// What is special about a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct More {
    /// Too long for a frame.
    pub(crate) large: bool,
    /// In a calm run it must be answered.
    pub(crate) must: bool,
    /// It was given up while it waited at its actor's node.
    pub(crate) cancelled_there: bool,
}

impl Ground for Truth {
    type More = More;

    fn ledger(&self) -> &Ledger<More> {
        &self.ledger
    }
}

impl Truth {
    pub(crate) fn new(world: &World) -> Self {
        Self { ledger: Ledger::new(world), inner: Mutex::default() }
    }

    /// Notes the end of an ask.
    pub(crate) fn answered(&self, ticket: u64, answer: &Result<u64, CallError>) {
        let told = match answer {
            Ok(reply) => Reported::Answered(*reply),
            Err(error) => {
                note(error);
                // Whether the handler runs is its own node's to know.
                if error.is_not_started() { Reported::NotStarted } else { Reported::Unknown }
            }
        };
        self.ledger.reported(ticket, told);
    }

    /// A call was given up that must have come to its actor's node by now, where another one runs.
    pub(crate) fn cancelled_there(&self, ticket: u64) {
        let waits = !self.ledger.has_started(ticket);
        self.ledger.note(ticket, |more| more.cancelled_there = waits);
    }

    /// An activation begins.
    pub(crate) fn activation(self: &Arc<Self>, actor: ActorNumber, home: &Home, node: NodeId) -> Arc<Span> {
        let before = self.lock().owners[actor.kind].replace(home.index);
        if before.is_some_and(|before| before != home.index) {
            sometimes!("kind moved to another node");
        }
        Span::new(self, self.ledger.activation(actor, home, node))
    }

    /// A handler begins.
    pub(crate) fn started(&self, ticket: u64, span: &Arc<Span>) -> Running {
        let letter = self.ledger.started(ticket, span.at());
        let newest_small = &mut self.lock().newest_small[span.at().actor.kind];
        if !letter.more.large {
            *newest_small = ticket.max(*newest_small);
        } else if *newest_small > ticket {
            sometimes!("large message beside small ones");
        }
        Running::new(span)
    }

    /// The node where a kind was active last.
    pub(crate) fn owner(&self, kind: usize) -> Option<usize> {
        self.lock().owners[kind]
    }

    /// All is over and quiet: looks at the messages once more. In a `calm` run none may be missing.
    pub(crate) fn look_back(&self, calm: bool) {
        self.ledger.look_back(|ticket, letter, started, told| {
            if letter.more.cancelled_there && !started {
                sometimes!("cancel reached the receiver before start");
            }
            if !calm {
                return;
            }
            let lost = letter.tell && told == Some(Reported::Accepted) && !started;
            let unanswered = letter.more.must && !letter.tell && !matches!(told, Some(Reported::Answered(_)));
            self.ledger.check(Invariant::NoAcceptedMessageLost, !lost && !unanswered, || {
                format!("nothing was wrong, but message {ticket} {letter:?} ended as {told:?}")
            });
        });
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(error: &CallError) {
    match error {
        CallError::ConnectionLost { .. } => sometimes!("connection lost with calls in flight"),
        CallError::Overloaded { queue: Queue::Lane, .. } => sometimes!("lane full"),
        _ => {}
    }
}
