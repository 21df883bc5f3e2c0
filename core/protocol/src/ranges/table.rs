//! The table that divides all keys of one kind into partitions.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::KeyRange;
use crate::identity::{ActorKey, NodeAddress, NodeId, PartitionName};

/// Every key of one kind in exactly one partition, in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeTable {
    entries: Vec<RouteEntry>,
}

/// One partition, and who should own it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteEntry {
    /// The partition's name; never used again for another one.
    pub partition: PartitionName,
    /// Its keys; never change.
    pub range: KeyRange,
    /// Who should own it. Who does is for the directory to say.
    pub owner: RouteOwner,
    /// The partitions that it was made of, sorted. It is claimed only after each of them has been retired.
    pub parents: Vec<PartitionName>,
}

/// A node as the table names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteOwner {
    /// The incarnation.
    pub node: NodeId,
    /// Where it is reached.
    pub address: NodeAddress,
    /// How it was when the table was made.
    pub status: OwnerStatus,
}

/// How a node was when a table was made. A number in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerStatus {
    /// A full member (0).
    Up,
    /// On its way out (1).
    Leaving,
    /// Gone; the partition waits for another owner (2).
    Down,
}

impl RangeTable {
    /// The greatest number of partitions.
    pub const MAX_PARTITIONS: usize = 4_096;
    /// The greatest number of parents of one partition.
    pub const MAX_PARENTS: usize = 64;

    /// A table of these partitions.
    ///
    /// # Errors
    ///
    /// They do not hold every key exactly once, in order, under different names.
    pub fn new(entries: Vec<RouteEntry>) -> Result<Self, TableError> {
        if entries.is_empty() || entries.len() > Self::MAX_PARTITIONS {
            return Err(TableError::Count { partitions: entries.len() });
        }
        check_cover(&entries)?;
        check_names(&entries)?;
        Ok(Self { entries })
    }

    /// The table of a kind that is not divided yet.
    pub fn whole(partition: PartitionName, owner: RouteOwner) -> Self {
        Self { entries: vec![RouteEntry { partition, range: KeyRange::ALL, owner, parents: Vec::new() }] }
    }

    /// The partitions, in the order of their keys.
    pub fn entries(&self) -> &[RouteEntry] {
        &self.entries
    }

    /// The partition that `key` lies in.
    pub fn find(&self, key: &str) -> &RouteEntry {
        let later = self.entries.partition_point(|entry| entry.range.starts_by(key));
        // The first range starts below every key, so at least one starts by this one.
        &self.entries[later.saturating_sub(1)]
    }

    /// The partition of this name.
    pub fn partition(&self, name: &PartitionName) -> Option<&RouteEntry> {
        self.entries.iter().find(|entry| entry.partition == *name)
    }

    /// The same table with `partition` given to another node.
    ///
    /// # Errors
    ///
    /// There is no such partition.
    pub fn assign(&self, partition: &PartitionName, owner: RouteOwner) -> Result<Self, TableError> {
        let mut table = self.clone();
        let entry = table.entries.iter_mut().find(|entry| entry.partition == *partition);
        entry.ok_or_else(|| TableError::unknown(partition))?.owner = owner;
        Ok(table)
    }

    /// The same table with `partition` divided at `at` into two new ones, its children.
    ///
    /// # Errors
    ///
    /// There is no such partition, `at` is not inside it, or a child's name is taken.
    pub fn split(
        &self,
        partition: &PartitionName,
        at: &ActorKey,
        lower: (PartitionName, RouteOwner),
        upper: (PartitionName, RouteOwner),
    ) -> Result<Self, TableError> {
        let place = self.place(partition)?;
        let ranges = self.entries[place].range.split(at);
        let (below, above) = ranges.ok_or_else(|| TableError::NotInside { partition: partition.clone() })?;
        let child = |(name, owner), range| RouteEntry {
            partition: name,
            range,
            owner,
            parents: vec![partition.clone()],
        };
        let mut entries = self.entries.clone();
        entries.splice(place..=place, [child(lower, below), child(upper, above)]);
        Self::new(entries)
    }

    /// The same table with `partition` and the one after it made into one.
    ///
    /// # Errors
    ///
    /// There is no such partition, none after it, or the name is taken.
    pub fn merge(
        &self,
        partition: &PartitionName,
        into: PartitionName,
        owner: RouteOwner,
    ) -> Result<Self, TableError> {
        let place = self.place(partition)?;
        let [first, second] = self.entries.get(place..place + 2).unwrap_or_default() else {
            return Err(TableError::NotInside { partition: partition.clone() });
        };
        let range = KeyRange::new(first.range.start().cloned(), second.range.end().cloned());
        let mut parents = vec![first.partition.clone(), second.partition.clone()];
        parents.sort();
        let merged = RouteEntry { partition: into, range: range.unwrap_or_default(), owner, parents };
        let mut entries = self.entries.clone();
        entries.splice(place..place + 2, [merged]);
        Self::new(entries)
    }

    fn place(&self, partition: &PartitionName) -> Result<usize, TableError> {
        let place = self.entries.iter().position(|entry| entry.partition == *partition);
        place.ok_or_else(|| TableError::unknown(partition))
    }
}

/// Why partitions are not a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// There are none, or too many.
    #[error("a table has 1 to {} partitions, this one {partitions}", RangeTable::MAX_PARTITIONS)]
    Count {
        /// How many there are.
        partitions: usize,
    },
    /// The partition does not start where the one before it ends: keys are missing, shared, or out of order.
    #[error("partition {partition} does not start where the one before it ends")]
    NotAdjacent {
        /// Which one.
        partition: PartitionName,
    },
    /// The last partition has an end: the keys beyond are missing.
    #[error("the last partition {partition} does not reach to the last key")]
    NotComplete {
        /// Which one.
        partition: PartitionName,
    },
    /// The name is used twice, or by a parent.
    #[error("partition {partition} is named twice")]
    NameTaken {
        /// Which one.
        partition: PartitionName,
    },
    /// The parents are too many, not sorted, or named twice.
    #[error("the parents of partition {partition} are too many or not in order")]
    Parents {
        /// Whose.
        partition: PartitionName,
    },
    /// There is no such partition.
    #[error("there is no partition {partition}")]
    Unknown {
        /// Which one.
        partition: PartitionName,
    },
    /// A split outside the partition, or a merge with nothing after it.
    #[error("partition {partition} cannot be divided or merged there")]
    NotInside {
        /// Which one.
        partition: PartitionName,
    },
}

impl TableError {
    fn unknown(partition: &PartitionName) -> Self {
        Self::Unknown { partition: partition.clone() }
    }
}

fn check_cover(entries: &[RouteEntry]) -> Result<(), TableError> {
    let mut reached = None;
    for (n, entry) in entries.iter().enumerate() {
        // An end of `None` is beyond every start, so nothing follows it.
        if entry.range.start() != reached || (n > 0 && reached.is_none()) {
            return Err(TableError::NotAdjacent { partition: entry.partition.clone() });
        }
        reached = entry.range.end();
    }
    match (reached, entries.last()) {
        (Some(_), Some(last)) => Err(TableError::NotComplete { partition: last.partition.clone() }),
        _ => Ok(()),
    }
}

fn check_names(entries: &[RouteEntry]) -> Result<(), TableError> {
    let mut names = BTreeSet::new();
    if let Some(twice) = entries.iter().find(|entry| !names.insert(&entry.partition)) {
        return Err(TableError::NameTaken { partition: twice.partition.clone() });
    }
    for entry in entries {
        let in_order = entry.parents.is_sorted_by(|a, b| a < b);
        if !in_order || entry.parents.len() > RangeTable::MAX_PARENTS {
            return Err(TableError::Parents { partition: entry.partition.clone() });
        }
        if let Some(parent) = entry.parents.iter().find(|parent| names.contains(parent)) {
            return Err(TableError::NameTaken { partition: parent.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn name(text: &str) -> PartitionName {
        PartitionName::new(text).unwrap()
    }

    pub(crate) fn owner(node: u64) -> RouteOwner {
        let address = NodeAddress::new("10.0.0.1", 4_710).unwrap();
        RouteOwner { node: NodeId::new(node), address, status: OwnerStatus::Up }
    }

    pub(crate) fn at(text: &str) -> ActorKey {
        ActorKey::new(text).unwrap()
    }

    pub(crate) fn entry(text: &str, start: &str, end: &str) -> RouteEntry {
        let range = KeyRange::new(ActorKey::new(start).ok(), ActorKey::new(end).ok()).unwrap();
        RouteEntry { partition: name(text), range, owner: owner(1), parents: Vec::new() }
    }

    /// Proves: R323
    #[test]
    fn a_key_is_found_in_the_partition_that_holds_it() {
        let table =
            RangeTable::new(vec![entry("a", "", "g"), entry("b", "g", "p"), entry("c", "p", "")]).unwrap();
        for (key, partition) in [("", "a"), ("f", "a"), ("g", "b"), ("ozz", "b"), ("p", "c"), ("é", "c")] {
            assert_eq!(table.find(key).partition, name(partition), "{key}");
        }
    }

    #[test]
    fn gaps_overlaps_disorder_and_loose_ends_are_refused() {
        let refused = |entries: Vec<RouteEntry>| RangeTable::new(entries).unwrap_err();
        let not_adjacent = |text| TableError::NotAdjacent { partition: name(text) };
        assert_eq!(refused(vec![]), TableError::Count { partitions: 0 });
        assert_eq!(refused(vec![entry("a", "b", "")]), not_adjacent("a"));
        assert_eq!(refused(vec![entry("a", "", "g"), entry("b", "h", "")]), not_adjacent("b"));
        assert_eq!(refused(vec![entry("a", "", "g"), entry("b", "f", "")]), not_adjacent("b"));
        assert_eq!(refused(vec![entry("b", "g", ""), entry("a", "", "g")]), not_adjacent("b"));
        assert_eq!(refused(vec![entry("a", "", ""), entry("b", "", "")]), not_adjacent("b"));
        assert_eq!(refused(vec![entry("a", "", "g")]), TableError::NotComplete { partition: name("a") });
        assert_eq!(
            refused(vec![entry("a", "", "g"), entry("a", "g", "")]),
            TableError::NameTaken { partition: name("a") }
        );
        let many = (0..=RangeTable::MAX_PARTITIONS).map(|_| entry("a", "", "")).collect();
        assert_eq!(refused(many), TableError::Count { partitions: 4_097 });
    }

    #[test]
    fn parents_are_sorted_and_none_of_them_is_in_the_table() {
        let with = |parents: &[&str]| {
            let parents = parents.iter().map(|parent| name(parent)).collect();
            RangeTable::new(vec![RouteEntry { parents, ..entry("a", "", "") }])
        };
        assert!(with(&["x", "y"]).is_ok());
        for wrong in [&["y", "x"][..], &["x", "x"]] {
            assert_eq!(with(wrong), Err(TableError::Parents { partition: name("a") }));
        }
        assert_eq!(with(&["a"]), Err(TableError::NameTaken { partition: name("a") }));
    }

    #[test]
    fn splits_and_merges_name_their_parents() {
        let table = RangeTable::whole(name("all"), owner(1));
        let split = table.split(&name("all"), &at("m"), (name("low"), owner(1)), (name("high"), owner(2)));
        let split = split.unwrap();
        let parts: Vec<_> =
            split.entries().iter().map(|e| (e.partition.as_str(), e.parents.clone())).collect();
        assert_eq!(parts, [("low", vec![name("all")]), ("high", vec![name("all")])]);
        assert_eq!(split.find("n").owner.node, NodeId::new(2));
        let merged = split.merge(&name("low"), name("again"), owner(3)).unwrap();
        assert_eq!(merged.entries()[0].range, KeyRange::ALL);
        assert_eq!(merged.entries()[0].parents, [name("high"), name("low")]);
        assert_eq!(
            split.merge(&name("high"), name("x"), owner(1)).unwrap_err(),
            TableError::NotInside { partition: name("high") }
        );
        assert_eq!(
            table.assign(&name("none"), owner(2)).unwrap_err(),
            TableError::Unknown { partition: name("none") }
        );
    }

    proptest! {
        /// However a table is cut, every key lies in exactly one partition, and `find` gives that one.
        #[test]
        fn every_key_lies_in_exactly_one_partition(
            cuts in proptest::collection::btree_set("[a-d]{1,3}", 0..8), key in "[a-e]{0,4}",
        ) {
            let mut table = RangeTable::whole(name("p"), owner(1));
            for (n, cut) in cuts.iter().enumerate() {
                let whole = table.find(cut).partition.clone();
                let children = (name(&alloc::format!("l{n}")), name(&alloc::format!("u{n}")));
                table = table.split(&whole, &at(cut), (children.0, owner(1)), (children.1, owner(1))).unwrap();
            }
            prop_assert_eq!(table.entries().len(), cuts.len() + 1);
            let holding: Vec<_> = table.entries().iter().filter(|e| e.range.contains(&key)).collect();
            prop_assert_eq!(holding, vec![table.find(&key)]);
        }
    }
}
