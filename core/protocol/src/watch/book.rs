//! The watches of a node: its own, wherever they look, and those of others that look at it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::identity::NodeId;

/// Names a watch among those of the node that watches.
pub type WatchId = u64;

/// A watch of this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnWatch<W> {
    /// Who is to be told.
    pub waiter: W,
    /// The other node that was asked to tell; none if it is this one.
    pub asked: Option<NodeId>,
}

/// There are as many watches as may be. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {bound} watches already")]
pub struct TooManyWatches {
    /// How many there may be.
    pub bound: usize,
}

/// Who watches: `W` is told about a watch of this node, `H` keeps a watch of another node going.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchBook<W, H> {
    bound: usize,
    next: WatchId,
    own: BTreeMap<WatchId, OwnWatch<W>>,
    others: BTreeMap<(NodeId, WatchId), H>,
    closed: bool,
}

impl<W, H> WatchBook<W, H> {
    /// An empty book for so many watches, own and others'.
    pub const fn new(bound: usize) -> Self {
        Self { bound, next: 1, own: BTreeMap::new(), others: BTreeMap::new(), closed: false }
    }

    /// Begins a watch of this node.
    ///
    /// # Errors
    ///
    /// [`TooManyWatches`], also if the book is closed.
    pub fn open(&mut self, waiter: W) -> Result<WatchId, TooManyWatches> {
        self.room()?;
        let id = self.next;
        self.next += 1;
        self.own.insert(id, OwnWatch { waiter, asked: None });
        Ok(id)
    }

    /// Notes that `node` is asked to tell. From here on its end is the end of what is watched.
    pub fn asked(&mut self, id: WatchId, node: NodeId) {
        if let Some(own) = self.own.get_mut(&id) {
            own.asked = Some(node);
        }
    }

    /// Ends a watch because `by` says so: this node if none. Somebody who was not asked is not listened to.
    pub fn end(&mut self, id: WatchId, by: Option<NodeId>) -> Option<W> {
        self.own.get(&id).filter(|own| own.asked == by)?;
        self.own.remove(&id).map(|own| own.waiter)
    }

    /// Whether a watch of this node goes on.
    pub fn is_open(&self, id: WatchId) -> bool {
        self.own.contains_key(&id)
    }

    /// Gives a watch up; who was asked need not tell any more.
    pub fn give_up(&mut self, id: WatchId) -> Option<OwnWatch<W>> {
        self.own.remove(&id)
    }

    /// Takes in a watch of another node; one with the same name is replaced.
    ///
    /// # Errors
    ///
    /// [`TooManyWatches`], also if the book is closed.
    pub fn open_for(&mut self, node: NodeId, id: WatchId, keeper: H) -> Result<(), TooManyWatches> {
        if !self.others.contains_key(&(node, id)) {
            self.room()?;
        }
        self.others.insert((node, id), keeper);
        Ok(())
    }

    /// Ends a watch of another node.
    pub fn close_for(&mut self, node: NodeId, id: WatchId) -> Option<H> {
        self.others.remove(&(node, id))
    }

    /// Whether another node still waits to be told.
    pub fn waits(&self, node: NodeId, id: WatchId) -> bool {
        self.others.contains_key(&(node, id))
    }

    /// A node is gone for ever: whoever waits for its word is to be told, and it waits for none.
    pub fn node_gone(&mut self, node: NodeId) -> Vec<W> {
        self.others.retain(|(watcher, _), _| *watcher != node);
        let ended: Vec<WatchId> =
            self.own.iter().filter(|(_, own)| own.asked == Some(node)).map(|(id, _)| *id).collect();
        ended.into_iter().filter_map(|id| self.own.remove(&id)).map(|own| own.waiter).collect()
    }

    /// This node can tell nobody any more, and learns nothing: takes out everybody who waits, and nobody comes in.
    pub fn close(&mut self) -> Vec<W> {
        self.closed = true;
        self.others.clear();
        core::mem::take(&mut self.own).into_values().map(|own| own.waiter).collect()
    }

    /// How many watches there are.
    pub fn len(&self) -> usize {
        self.own.len() + self.others.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn room(&self) -> Result<(), TooManyWatches> {
        if self.closed || self.len() >= self.bound {
            return Err(TooManyWatches { bound: self.bound });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Book = WatchBook<&'static str, ()>;

    fn node(id: u64) -> NodeId {
        NodeId::new(id)
    }

    #[test]
    fn the_end_of_a_node_ends_the_watches_that_it_was_asked_for_and_no_other() {
        let mut book = Book::new(10);
        let (here, there, elsewhere) =
            (book.open("here").unwrap(), book.open("there").unwrap(), book.open("elsewhere").unwrap());
        book.asked(there, node(2));
        book.asked(elsewhere, node(3));
        book.open_for(node(2), 7, ()).unwrap();
        assert_eq!(book.node_gone(node(2)), ["there"]);
        assert!(!book.waits(node(2), 7), "a node that is gone waits for nothing");
        assert_eq!(book.end(here, None), Some("here"));
        assert_eq!(book.end(elsewhere, Some(node(3))), Some("elsewhere"));
        assert!(book.is_empty());
    }

    #[test]
    fn only_the_node_that_was_asked_may_end_a_watch_and_only_once() {
        let mut book = Book::new(10);
        let id = book.open("w").unwrap();
        book.asked(id, node(2));
        assert_eq!(book.end(id, Some(node(3))), None);
        assert_eq!(book.end(id, None), None);
        assert_eq!(book.end(id, Some(node(2))), Some("w"));
        assert_eq!(book.end(id, Some(node(2))), None);
    }

    #[test]
    fn own_watches_and_those_of_others_share_one_bound() {
        let mut book = Book::new(2);
        let id = book.open("w").unwrap();
        book.open_for(node(2), 1, ()).unwrap();
        book.open_for(node(2), 1, ()).unwrap();
        assert_eq!(book.open("one too many"), Err(TooManyWatches { bound: 2 }));
        assert_eq!(book.open_for(node(2), 2, ()), Err(TooManyWatches { bound: 2 }));
        assert!(book.give_up(id).is_some());
        book.open_for(node(2), 2, ()).unwrap();
        assert!(book.close_for(node(2), 1).is_some());
        assert!(book.open("fits").is_ok());
    }

    #[test]
    fn a_closed_book_has_told_everybody_and_takes_nobody() {
        let mut book = Book::new(2);
        book.open("w").unwrap();
        assert_eq!(book.close(), ["w"]);
        assert!(book.open("late").is_err() && book.open_for(node(2), 1, ()).is_err());
    }
}
