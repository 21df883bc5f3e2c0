//! Which keys stand where: the tuple layer, below one prefix.
//!
//! ```text
//! (prefix, "record", space, key)           stamp, nonce, tag, value
//! (prefix, "tag", space, tag, key)         nothing: everything that a node holds is one range
//! (prefix, "log", space, versionstamp)     nonce, key, tag, value: each change, in the order of the commits
//! (prefix, "last", space)                  stamp of the newest change: what watches wait for
//! (prefix, "cut", space)                   version up to which the log has been cut off
//! ```

use archipelago_directory::{RecordId, Space};
use foundationdb_tuple::{Subspace, Versionstamp, pack};

/// The keys below a prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    root: Subspace,
}

/// A range: from, and up to but not including.
pub(crate) type KeyRange = (Vec<u8>, Vec<u8>);

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { root: Subspace::from_bytes(pack(&(prefix,))) }
    }

    pub(crate) fn record(&self, id: &RecordId) -> Vec<u8> {
        self.root.pack(&("record", id.space.as_str(), id.key.as_str()))
    }

    pub(crate) fn records(&self, space: Space) -> KeyRange {
        self.all_records(space).range()
    }

    /// The record that stands at a key of [`records`](Self::records).
    pub(crate) fn id_of_record(&self, space: Space, key: &[u8]) -> Option<RecordId> {
        id(space, &self.all_records(space), key)
    }

    pub(crate) fn tagged(&self, id: &RecordId, tag: &str) -> Vec<u8> {
        self.root.pack(&("tag", id.space.as_str(), tag, id.key.as_str()))
    }

    pub(crate) fn all_tagged(&self, space: Space, tag: &str) -> KeyRange {
        self.under_tag(space, tag).range()
    }

    /// The record that a key of [`all_tagged`](Self::all_tagged) stands for.
    pub(crate) fn id_of_tagged(&self, space: Space, tag: &str, key: &[u8]) -> Option<RecordId> {
        id(space, &self.under_tag(space, tag), key)
    }

    /// The key of the `n`th change of a transaction, with room for its versionstamp.
    pub(crate) fn new_in_log(&self, space: Space, n: u16) -> Vec<u8> {
        self.log(space).pack_with_versionstamp(&(Versionstamp::incomplete(n),))
    }

    /// Everything in the log that was committed after `version`.
    pub(crate) fn log_after(&self, space: Space, version: u64) -> KeyRange {
        let log = self.log(space);
        let end = log.range().1;
        match version.checked_add(1) {
            Some(next) => (log.pack(&(first_of(next),)), end),
            None => (end.clone(), end),
        }
    }

    /// Everything in the log that was committed at or before `version`.
    pub(crate) fn log_through(&self, space: Space, version: u64) -> KeyRange {
        (self.log(space).range().0, self.log_after(space, version).0)
    }

    /// The commit version in a key of the log.
    pub(crate) fn version_in_log(&self, space: Space, key: &[u8]) -> Option<u64> {
        let (stamp,) = self.log(space).unpack::<(Versionstamp,)>(key).ok()?;
        version_of(stamp.as_bytes())
    }

    pub(crate) fn last(&self, space: Space) -> Vec<u8> {
        self.root.pack(&("last", space.as_str()))
    }

    pub(crate) fn cut(&self, space: Space) -> Vec<u8> {
        self.root.pack(&("cut", space.as_str()))
    }

    fn all_records(&self, space: Space) -> Subspace {
        self.root.subspace(&("record", space.as_str()))
    }

    fn under_tag(&self, space: Space, tag: &str) -> Subspace {
        self.root.subspace(&("tag", space.as_str(), tag))
    }

    fn log(&self, space: Space) -> Subspace {
        self.root.subspace(&("log", space.as_str()))
    }
}

/// The commit version that a stamp begins with.
pub(crate) fn version_of(stamp: &[u8]) -> Option<u64> {
    stamp.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// The key that follows `key` immediately.
pub(crate) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn id(space: Space, within: &Subspace, key: &[u8]) -> Option<RecordId> {
    let (key,) = within.unpack::<(String,)>(key).ok()?;
    Some(RecordId::new(space, key))
}

fn first_of(version: u64) -> Versionstamp {
    let mut stamp = [0; STAMP];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    Versionstamp::complete(stamp, 0)
}

/// The length of a stamp: eight bytes of the commit version and two of the order within it.
pub(crate) const STAMP: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(keys: &Keys, version: u64, order: u16, n: u16) -> Vec<u8> {
        let mut key = keys.new_in_log(Space::OWNERS, n);
        let offset = key.split_off(key.len() - 4);
        let at = u32::from_le_bytes(offset.try_into().unwrap()) as usize;
        key[at..at + 8].copy_from_slice(&version.to_be_bytes());
        key[at + 8..at + STAMP].copy_from_slice(&order.to_be_bytes());
        key
    }

    #[test]
    fn records_are_read_back_from_their_keys() {
        let keys = Keys::new("archipelago");
        let id = RecordId::new(Space::OWNERS, "shard/\u{e4}\u{0}b");
        assert_eq!(keys.id_of_record(Space::OWNERS, &keys.record(&id)), Some(id.clone()));
        assert_eq!(keys.id_of_tagged(Space::OWNERS, "a", &keys.tagged(&id, "a")), Some(id.clone()));
        assert_eq!(keys.id_of_record(Space::NODES, &keys.record(&id)), None);
        assert_eq!(keys.id_of_tagged(Space::OWNERS, "a", &keys.tagged(&id, "ab")), None);
    }

    #[test]
    fn ranges_hold_what_they_name_and_nothing_else() {
        let keys = Keys::new("archipelago");
        let (begin, end) = keys.all_tagged(Space::OWNERS, "a");
        let within = |key: &Vec<u8>| begin <= *key && *key < end;
        let id = RecordId::new(Space::OWNERS, "k");
        assert!(
            within(&keys.tagged(&id, "a")) && within(&keys.tagged(&RecordId::new(Space::OWNERS, ""), "a"))
        );
        assert!(!within(&keys.tagged(&id, "ab")) && !within(&keys.tagged(&id, "")));
        let (begin, end) = keys.records(Space::OWNERS);
        let other = Keys::new("archipelago2").record(&id);
        assert!(begin <= keys.record(&id) && keys.record(&id) < end && !(begin <= other && other < end));
    }

    #[test]
    fn the_log_is_in_the_order_of_commits_and_is_divided_at_a_version() {
        let keys = Keys::new("archipelago");
        let log = [(7, 0, 0), (7, 0, 1), (7, 1, 0), (8, 0, 0), (1 << 40, 9, 9)];
        let log = log.map(|(version, order, n)| logged(&keys, version, order, n));
        assert!(log.is_sorted());
        let later = keys.log_after(Space::OWNERS, 7);
        let within = |(begin, end): &KeyRange| log.iter().filter(|key| begin <= *key && *key < end).count();
        assert_eq!(within(&later), 2);
        assert_eq!(within(&keys.log_through(Space::OWNERS, 7)), 3);
        assert_eq!(within(&keys.log_after(Space::OWNERS, 0)), 5);
        assert_eq!(within(&keys.log_after(Space::OWNERS, u64::MAX)), 0);
        assert_eq!(keys.version_in_log(Space::OWNERS, &log[4]), Some(1 << 40));
    }
}
