//! The last messages that could not be delivered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::identity::NodeId;

use crate::events::DeadLetter;
use crate::node::Node;

/// A message that nobody waited for and that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptLetter {
    /// Counts the dead letters of the node from 1. A gap between two says how many were pushed out.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_millis: u64,
    /// The node that was to get it, if it was for another one that is known.
    pub node: Option<NodeId>,
    /// What is known of the message.
    pub letter: DeadLetter,
}

/// The last dead letters of a node, over all its lives: bounded, the oldest go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Letters {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    count: u64,
    last: VecDeque<KeptLetter>,
}

impl Letters {
    pub(crate) fn keep(&self, at_millis: u64, node: Option<NodeId>, letter: &DeadLetter) {
        let mut kept = self.lock();
        kept.count += 1;
        if kept.last.len() >= MOST {
            kept.last.pop_front();
        }
        let letter = KeptLetter { number: kept.count, at_millis, node, letter: letter.clone() };
        kept.last.push_back(letter);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// The last 256 messages of this node that nobody waited for and that could not be delivered, the newest first.
    pub fn dead_letters(&self) -> Vec<KeptLetter> {
        self.shared().events().letters().lock().last.iter().rev().cloned().collect()
    }
}

/// How many are kept.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use archipelago_protocol::call::CallError;

    use super::*;

    #[test]
    fn the_oldest_letters_go_and_leave_their_numbers() {
        let letters = Letters::default();
        let (target, message) = ("ns::Kind/key".to_owned(), "Hello".to_owned());
        let letter = DeadLetter { target, message, reason: CallError::Stopped };
        (0..MOST as u64 + 3).for_each(|at| letters.keep(at, None, &letter));
        let kept = letters.lock();
        assert_eq!(kept.last.len(), MOST);
        let ends =
            [kept.last.front(), kept.last.back()].map(|kept| kept.map(|kept| (kept.number, kept.at_millis)));
        assert_eq!(ends, [Some((4, 3)), Some((MOST as u64 + 3, MOST as u64 + 2))]);
    }
}
