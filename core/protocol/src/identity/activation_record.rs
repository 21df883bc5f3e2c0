//! Who owns a key, and where an actor runs.

use serde::{Deserialize, Serialize};

use super::{ActorId, Generation, NodeId, OwnedKey};

/// The directory's answer: `node` owns `key` under `generation`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// What is owned.
    pub key: OwnedKey,
    /// By whom.
    pub node: NodeId,
    /// The fencing token of this ownership.
    pub generation: Generation,
}

/// One activation of an actor: where it runs, since when, and under which generation.
///
/// An actor has different records over time, one at a time. The generation orders them; the time is for people, since
/// clocks of different nodes cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ActivationRecord {
    /// The actor.
    pub actor: ActorId,
    /// The node that runs it.
    pub node: NodeId,
    /// The generation of the placement it runs under.
    pub generation: Generation,
    /// Wall time of the activation in milliseconds since 1970, by that node's clock.
    pub activated_at_ms: u64,
}

impl ActivationRecord {
    /// Whether a cached `other` is out of date: it is about the same actor and has a smaller generation.
    ///
    /// Records of different actors are never newer than one another.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.actor == other.actor && self.generation > other.generation
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::arbitrary::{actor_id, owned_key};

    fn record(actor: &str, generation: u64, activated_at_ms: u64) -> ActivationRecord {
        let generation = Generation::new(generation);
        ActivationRecord { actor: actor.parse().unwrap(), node: NodeId::new(1), generation, activated_at_ms }
    }

    /// Proves: R35, R38, C12, C13
    #[test]
    fn generation_orders_activations_even_if_a_clock_went_back() {
        let (old, new) = (record("n::K/a", 4, 2_000), record("n::K/a", 5, 1_000));
        assert!(new.is_newer_than(&old));
        assert!(!old.is_newer_than(&new));
        assert!(!new.is_newer_than(&new));
        let moved = ActivationRecord { node: NodeId::new(2), ..new.clone() };
        assert!(moved.is_newer_than(&old), "the same actor, later and elsewhere");
        assert!(!record("n::K/b", 9, 3_000).is_newer_than(&old));
    }

    proptest! {
        /// Proves: R15, R35, C10
        #[test]
        fn records_survive_json_and_postcard(
            actor in actor_id(), key in owned_key(), node: u64, generation: u64, activated_at_ms: u64,
        ) {
            let (node, generation) = (NodeId::new(node), Generation::new(generation));
            let record = ActivationRecord { actor, node, generation, activated_at_ms };
            let json = serde_json::to_vec(&record).unwrap();
            prop_assert_eq!(&serde_json::from_slice::<ActivationRecord>(&json).unwrap(), &record);
            let bytes = postcard::to_allocvec(&record).unwrap();
            prop_assert_eq!(postcard::from_bytes::<ActivationRecord>(&bytes).unwrap(), record);

            let placement = Placement { key, node, generation };
            let json = serde_json::to_vec(&placement).unwrap();
            prop_assert_eq!(&serde_json::from_slice::<Placement>(&json).unwrap(), &placement);
            let bytes = postcard::to_allocvec(&placement).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Placement>(&bytes).unwrap(), placement);
        }
    }
}
