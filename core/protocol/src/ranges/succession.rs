//! Which table may follow which.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{RangeTable, RouteEntry};
use crate::identity::PartitionName;

/// What must be true in the directory before a table may follow the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Successor {
    /// Partitions that must have been retired: nobody may depend any more on the new table naming them.
    pub must_be_retired: BTreeSet<PartitionName>,
}

/// Why a table may not follow another: two partitions with a key in common could be owned at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SuccessionError {
    /// A partition's range never changes; give the new range a new name.
    #[error("the range of partition {partition} may not change")]
    RangeChanged {
        /// Which one.
        partition: PartitionName,
    },
    /// A partition's parents may be dropped, but never added.
    #[error("partition {partition} may not get other parents")]
    ParentsChanged {
        /// Whose.
        partition: PartitionName,
    },
    /// A new partition must name all those that hold keys of its range as its parents, and no others.
    #[error("partition {partition} must name the partitions that it is made of as its parents")]
    WrongParents {
        /// Whose.
        partition: PartitionName,
    },
    /// The name belonged to a partition that was divided or merged.
    #[error("the name of partition {partition} has been used before")]
    NameReused {
        /// Which one.
        partition: PartitionName,
    },
}

impl RangeTable {
    /// Whether this table may follow `before`, and what must be true first.
    ///
    /// Parents are one step deep: a partition may be divided or merged only once its own parents have been retired. So
    /// whoever finds all parents of a partition retired knows that nobody owns any key of its range.
    ///
    /// # Errors
    ///
    /// The change could let two partitions with a key in common be owned at once.
    pub fn succeed(&self, before: Option<&Self>) -> Result<Successor, SuccessionError> {
        let mut successor = Successor::default();
        let old: &[RouteEntry] = before.map_or(&[], Self::entries);
        for entry in self.entries() {
            match old.iter().find(|old| old.partition == entry.partition) {
                Some(same) => successor.must_be_retired.extend(dropped_parents(same, entry)?),
                None => check_new(entry, old)?,
            }
        }
        let is_kept = |old: &RouteEntry| self.partition(&old.partition).is_some();
        let vanished = old.iter().filter(|old| !is_kept(old));
        successor.must_be_retired.extend(vanished.flat_map(|entry| entry.parents.iter().cloned()));
        Ok(successor)
    }
}

fn dropped_parents(before: &RouteEntry, now: &RouteEntry) -> Result<Vec<PartitionName>, SuccessionError> {
    let partition = || now.partition.clone();
    if before.range != now.range {
        return Err(SuccessionError::RangeChanged { partition: partition() });
    }
    if now.parents.iter().any(|parent| !before.parents.contains(parent)) {
        return Err(SuccessionError::ParentsChanged { partition: partition() });
    }
    Ok(before.parents.iter().filter(|parent| !now.parents.contains(parent)).cloned().collect())
}

fn check_new(entry: &RouteEntry, old: &[RouteEntry]) -> Result<(), SuccessionError> {
    let overlapped = old.iter().filter(|old| old.range.overlaps(&entry.range));
    let mut parents: Vec<&PartitionName> = overlapped.map(|old| &old.partition).collect();
    parents.sort();
    if !parents.into_iter().eq(entry.parents.iter()) {
        return Err(SuccessionError::WrongParents { partition: entry.partition.clone() });
    }
    if old.iter().any(|old| old.parents.contains(&entry.partition)) {
        return Err(SuccessionError::NameReused { partition: entry.partition.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::table::tests::{at, entry, name, owner};
    use super::*;

    fn halves() -> RangeTable {
        let whole = RangeTable::whole(name("all"), owner(1));
        whole.split(&name("all"), &at("m"), (name("low"), owner(1)), (name("high"), owner(2))).unwrap()
    }

    fn table(entries: Vec<RouteEntry>) -> RangeTable {
        RangeTable::new(entries).unwrap()
    }

    fn with_parents(entry: RouteEntry, parents: &[&str]) -> RouteEntry {
        RouteEntry { parents: parents.iter().map(|parent| name(parent)).collect(), ..entry }
    }

    #[test]
    fn a_first_table_has_no_parents() {
        assert_eq!(table(vec![entry("a", "", "")]).succeed(None), Ok(Successor::default()));
        let orphan = table(vec![with_parents(entry("a", "", ""), &["x"])]);
        assert_eq!(orphan.succeed(None), Err(SuccessionError::WrongParents { partition: name("a") }));
    }

    #[test]
    fn a_split_and_an_assignment_need_nothing_more() {
        let whole = RangeTable::whole(name("all"), owner(1));
        assert_eq!(halves().succeed(Some(&whole)), Ok(Successor::default()));
        let moved = halves().assign(&name("low"), owner(7)).unwrap();
        assert_eq!(moved.succeed(Some(&halves())), Ok(Successor::default()));
    }

    #[test]
    fn a_second_split_waits_for_the_first_ones_parent() {
        let quarters =
            halves().split(&name("low"), &at("g"), (name("ll"), owner(1)), (name("lu"), owner(1))).unwrap();
        let successor = quarters.succeed(Some(&halves())).unwrap();
        assert_eq!(successor.must_be_retired, BTreeSet::from([name("all")]));
        let merged = halves().merge(&name("low"), name("again"), owner(1)).unwrap();
        assert_eq!(merged.succeed(Some(&halves())).unwrap(), successor);
    }

    #[test]
    fn parents_are_dropped_only_once_they_are_retired() {
        let high = with_parents(entry("high", "m", ""), &["all"]);
        let dropped = table(vec![entry("low", "", "m"), high]);
        let successor = dropped.succeed(Some(&halves())).unwrap();
        assert_eq!(successor.must_be_retired, BTreeSet::from([name("all")]));
    }

    #[test]
    fn what_could_overlap_an_owned_partition_is_refused() {
        let before = table(vec![entry("a", "", "m"), entry("b", "m", "")]);
        let refused = |entries| table(entries).succeed(Some(&before)).unwrap_err();
        assert_eq!(
            refused(vec![entry("a", "", "g"), with_parents(entry("c", "g", ""), &["b"])]),
            SuccessionError::RangeChanged { partition: name("a") }
        );
        assert_eq!(
            refused(vec![entry("c", "", "m"), entry("b", "m", "")]),
            SuccessionError::WrongParents { partition: name("c") },
            "renaming is no way around the parent"
        );
        assert_eq!(
            refused(vec![with_parents(entry("c", "", ""), &["a"])]),
            SuccessionError::WrongParents { partition: name("c") },
            "both parents are named"
        );
        assert_eq!(
            refused(vec![with_parents(entry("a", "", "m"), &["x"]), entry("b", "m", "")]),
            SuccessionError::ParentsChanged { partition: name("a") }
        );
    }

    #[test]
    fn the_name_of_a_parent_is_not_used_again() {
        let merged = halves().merge(&name("low"), name("all"), owner(1)).unwrap();
        let refused = merged.succeed(Some(&halves())).unwrap_err();
        assert_eq!(refused, SuccessionError::NameReused { partition: name("all") });
    }
}
