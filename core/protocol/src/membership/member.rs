//! One member as a view shows it, and what it says about its load.

use serde::{Deserialize, Serialize};

use super::MemberStatus;
use crate::identity::{NodeId, NodeInfo};

/// A node in the view of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Who it is and where it is reached; never changes for one id.
    pub info: NodeInfo,
    /// Where it stands.
    pub status: MemberStatus,
    /// Its place in the order in which leaders let members in, from 1; 0 before that.
    pub up_number: u64,
    /// Whether a leaving member has handed over what it owned.
    pub handed_off: bool,
}

impl Member {
    /// The most bytes of a name, a version or a role.
    pub const MAX_TEXT: usize = 256;
    /// The most kinds that a node may host.
    pub const MAX_KINDS: usize = 1_024;
    /// The most roles.
    pub const MAX_ROLES: usize = 64;

    /// A member that has just become known.
    pub const fn joining(info: NodeInfo) -> Self {
        Self { info, status: MemberStatus::Joining, up_number: 0, handed_off: false }
    }

    /// Its id.
    pub const fn id(&self) -> NodeId {
        self.info.id
    }

    /// Takes over what `other` knows of the same node beyond this.
    ///
    /// Of two numbers given by leaders that did not know of each other, the lower stays.
    pub(super) fn merge(&mut self, other: &Self) {
        self.status = self.status.max(other.status);
        self.handed_off |= other.handed_off;
        self.up_number = match (self.up_number, other.up_number) {
            (0, number) | (number, 0) => number,
            (a, b) => a.min(b),
        };
        if order_of(&other.info) > order_of(&self.info) {
            self.info = other.info.clone();
        }
    }

    /// Whether its texts are short enough for a view to stay of bounded size.
    pub(super) fn is_bounded(info: &NodeInfo) -> bool {
        info.name.len() <= Self::MAX_TEXT
            && info.version.len() <= Self::MAX_TEXT
            && info.roles.len() <= Self::MAX_ROLES
            && info.roles.iter().all(|role| role.len() <= Self::MAX_TEXT)
            && info.kinds.len() <= Self::MAX_KINDS
            && info.kinds.iter().all(|kind| kind.len() <= Self::MAX_TEXT)
    }
}

/// Any order will do: it decides between two descriptions of one id, which only a fault can bring about.
fn order_of(info: &NodeInfo) -> impl Ord + '_ {
    (&info.address, &info.name, &info.version, &info.roles, &info.kinds)
}

/// How busy a node says it is, for placement.
///
/// The word with the greater `counter` is the newer one; a node counts its own up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeLoad {
    /// How many words of this sort the node has given.
    pub counter: u32,
    /// Virtual actors that are active.
    pub activations: u32,
    /// Messages that were taken for them and have not begun.
    pub waiting: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::samples::info;

    #[test]
    fn knowledge_of_a_member_adds_up() {
        let mut here = Member { up_number: 4, ..Member::joining(info(1)) };
        let there = Member { status: MemberStatus::Leaving, up_number: 3, handed_off: true, info: info(1) };
        here.merge(&there);
        assert_eq!(here, there);
        here.merge(&Member::joining(info(1)));
        assert_eq!(here, there);
    }

    /// Proves: R133
    #[test]
    fn a_member_is_an_address_a_status_and_roles() {
        let mut described = info(1);
        described.roles.extend(["backend".into(), "frontend".into(), "backend".into()]);
        let member = Member::joining(described);
        let told: Member = postcard::from_bytes(&postcard::to_allocvec(&member).unwrap()).unwrap();
        assert_eq!(told.info.address, "node-0001:4710".parse().unwrap());
        assert_eq!(told.status, MemberStatus::Joining);
        assert!(told.info.roles.iter().eq(["backend", "frontend"]), "a set");
    }

    #[test]
    fn a_description_without_bounds_is_seen_as_such() {
        let mut long = info(1);
        assert!(Member::is_bounded(&long));
        long.roles.insert("r".repeat(Member::MAX_TEXT + 1));
        assert!(!Member::is_bounded(&long));
    }
}
