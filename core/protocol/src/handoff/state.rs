//! Where a shard stands at a node.

use super::events::Owned;
use crate::identity::Generation;
use crate::session::Session;
use crate::time::Millis;

/// What one node has to do with one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostState {
    /// The shard is not here.
    Absent,
    /// A message says that the shard is here; a look-up will tell.
    Probing,
    /// The record is, or may be, this node's; a write of its own makes sure.
    Reasserting(Assertion),
    /// The shard is served here.
    Serving {
        /// Under which generations.
        tenancy: Tenancy,
        /// The target that thinks about an offer.
        offer: Option<Offered>,
    },
    /// Nothing new starts; what runs comes to its end.
    Draining(Drain),
    /// The transfer is under way.
    Transferring(Departure),
    /// This node may not serve any more, until it has another session.
    Fenced,
}

/// Under which generations a shard is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tenancy {
    /// The generation of the record.
    pub generation: Generation,
    /// The one at which the tenure began; messages sent under any in between are meant for this node.
    pub since: Generation,
}

impl Tenancy {
    /// Whether a message sent under `generation` is meant for this tenure (GEN).
    pub fn admits(self, generation: Generation) -> bool {
        (self.since..=self.generation).contains(&generation)
    }
}

/// The write that makes a record this node's own, for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assertion {
    /// A claim of a shard that nobody owns.
    Claim {
        /// Since when somebody has been waiting for it.
        since: Millis,
        /// How many claims were left unanswered.
        unanswered: u32,
        /// When to claim again; none while a claim is under way.
        again_at: Option<Millis>,
    },
    /// A reassertion of this record, repeated until an answer or the record shows what became of it.
    Recast {
        /// The record that is written anew.
        base: Owned,
        /// How many were left unanswered.
        unanswered: u32,
        /// When to write it again.
        again_at: Millis,
    },
}

/// A shard that was offered to another node, which has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offered {
    /// The move.
    pub move_id: u64,
    /// Until when an answer is waited for.
    pub until: Millis,
}

/// A drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drain {
    /// What was served, and is again if the drain is cancelled.
    pub tenancy: Tenancy,
    /// Who gets the shard; none if it is given up.
    pub to: Option<Session>,
    /// The move.
    pub move_id: u64,
    /// When it has taken too long.
    pub until: Millis,
    /// Until when the acknowledgement of the parcels is waited for; none before they are sent.
    pub parcels_until: Option<Millis>,
}

/// A transfer that was sent, or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Departure {
    /// What was served.
    pub tenancy: Tenancy,
    /// Who gets the shard; none if it is given up.
    pub to: Option<Session>,
    /// The move.
    pub move_id: u64,
    /// Until when an answer is waited for.
    pub until: Millis,
}
