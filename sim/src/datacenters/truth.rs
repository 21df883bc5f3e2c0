//! Ground truth about several datacenters: where each actor lives, and whether it may.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{ActorId, NodeId};

use super::plan::Plan;
use crate::common::{self, ActorNumber, Ground, Home, Ledger, Reported};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// A message of this workload.
pub(crate) type Letter = common::Letter<From>;
/// An activation of this workload.
pub(crate) type Span = common::Span<Truth>;
/// A handler of this workload.
pub(crate) type Running = common::Running<Truth>;

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From {
    /// The place of its sender's node in the world.
    pub(crate) index: usize,
}

/// Everything that is true in one run.
pub(crate) struct Truth {
    ledger: Ledger<From>,
    plan: Plan,
    /// The actors that have answered somebody.
    founded: Mutex<BTreeSet<ActorNumber>>,
}

impl Ground for Truth {
    type More = From;

    fn ledger(&self) -> &Ledger<From> {
        &self.ledger
    }
}

impl Truth {
    pub(crate) fn new(world: &World, plan: Plan) -> Self {
        Self { ledger: Ledger::new(world), plan, founded: Mutex::default() }
    }

    /// Whether somebody has had an answer of an actor.
    pub(crate) fn is_founded(&self, actor: ActorNumber) -> bool {
        self.lock().contains(&actor)
    }

    /// Notes the end of an ask.
    pub(crate) fn answered(&self, ticket: u64, answer: &Result<u64, CallError>) {
        let told = match answer {
            Ok(ticket) => Reported::Answered(*ticket),
            Err(error) if error.is_not_started() => Reported::NotStarted,
            Err(_) => Reported::Unknown,
        };
        if matches!(answer, Err(CallError::Unreachable { .. })) {
            sometimes!("call refused because nobody could say");
        }
        let (letter, _) = self.ledger.reported(ticket, told);
        if answer.is_ok() {
            self.lock().insert(letter.to);
        }
    }

    /// An activation begins: it must be where it belongs.
    pub(crate) fn activation(
        self: &Arc<Self>,
        actor: ActorNumber,
        id: &ActorId,
        home: &Home,
        node: NodeId,
    ) -> Arc<Span> {
        let (belongs, here) = (self.plan.home_of(actor, id), self.plan.island_of(home.index));
        if let Some(belongs) = belongs {
            self.ledger.check(Invariant::LivesWhereItBelongs, belongs == here, || {
                format!("{actor:?} belongs to datacenter {belongs} and begins in {here}")
            });
        }
        Span::new(self, self.ledger.activation(actor, home, node))
    }

    /// A handler begins.
    pub(crate) fn started(&self, ticket: u64, span: &Arc<Span>) -> Running {
        let letter = self.ledger.started(ticket, span.at());
        if self.plan.island_of(letter.more.index) != self.plan.island_of(span.at().index) {
            sometimes!("actor asked from another datacenter");
        }
        Running::new(span)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ActorNumber>> {
        self.founded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
