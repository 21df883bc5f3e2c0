//! State that goes along with a shard: taken from the actors that end for a move, given to those that begin after it.

use std::rc::Rc;

use archipelago_protocol::handoff::{CarriedState, StateBytes};
use archipelago_protocol::time::Millis;
use metrics::counter;

use super::kind::KindCatalog;
use super::slot::Slot;
use crate::activation::Activation;
use crate::arbiter::ArbiterLocal;
use crate::events::Event;
use crate::message::{BoxError, VirtualActor};
use crate::mutants::{Mutant, broken};
use crate::state::NotCarried;

impl<A: VirtualActor> KindCatalog<A> {
    /// Whether something of its actors goes along with a shard: their states, or that they were active, for other
    /// datacenters that ask.
    pub(super) fn takes_along(&self) -> bool {
        A::MIGRATION.is_some() || self.shards().reaches()
    }

    /// Takes the state of an actor that ends because its shard moves, and notes that it was active.
    pub(super) fn take_along(&self, slot: &Slot<A>, actor: &mut A, on: &ArbiterLocal) {
        let (key, shard) = (slot.id.key().as_str(), self.shards().of(slot.hash));
        if broken(Mutant::ParcelBeforeQuiet) && self.luggage().of_actor(shard, key).is_some() {
            return;
        }
        let taken = A::MIGRATION.map_or(Ok(None), |migration| (migration.dehydrate)(actor));
        let taken = taken.unwrap_or_else(|reason| {
            not_carried(on, slot.id.to_string(), &reason);
            None
        });
        let state = taken.map(|(version, bytes)| StateBytes { version, bytes });
        if state.is_some() || self.shards().reaches() {
            let carried = CarriedState { key: key.to_owned(), state };
            if !self.luggage().keep(shard, carried, self.kept_until(on.now())) {
                tell_not_carried(on, slot.id.to_string(), &NotCarried::NoRoom);
            }
        }
    }

    /// Keeps states that came along with a shard for the actors that will begin.
    pub(super) fn unload(&self, shard: u64, states: Vec<CarriedState>, now: Millis) {
        let until = self.kept_until(now);
        let kept = states.into_iter().map(|state| self.luggage().keep(shard, state, until));
        let lost = kept.filter(|kept| !kept).count();
        if lost > 0 {
            tracing::error!(shard, lost, "no room for all states that came along with a shard");
        }
    }

    /// The state that waits for an actor.
    pub(super) fn carried_for(&self, slot: &Slot<A>) -> Option<StateBytes> {
        A::MIGRATION
            .and_then(|_| self.luggage().of_actor(self.shards().of(slot.hash), slot.id.key().as_str()))
            .and_then(|carried| carried.state)
    }

    /// An actor has begun with what it was to get, or has saved something newer.
    pub(super) fn carried_is_used(&self, slot: &Slot<A>) {
        if self.takes_along() {
            self.luggage().used(self.shards().of(slot.hash), slot.id.key().as_str());
        }
    }

    /// An actor that nobody asks for would have gone by then.
    fn kept_until(&self, now: Millis) -> Millis {
        now + self.shared().idle_after()
    }
}

/// What an actor gets before its first message, besides what it makes itself.
pub(super) struct Provision<A> {
    /// Makes another instance, if the first one cannot be used any more.
    pub(super) anew: Box<dyn Fn() -> Result<A, BoxError>>,
    pub(super) carried: Option<StateBytes>,
    pub(super) on: Rc<ArbiterLocal>,
}

/// What comes before the first message: the stored state, what came along, which is newer, and then the hook, which may look
/// at both.
pub(super) async fn prepare<A: VirtualActor>(
    actor: &mut A,
    here: Activation,
    provision: Provision<A>,
) -> Result<(), BoxError> {
    let stored = match here.state() {
        Some(keeper) => keeper.load().await.map_err(|error| format!("its state was not loaded: {error}"))?,
        None => None,
    };
    let restore = |actor: &mut A| match (&stored, A::PERSISTENCE) {
        (Some(stored), Some(persistence)) => (persistence.restore)(actor, stored),
        _ => Ok(()),
    };
    restore(actor)?;
    let Provision { anew, carried, on } = provision;
    if let (Some(carried), Some(migration)) = (carried, A::MIGRATION) {
        match (migration.rehydrate)(actor, &carried) {
            Ok(()) => counter!("archipelago_carried_states_total", "outcome" => "taken").increment(1),
            Err(reason) => {
                not_carried(&on, here.id().to_string(), &reason);
                if reason.is_half_done() {
                    *actor = anew()?;
                    restore(actor)?;
                }
            }
        }
    }
    if A::HOOKS { actor.on_activate(here).await } else { Ok(()) }
}

/// An actor begins, or will begin, without the state that it should have had.
fn not_carried(on: &ArbiterLocal, actor: String, reason: &NotCarried) {
    counter!("archipelago_carried_states_total", "outcome" => reason.label()).increment(1);
    tell_not_carried(on, actor, reason);
}

/// The same, of a state that was counted already.
fn tell_not_carried(on: &ArbiterLocal, actor: String, reason: &NotCarried) {
    tracing::error!(actor, %reason, "the state of an actor did not go along");
    on.node().events().publish(Event::StateNotCarried { actor, reason: reason.to_string() });
}
