//! State that goes along with a shard: taken from the actors that end for a move, given to those that begin after it.

use std::rc::Rc;

use archipelago_protocol::handoff::CarriedState;
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
    /// Takes the state of an actor that ends because its shard moves.
    pub(super) fn take_along(&self, slot: &Slot<A>, actor: &mut A, on: &ArbiterLocal) {
        let (Some(migration), shard) = (A::MIGRATION, self.shards().of(slot.hash)) else { return };
        let key = slot.id.key().as_str();
        if broken(Mutant::ParcelBeforeQuiet) && self.luggage().of_actor(shard, key).is_some() {
            return;
        }
        match (migration.dehydrate)(actor) {
            Ok(Some((version, bytes))) => {
                let state = CarriedState { key: key.to_owned(), version, bytes };
                self.luggage().keep(shard, state, self.kept_until(on.now()));
            }
            Ok(None) => {}
            Err(reason) => not_carried(on, slot.id.to_string(), &reason),
        }
    }

    /// Keeps states that came along with a shard for the actors that will begin.
    pub(super) fn unload(&self, shard: u64, states: Vec<CarriedState>, now: Millis) {
        let until = self.kept_until(now);
        for state in states {
            self.luggage().keep(shard, state, until);
        }
    }

    /// The state that waits for an actor.
    pub(super) fn carried_for(&self, slot: &Slot<A>) -> Option<CarriedState> {
        A::MIGRATION
            .and_then(|_| self.luggage().of_actor(self.shards().of(slot.hash), slot.id.key().as_str()))
    }

    /// An actor has begun with what it was to get, or has saved something newer.
    pub(super) fn carried_is_used(&self, slot: &Slot<A>) {
        if A::MIGRATION.is_some() {
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
    pub(super) carried: Option<CarriedState>,
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
    tracing::error!(actor, %reason, "the state of an actor did not go along");
    on.node().events().publish(Event::StateNotCarried { actor, reason: reason.to_string() });
}
