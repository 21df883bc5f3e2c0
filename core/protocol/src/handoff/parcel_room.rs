//! The parcels that came ahead to one node, until the shard comes or does not.
//!
//! [`ParcelRoom`] keeps the parts of each move together. Nothing is kept that was not announced by an offer which this node
//! has accepted, and no more bytes than the bound. When all parts are there, the shell reads them, which takes a while, and
//! keeps here what they say. When a parcel dies, the shard's own machine says.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;

use super::frame::HandoffFrame;
use super::luggage::CarriedState;
use crate::identity::NodeId;

/// The parcels of all moves to one node; `S` names a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParcelRoom<S> {
    moves: BTreeMap<u64, Coming<S>>,
    bytes: usize,
    most: usize,
}

/// One move.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Coming<S> {
    from: NodeId,
    shard: S,
    parts: Vec<Option<Bytes>>,
    /// What the parts say, once somebody has read them; then they are not kept any more, but count as before.
    states: Option<Vec<CarriedState>>,
    bytes: usize,
}

/// One part of a parcel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Which, from zero.
    pub number: u32,
    /// Of how many.
    pub of: u32,
    /// The bytes.
    pub bytes: Bytes,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Received<S> {
    /// It is kept, and others are missing.
    Some,
    /// All parts of what comes for this shard are here.
    All(S),
}

/// Why a part is not kept. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParcelRefused {
    /// No such move was offered by this sender, or it is over.
    #[error("nobody waits for a parcel of this move")]
    Unannounced,
    /// The part does not fit to those before it.
    #[error("the part does not belong to the others")]
    Contradictory,
    /// The node keeps enough already.
    #[error("there is no room for more parcels, {most} bytes at most are kept")]
    Full {
        /// The bound.
        most: usize,
    },
}

impl<S: Copy> ParcelRoom<S> {
    /// An empty room for so many bytes.
    pub const fn new(most: usize) -> Self {
        Self { moves: BTreeMap::new(), bytes: 0, most }
    }

    /// An offer was accepted: parcels of this move may come from that node.
    pub fn expect(&mut self, move_id: u64, from: NodeId, shard: S) {
        self.forget(move_id);
        self.moves.insert(move_id, Coming { from, shard, parts: Vec::new(), states: None, bytes: 0 });
    }

    /// Keeps one part that came from a node.
    ///
    /// # Errors
    ///
    /// The part is not kept.
    pub fn put(&mut self, from: NodeId, move_id: u64, part: Part) -> Result<Received<S>, ParcelRefused> {
        let Part { number, of, bytes } = part;
        let coming = self.moves.get_mut(&move_id).filter(|coming| coming.from == from);
        let coming = coming.ok_or(ParcelRefused::Unannounced)?;
        if coming.states.is_some() {
            return Ok(Received::All(coming.shard));
        }
        let (number, of) = (number as usize, of as usize);
        let known = if coming.parts.is_empty() { of } else { coming.parts.len() };
        if number >= of || of != known || of > HandoffFrame::MAX_PARTS as usize {
            return Err(ParcelRefused::Contradictory);
        }
        let before = coming.parts.get(number).and_then(Option::as_ref).map_or(0, Bytes::len);
        if self.bytes - before + bytes.len() > self.most {
            return Err(ParcelRefused::Full { most: self.most });
        }
        self.bytes = self.bytes - before + bytes.len();
        coming.bytes = coming.bytes - before + bytes.len();
        if coming.parts.is_empty() {
            coming.parts = vec![None; of];
        }
        coming.parts[number] = Some(bytes);
        let all = coming.parts.iter().all(Option::is_some);
        Ok(if all { Received::All(coming.shard) } else { Received::Some })
    }

    /// All parts of a move, to be read; `None` if something is missing, or they have been read.
    pub fn parts(&self, move_id: u64) -> Option<Vec<Bytes>> {
        let coming = self.moves.get(&move_id).filter(|coming| coming.states.is_none())?;
        coming.parts.iter().cloned().collect()
    }

    /// Keeps what the parts of a move say in their place, unless the move is over.
    pub fn was_read(&mut self, move_id: u64, states: Vec<CarriedState>) {
        let whole = |coming: &&mut Coming<S>| coming.parts.iter().all(Option::is_some);
        if let Some(coming) = self.moves.get_mut(&move_id).filter(whole) {
            coming.parts = Vec::new();
            coming.states = Some(states);
        }
    }

    /// What came for a move, which is over by that; `None` if something is missing or nobody has read it.
    pub fn take(&mut self, move_id: u64) -> Option<Vec<CarriedState>> {
        self.forget(move_id)?.states
    }

    /// Forgets what came for a move, and takes nothing for it any more.
    pub fn drop_move(&mut self, move_id: u64) {
        self.forget(move_id);
    }

    /// How many bytes are kept.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many moves are waited for.
    pub fn len(&self) -> usize {
        self.moves.len()
    }

    /// Whether no move is waited for.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    fn forget(&mut self, move_id: u64) -> Option<Coming<S>> {
        let coming = self.moves.remove(&move_id)?;
        self.bytes -= coming.bytes;
        Some(coming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: NodeId = NodeId::new(1);

    fn part(number: u32, of: u32, text: &'static str) -> Part {
        Part { number, of, bytes: Bytes::from_static(text.as_bytes()) }
    }

    fn room() -> ParcelRoom<u16> {
        let mut room = ParcelRoom::new(8);
        room.expect(7, FROM, 3);
        room
    }

    #[test]
    fn parts_in_any_order_make_one_parcel() {
        let mut room = room();
        assert_eq!(room.put(FROM, 7, part(1, 2, "de")), Ok(Received::Some));
        assert_eq!(room.put(FROM, 7, part(0, 2, "abc")), Ok(Received::All(3)));
        assert_eq!(room.put(FROM, 7, part(0, 2, "abC")), Ok(Received::All(3)), "a repeated part counts once");
        assert_eq!(room.bytes(), 5);
        assert_eq!(room.parts(7).map(|parts| parts.concat()).as_deref(), Some(&b"abCde"[..]));
        assert_eq!(room.clone().take(7), None, "nobody has read it");
        let states = || vec![CarriedState { key: "one".into(), state: None }];
        room.was_read(7, states());
        assert_eq!(room.put(FROM, 7, part(1, 2, "de")), Ok(Received::All(3)), "repeated, and read already");
        assert_eq!((room.parts(7), room.bytes()), (None, 5), "it counts as long as it is here");
        assert_eq!(room.take(7), Some(states()));
        assert_eq!((room.bytes(), room.len()), (0, 0));
    }

    #[test]
    fn a_parcel_with_a_part_missing_is_none() {
        let mut room = room();
        assert_eq!(room.put(FROM, 7, part(0, 2, "abc")), Ok(Received::Some));
        assert_eq!(room.parts(7), None);
        room.was_read(7, Vec::new());
        assert_eq!(room.take(7), None);
        assert!(room.is_empty());
        assert_eq!(room.take(8), None);
    }

    #[test]
    fn what_was_not_announced_is_refused() {
        let mut room = room();
        assert_eq!(room.put(FROM, 8, part(0, 1, "a")), Err(ParcelRefused::Unannounced));
        assert_eq!(room.put(NodeId::new(2), 7, part(0, 1, "a")), Err(ParcelRefused::Unannounced));
        room.drop_move(7);
        assert_eq!(room.put(FROM, 7, part(0, 1, "a")), Err(ParcelRefused::Unannounced));
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let mut room = room();
        assert_eq!(room.put(FROM, 7, part(0, 2, "a")), Ok(Received::Some));
        assert_eq!(room.put(FROM, 7, part(1, 3, "b")), Err(ParcelRefused::Contradictory));
        assert_eq!(room.put(FROM, 7, part(2, 2, "b")), Err(ParcelRefused::Contradictory));
        room.expect(8, FROM, 4);
        assert_eq!(room.put(FROM, 8, part(0, 129, "b")), Err(ParcelRefused::Contradictory));
    }

    #[test]
    fn the_room_is_bounded_and_free_again_when_a_move_is_over() {
        let mut room = room();
        room.expect(8, FROM, 4);
        assert_eq!(room.put(FROM, 7, part(0, 1, "abcdef")), Ok(Received::All(3)));
        assert_eq!(room.put(FROM, 8, part(0, 1, "abc")), Err(ParcelRefused::Full { most: 8 }));
        room.expect(7, FROM, 3);
        assert_eq!(room.bytes(), 0, "the next attempt begins with nothing");
        assert_eq!(room.put(FROM, 8, part(0, 1, "abc")), Ok(Received::All(4)));
    }
}
