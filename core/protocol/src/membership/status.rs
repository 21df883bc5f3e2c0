//! Where a member stands between joining and being gone, and which steps are legal.

use serde::{Deserialize, Serialize};

/// The status of a member; it only ever grows.
///
/// `Suspect` is no status: it is a mark that others put on a member and take off again
/// ([`Membership::is_suspect`](super::Membership::is_suspect)). `Down` is final for the node's id: a process that
/// comes back joins under another.
///
/// | here | registry's words | gossip's words |
/// |---|---|---|
/// | `Joining` | Joining | joining |
/// | `Up` | Active | up |
/// | `Up`, marked | Suspect | unreachable |
/// | `Leaving`, `Exiting` | Leaving | leaving, exiting |
/// | `Down` | Failed | down |
/// | `Removed` | Left | removed |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemberStatus {
    /// Known, not yet welcomed by the leader.
    Joining,
    /// Takes part.
    Up,
    /// Wants to go and hands over what it owns.
    Leaving,
    /// Has handed over; waits until everybody knows.
    Exiting,
    /// Its session has ended, or its address belongs to another node now.
    Down,
    /// Gone. Kept only as a tombstone, so that old news does not bring it back.
    Removed,
}

impl MemberStatus {
    /// Every status, in order.
    pub const ALL: [Self; 6] =
        [Self::Joining, Self::Up, Self::Leaving, Self::Exiting, Self::Down, Self::Removed];

    /// Takes the step to `next`.
    ///
    /// # Errors
    ///
    /// The step is not a legal one; staying where one is neither.
    pub const fn step(self, next: Self) -> Result<Self, IllegalStep> {
        use MemberStatus::{Down, Exiting, Joining, Leaving, Removed, Up};
        match (self, next) {
            (Joining, Up | Leaving | Down)
            | (Up, Leaving | Down)
            | (Leaving, Exiting | Down)
            | (Exiting, Down | Removed)
            | (Down, Removed) => Ok(next),
            _ => Err(IllegalStep { from: self, to: next }),
        }
    }

    /// Whether everybody must have seen a change before it counts as known: the member takes part in decisions.
    pub const fn has_a_say(self) -> bool {
        matches!(self, Self::Up | Self::Leaving)
    }

    /// Whether the member's process is supposed to run, so that it is beaten, watched and gossiped with.
    pub const fn is_present(self) -> bool {
        matches!(self, Self::Joining | Self::Up | Self::Leaving | Self::Exiting)
    }
}

/// A member cannot go from one status to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("a member that is {from:?} cannot become {to:?}")]
pub struct IllegalStep {
    /// The status it has.
    pub from: MemberStatus,
    /// The status it was to get.
    pub to: MemberStatus,
}

#[cfg(test)]
mod tests {
    use super::MemberStatus::*;
    use super::*;

    /// Proves: R132, R158-R164, C4, C5
    #[test]
    fn exactly_the_legal_steps_are_taken() {
        let legal = [
            (Joining, Up),
            (Joining, Leaving),
            (Joining, Down),
            (Up, Leaving),
            (Up, Down),
            (Leaving, Exiting),
            (Leaving, Down),
            (Exiting, Down),
            (Exiting, Removed),
            (Down, Removed),
        ];
        for from in MemberStatus::ALL {
            for to in MemberStatus::ALL {
                let expected =
                    if legal.contains(&(from, to)) { Ok(to) } else { Err(IllegalStep { from, to }) };
                assert_eq!(from.step(to), expected);
            }
        }
    }

    /// Proves: C5
    #[test]
    fn a_status_never_falls() {
        let legal = |from: MemberStatus, to: MemberStatus| from.step(to).is_ok();
        assert!(MemberStatus::ALL.iter().all(|&a| MemberStatus::ALL.iter().all(|&b| !legal(a, b) || a < b)));
    }
}
