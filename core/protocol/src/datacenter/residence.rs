//! What a datacenter says when another one asks whether an actor is active in it.
//!
//! [`Residence`] decides what the node that was asked may answer. *Not here* is said only by a node that serves the actor's shard
//! at that moment, or of a shard that nobody owns: else the actor might live on the node that the shard comes from, or goes
//! to. Looking is the shell's.
//!
//! Invariant: of an actor that is active, or was when its shard began to move and has not been asked for since, nobody says
//! [`NotHere`](Residence::NotHere).

use serde::{Deserialize, Serialize};

/// Whether an actor lives in the datacenter that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Residence {
    /// It does.
    Here,
    /// It does not.
    NotHere,
    /// Nobody can say at present: its shard is on its way to another node, or its owner does not answer. This is no *no*.
    Unsettled,
}

/// What a node has to do with the shard of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardHold {
    /// It serves the shard.
    Serves,
    /// It has served it and gives it away: nothing starts any more, and it is not known yet whether the shard goes.
    Leaves,
    /// Nothing, or nothing yet.
    Neither,
}

impl Residence {
    /// What a node says of an actor, given what it has to do with the actor's shard. The actor is `known` if it is active on
    /// the node, or was when the shard began to move.
    pub const fn seen(hold: ShardHold, known: bool) -> Self {
        match (hold, known) {
            (ShardHold::Serves | ShardHold::Leaves, true) => Self::Here,
            (ShardHold::Serves, false) => Self::NotHere,
            // A message that waits for the move to end may bring it to life.
            (ShardHold::Leaves, false) | (ShardHold::Neither, _) => Self::Unsettled,
        }
    }

    /// What is said for the owner of the actor's shard: what it answered, if it did.
    pub const fn as_owner_says(answered: Option<Self>) -> Self {
        match answered {
            Some(answer) => answer,
            None => Self::Unsettled,
        }
    }

    /// Whether it lives there.
    pub const fn is_here(self) -> bool {
        matches!(self, Self::Here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whoever_serves_the_shard_says_no() {
        for hold in [ShardHold::Serves, ShardHold::Leaves, ShardHold::Neither] {
            for known in [false, true] {
                let says_no = Residence::seen(hold, known) == Residence::NotHere;
                assert_eq!(says_no, hold == ShardHold::Serves && !known, "{hold:?} {known}");
            }
        }
        assert_eq!(Residence::as_owner_says(None), Residence::Unsettled, "silence is no no");
    }

    #[test]
    fn an_actor_on_its_way_is_here_as_long_as_its_old_owner_may_keep_it() {
        assert_eq!(Residence::seen(ShardHold::Leaves, true), Residence::Here);
        assert_eq!(Residence::seen(ShardHold::Neither, true), Residence::Unsettled);
    }
}
