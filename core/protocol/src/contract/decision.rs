//! What the directory says about the owner of a key.

use crate::identity::{Generation, NodeId, OwnedKey, Placement};
use crate::session::Session;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// The owner record of a key, as somebody received it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerRecord {
    /// Who owns the key, at which generation. Owning is not serving: a node serves only at a generation that the
    /// answer to its *own* write gave it.
    pub placement: Placement,
    /// The generation at which this tenure began; reasserting keeps it, every other change starts a new one.
    pub since: Generation,
    /// The time to live of the owner's session, for whoever finds that session's record missing.
    pub ttl: Millis,
    /// How the key came here, if it was handed over.
    pub moved: Option<Move>,
}

impl OwnerRecord {
    /// The key.
    pub fn key(&self) -> &OwnedKey {
        &self.placement.key
    }

    /// The session that owns the key.
    pub fn session(&self) -> Session {
        Session { id: self.placement.node, ttl: self.ttl }
    }
}

/// A hand-over of a key from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Move {
    /// Names the move, so that state sent ahead finds its key.
    pub id: u64,
    /// Who gave the key away.
    pub from: NodeId,
    /// Whether state of the actors was sent ahead.
    pub state: bool,
}

/// The directory's answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PlacementDecision {
    /// The claimer owns the key now: its own write was applied. It serves if its session still grants it (GRANT).
    Placed(Placement),
    /// Somebody whose session has not ended owned the key when the claimer looked: send the work there.
    AlreadyPlaced(OwnerRecord),
    /// Somebody else came first between the claimer's look and its write: send the work to the winner.
    Raced {
        /// Who owns the key.
        winner: OwnerRecord,
    },
}
