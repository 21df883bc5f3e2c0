//! When a split has lasted long enough to be judged.
//!
//! [`SplitWatch`] keeps the picture that was judged last and starts to count anew whenever it changes, since a network
//! that still moves may heal by itself. It decides *when*; the [`SplitBrain`](super::SplitBrain) strategy decides who.

use alloc::collections::{BTreeMap, BTreeSet};

use super::MemberStatus;
use crate::identity::NodeId;
use crate::time::Millis;

/// What must stand still: who is there, and who cannot be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SplitPicture {
    /// The members and their status.
    pub members: BTreeMap<NodeId, MemberStatus>,
    /// Those who are suspected by anybody.
    pub suspected: BTreeSet<NodeId>,
    /// Those whom nobody on this side reaches.
    pub lost: BTreeSet<NodeId>,
}

/// The machine that waits for a split to stand still.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SplitWatch {
    stable_after: Millis,
    picture: SplitPicture,
    due: Option<Millis>,
}

impl SplitWatch {
    /// A watch that sees no split.
    pub fn new(stable_after: Millis) -> Self {
        Self { stable_after, picture: SplitPicture::default(), due: None }
    }

    /// Takes in how things stand at `now`; any change starts the count anew.
    pub fn look(&mut self, now: Millis, picture: SplitPicture) {
        if picture != self.picture {
            self.due = (!picture.lost.is_empty()).then(|| now + self.stable_after);
            self.picture = picture;
        }
    }

    /// The picture to judge, if it has stood still for long enough; it comes up again after the same time.
    pub fn judge(&mut self, now: Millis) -> Option<&SplitPicture> {
        let due = self.due.filter(|due| now >= *due);
        due.map(|_| {
            self.due = Some(now + self.stable_after);
            &self.picture
        })
    }

    /// When to look again.
    pub const fn due(&self) -> Option<Millis> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(lost: &[u64]) -> SplitPicture {
        let lost: BTreeSet<NodeId> = lost.iter().copied().map(NodeId::new).collect();
        let members = (1..=5).map(|id| (NodeId::new(id), MemberStatus::Up)).collect();
        SplitPicture { members, suspected: lost.clone(), lost }
    }

    /// Proves: R448, C54
    #[test]
    fn any_change_of_the_picture_starts_the_count_anew() {
        let mut watch = SplitWatch::new(Millis(20));
        watch.look(Millis(0), picture(&[1]));
        watch.look(Millis(15), picture(&[1, 2]));
        assert_eq!(watch.judge(Millis(34)), None);
        watch.look(Millis(34), picture(&[1, 2]));
        assert_eq!(watch.judge(Millis(35)), Some(&picture(&[1, 2])));
    }

    #[test]
    fn a_split_that_stays_is_judged_again() {
        let mut watch = SplitWatch::new(Millis(20));
        watch.look(Millis(0), picture(&[1]));
        assert!(watch.judge(Millis(20)).is_some());
        assert!(watch.judge(Millis(39)).is_none());
        assert!(watch.judge(Millis(40)).is_some());
    }

    #[test]
    fn a_healed_split_is_never_judged() {
        let mut watch = SplitWatch::new(Millis(20));
        watch.look(Millis(0), picture(&[1]));
        watch.look(Millis(19), picture(&[]));
        assert_eq!((watch.due(), watch.judge(Millis(99))), (None, None));
    }
}
