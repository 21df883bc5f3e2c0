//! The names that a peer told, and the short numbers that frames carry in their place.

use alloc::vec::Vec;

use super::hello::KindEntry;
use crate::message::WireId;

/// The kinds and messages of one peer, found by name and by place.
///
/// What lies beyond the places that 16 bits can name is not found; a handshake with so many is refused before.
/// Of two equal names the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerTables {
    kinds: Vec<KindTable>,
    /// The places of the kinds, by name.
    by_name: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KindTable {
    entry: KindEntry,
    /// The places of the messages, by wire id.
    by_id: Vec<(WireId, u16)>,
}

impl PeerTables {
    /// The tables of a peer with these kinds, in the order of its hello.
    pub fn new(kinds: Vec<KindEntry>) -> Self {
        let kinds: Vec<KindTable> = kinds.into_iter().map(KindTable::new).collect();
        let mut by_name: Vec<u16> = places(kinds.len()).collect();
        by_name.sort_by_key(|&place| (&kinds[usize::from(place)].entry.name, place));
        Self { kinds, by_name }
    }

    /// The place of the kind `name`; none if the peer does not know it.
    pub fn kind(&self, name: &str) -> Option<u16> {
        let at = self.by_name.partition_point(|&place| self.name_at(place) < name);
        self.by_name.get(at).copied().filter(|&place| self.name_at(place) == name)
    }

    /// The place of a message among those of the kind at `kind`; none if the peer does not know it.
    pub fn message(&self, kind: u16, id: WireId) -> Option<u16> {
        let by_id = &self.kinds.get(usize::from(kind))?.by_id;
        let at = by_id.partition_point(|&(other, _)| other < id);
        by_id.get(at).filter(|(found, _)| *found == id).map(|&(_, place)| place)
    }

    /// The name of the kind at `kind`.
    pub fn kind_name(&self, kind: u16) -> Option<&str> {
        self.kinds.get(usize::from(kind)).map(|table| table.entry.name.as_str())
    }

    /// The message at `message` among those of the kind at `kind`.
    pub fn message_at(&self, kind: u16, message: u16) -> Option<(WireId, &str)> {
        let messages = &self.kinds.get(usize::from(kind))?.entry.messages;
        messages.get(usize::from(message)).map(|(id, name)| (*id, name.as_str()))
    }

    /// How many kinds the peer told.
    pub const fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether it told none, as a client does.
    pub const fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    fn name_at(&self, place: u16) -> &str {
        self.kinds[usize::from(place)].entry.name.as_str()
    }
}

impl KindTable {
    fn new(entry: KindEntry) -> Self {
        let ids = entry.messages.iter().map(|(id, _)| *id);
        let mut by_id: Vec<(WireId, u16)> = ids.zip(places(entry.messages.len())).collect();
        by_id.sort_unstable();
        Self { entry, by_id }
    }
}

/// The places of a list of this length that frames can name.
fn places(len: usize) -> impl Iterator<Item = u16> {
    0..u16::try_from(len).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use proptest::prelude::*;

    use super::super::samples::kind;
    use super::*;
    use crate::message::wire_id;

    #[test]
    fn names_are_found_whatever_their_order() {
        let tables =
            PeerTables::new(vec![kind("b", &["b.Two", "b.One"]), kind("a", &[]), kind("c", &["c.One"])]);
        assert_eq!([tables.kind("a"), tables.kind("b"), tables.kind("c")], [Some(1), Some(0), Some(2)]);
        assert_eq!(tables.message(0, wire_id("b.One")), Some(1));
        assert_eq!(tables.message_at(0, 1), Some((wire_id("b.One"), "b.One")));
        assert_eq!(tables.kind_name(1), Some("a"));
    }

    #[test]
    fn what_was_not_told_is_not_found() {
        let tables = PeerTables::new(vec![kind("b", &["b.One"])]);
        assert_eq!((tables.kind("a"), tables.kind("c"), tables.kind_name(1)), (None, None, None));
        assert_eq!((tables.message(0, wire_id("x")), tables.message(1, wire_id("b.One"))), (None, None));
        assert_eq!((tables.message_at(0, 1), tables.message_at(1, 0)), (None, None));
        assert!(PeerTables::default().is_empty() && PeerTables::default().kind("b").is_none());
    }

    #[test]
    fn of_two_equal_names_the_first_counts() {
        let tables = PeerTables::new(vec![kind("a", &["m", "m"]), kind("a", &[])]);
        assert_eq!((tables.kind("a"), tables.message(0, wire_id("m"))), (Some(0), Some(0)));
    }

    proptest! {
        #[test]
        fn name_and_place_lead_to_each_other(names in prop::collection::btree_set(0_u32..500, 0..60)) {
            let texts: Vec<_> = names.iter().map(|n| format!("k{}", n.wrapping_mul(7_919) % 1_000)).collect();
            let messages: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
            let tables = PeerTables::new(texts.iter().map(|name| kind(name, &messages)).collect());
            for (place, name) in (0_u16..).zip(&messages) {
                prop_assert_eq!(tables.kind(name), Some(place));
                prop_assert_eq!(tables.kind_name(place), Some(*name));
                prop_assert_eq!(tables.message(place, wire_id(name)), Some(place));
                prop_assert_eq!(tables.message_at(0, place), Some((wire_id(name), *name)));
            }
        }
    }
}
