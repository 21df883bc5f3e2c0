//! The states' rules on the embedded store, and on one where everything goes wrong.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
use archipelago_backend_conformance::{Faults, FaultyStore, ImmediateTimer, Rng, state_store_conformance};
use archipelago_directory::{Store, StoreStateStore};
use archipelago_embedded::{EmbeddedStore, state_store};
use archipelago_protocol::contract::{Schema, StateStore, StateStoreError, StoredState};
use archipelago_protocol::identity::{ActorId, Generation};
use futures_util::FutureExt;

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
    let store = Arc::new(EmbeddedStore::default());
    let fixture = StateStoreFixture::of(Arc::new(state_store(Arc::clone(&store))), store.max_value() + 1);
    rule(fixture).now_or_never().expect("the state store answers at once");
}

state_store_conformance!(run);

/// Owners follow each other on a store that loses replies, refuses, and applies writes at any later time: what an owner was
/// told is saved is there until somebody saves something else, and nothing of an earlier owner or an earlier save lands
/// after a load or a later save was answered.
///
/// Proves: R493
#[test]
fn what_was_answered_stays_whatever_comes_late() {
    let mut total = Told::default();
    for seed in 0..400 {
        owners(seed, &mut total).now_or_never().expect("the store answers at once");
    }
    let Told { saved, unknown, fenced, late, reloads } = total;
    let all = [saved, unknown, fenced, late, reloads];
    assert!(all.iter().all(|&count| count > 100), "an idle sweep proves nothing: {total:?}");
}

#[derive(Debug, Default)]
struct Told {
    saved: u32,
    unknown: u32,
    fenced: u32,
    late: u32,
    reloads: u32,
}

async fn owners(seed: u64, told: &mut Told) {
    let mut rng = Rng::new(seed);
    let faults = Faults { unavailable: 100, lost_reply: 150, late: 250, stale: 150, ..Faults::default() };
    let inner = Arc::new(EmbeddedStore::default());
    let faulty = Arc::new(FaultyStore::new(inner, Arc::new(ImmediateTimer), seed, faults));
    let states = StoreStateStore::new(Arc::clone(&faulty) as Arc<dyn Store>);
    let (actor, mut next): (ActorId, u64) = ("n::Account/a".parse().unwrap(), 0);
    // What a load may show: what was answered last, and what was sent since and may have been written.
    let mut possible: Vec<Option<StoredState>> = vec![None];
    for generation in 1..12 {
        let generation = Generation::new(generation);
        let Some(loaded) = load(&states, &actor, generation).await else { continue };
        told.reloads += 1;
        assert!(possible.contains(&loaded), "seed {seed}: {loaded:?} of {possible:?}");
        possible = vec![loaded];
        for _ in 0..rng.below(6) {
            next += 1;
            let state = numbered(next);
            match states.save(&actor, generation, &state).await {
                Ok(()) => {
                    told.saved += 1;
                    possible = vec![Some(state)];
                }
                Err(error) if error.is_unknown() => {
                    told.unknown += 1;
                    possible.push(Some(state));
                }
                Err(StateStoreError::Unavailable { .. }) => {}
                Err(other) => panic!("seed {seed}: {other:?}"),
            }
            if rng.chance(200)
                && let Some(loaded) = load(&states, &actor, generation).await
            {
                // The actor went and came back under the same owner.
                assert!(possible.contains(&loaded), "seed {seed}: {loaded:?} of {possible:?}");
                possible = vec![loaded];
            }
            if rng.chance(300) {
                told.late += u32::from(faulty.apply_late().await);
            }
        }
        if rng.chance(500) && generation.as_u64() > 1 {
            let before = Generation::new(generation.as_u64() - 1);
            let stale = states.save(&actor, before, &numbered(0)).await;
            told.fenced += u32::from(matches!(stale, Err(StateStoreError::Fenced { .. })));
            assert!(stale.is_err(), "seed {seed}: a stale save was answered");
        }
    }
}

/// Loads until the store answers; `None` if it does not.
async fn load(
    states: &StoreStateStore,
    actor: &ActorId,
    generation: Generation,
) -> Option<Option<StoredState>> {
    for _ in 0..20 {
        match states.load(actor, generation).await {
            Ok(loaded) => return Some(loaded),
            Err(error) => assert!(error.is_worth_repeating(), "{error:?}"),
        }
    }
    None
}

fn numbered(number: u64) -> StoredState {
    StoredState { schema: Schema::new("Account", 1), bytes: number.to_string().into() }
}
