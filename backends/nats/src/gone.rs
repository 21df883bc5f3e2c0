//! What this store has deleted lately: bounded, and only ever a hint.
//!
//! A deleted record leaves a marker, so a key that was here before is free at the marker's sequence, not at none. Knowing
//! it saves the next claim of the key a refusal and a read. The markers themselves are cleared up once every watch that
//! could still need them has been told: the next deletes take care of that, and listings of what a crash left behind.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::clock::Moment;

/// The delete markers that this store has written.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    markers: HashMap<String, u64>,
    /// In the order in which they were written; one that was replaced since is not in `markers` any more.
    written: VecDeque<(Moment, String, u64)>,
}

impl Gone {
    /// The marker on `subject`, as far as is known.
    pub(crate) fn marker(&self, subject: &str) -> Option<u64> {
        self.markers.get(subject).copied()
    }

    pub(crate) fn remember(&mut self, subject: String, seq: u64) {
        self.markers.insert(subject.clone(), seq);
        self.written.push_back((Moment::now(), subject, seq));
        while self.written.len() > LIMIT {
            self.pop();
        }
    }

    pub(crate) fn forget(&mut self, subject: &str) {
        self.markers.remove(subject);
    }

    /// Takes out some markers that are older than `age`, and still the newest of their key for all that is known.
    pub(crate) fn take_older_than(&mut self, age: Duration) -> Vec<(String, u64)> {
        let mut due = Vec::new();
        while due.len() < AT_ONCE && self.written.front().is_some_and(|(at, ..)| at.elapsed() > age) {
            due.extend(self.pop());
        }
        due
    }

    fn pop(&mut self) -> Option<(String, u64)> {
        let (_, subject, seq) = self.written.pop_front()?;
        if self.marker(&subject) != Some(seq) {
            return None;
        }
        self.forget(&subject);
        Some((subject, seq))
    }
}

const LIMIT: usize = 65_536;
/// More than one, so that clearing up overtakes deleting.
const AT_ONCE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_until_something_replaces_it() {
        let mut gone = Gone::default();
        gone.remember("a".into(), 5);
        gone.remember("b".into(), 6);
        gone.forget("a");
        assert_eq!((gone.marker("a"), gone.marker("b")), (None, Some(6)));
        assert_eq!(gone.take_older_than(Duration::from_secs(60)), []);
        std::thread::yield_now();
        assert_eq!(gone.take_older_than(Duration::ZERO), [("b".to_owned(), 6)]);
        assert_eq!(gone.marker("b"), None);
    }

    #[test]
    fn a_marker_written_anew_is_not_taken_for_the_old_one() {
        let mut gone = Gone::default();
        gone.remember("a".into(), 5);
        gone.remember("a".into(), 9);
        std::thread::yield_now();
        assert_eq!(gone.take_older_than(Duration::ZERO), [("a".to_owned(), 9)]);
    }

    #[test]
    fn it_remembers_only_so_many() {
        let mut gone = Gone::default();
        (0..70_000_u64).for_each(|n| gone.remember(n.to_string(), n));
        assert_eq!((gone.markers.len(), gone.written.len()), (LIMIT, LIMIT));
    }
}
