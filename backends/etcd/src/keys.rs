//! Where records stand in etcd: readable paths below one prefix.
//!
//! ```text
//! <prefix>/<space>/<key>                     the record
//! <prefix>/by-tag/<space>/<tag>/<key>        the same value again, for listings by tag
//! ```
//!
//! Names of spaces are letters only, so nothing else begins like `by-tag`; a slash in a tag is written `%2F`, so that a
//! listing of one tag never holds another's.

use archipelago_directory::{RecordId, Space};

/// Turns names of records into keys, and back.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.trim_end_matches('/').to_owned() }
    }

    /// What all keys begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn record(&self, id: &RecordId) -> String {
        format!("{}/{}/{}", self.prefix, id.space, id.key)
    }

    pub(crate) fn tagged(&self, id: &RecordId, tag: &str) -> String {
        self.space(id.space, Some(tag)) + &id.key
    }

    /// What the keys of a space begin with, or its entries under one tag.
    pub(crate) fn space(&self, space: Space, tag: Option<&str>) -> String {
        match tag {
            None => format!("{}/{space}/", self.prefix),
            Some(tag) => format!("{}/by-tag/{space}/{}/", self.prefix, escaped(tag)),
        }
    }

    /// The record that a key below `start` names.
    pub(crate) fn id(space: Space, start: &str, key: &[u8]) -> Option<RecordId> {
        let key = std::str::from_utf8(key).ok()?.strip_prefix(start)?;
        Some(RecordId::new(space, key))
    }
}

/// The first key after all that begin with `start`; `start` ends with a slash, which is no last byte.
pub(crate) fn end_of(start: &str) -> Vec<u8> {
    let mut end = start.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

fn escaped(tag: &str) -> String {
    tag.replace('%', "%25").replace('/', "%2F")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_readable_and_can_be_read_back() {
        let keys = Keys::new("/shop/");
        let id = RecordId::new(Space::OWNERS, "shard/Account/7");
        assert_eq!(keys.record(&id), "/shop/own/shard/Account/7");
        assert_eq!(keys.tagged(&id, "00ab"), "/shop/by-tag/own/00ab/shard/Account/7");
        for (tag, key) in [(None, keys.record(&id)), (Some("00ab"), keys.tagged(&id, "00ab"))] {
            let start = keys.space(Space::OWNERS, tag);
            assert_eq!(Keys::id(Space::OWNERS, &start, key.as_bytes()), Some(id.clone()));
        }
    }

    #[test]
    fn a_tag_with_a_slash_is_no_tag_below_another() {
        let keys = Keys::new("/shop");
        let id = RecordId::new(Space::OWNERS, "k");
        let of_a = keys.space(Space::OWNERS, Some("a"));
        assert!(!keys.tagged(&id, "a/b").starts_with(&of_a));
        assert_ne!(keys.tagged(&id, "a/b"), keys.tagged(&id, "a%2Fb"));
    }

    #[test]
    fn a_range_ends_after_its_last_key() {
        assert_eq!(end_of("/shop/own/"), b"/shop/own0");
    }
}
