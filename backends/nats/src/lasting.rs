//! How long the newest messages stay, as far as this store has written or read them: bounded, and only a hint.
//!
//! A session's beats and a datacenter's heartbeats replace each other with the same time to live. Knowing that of the one
//! before, a beat need not ask the server to remove it at once, and watches that are a little behind still get it.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::message::{Before, Expiry};

/// What is known about the newest messages of subjects.
#[derive(Debug, Default)]
pub(crate) struct Lasting {
    newest: HashMap<String, (u64, Known)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It goes after so many seconds.
    Goes(u64),
    /// It should go by itself, but stays since a delete at that time, for watches that may need both.
    Owes(Moment),
}

impl Lasting {
    /// Takes in that the message `seq` of `subject` was written, and when it goes; `has_ttl` = when it should.
    pub(crate) fn wrote(&mut self, subject: &str, seq: u64, has_ttl: bool, expiry: Expiry) {
        let known = match expiry {
            Expiry::After(ttl) | Expiry::Alone(ttl) => Known::Goes(ttl),
            Expiry::Never if has_ttl => self.debt(subject).unwrap_or(Known::Owes(Moment::now())),
            Expiry::Never => {
                self.newest.remove(subject);
                return;
            }
        };
        self.insert(subject, seq, known);
    }

    /// Takes in that the message `seq` of `subject` goes after `ttl` seconds.
    pub(crate) fn read(&mut self, subject: &str, seq: u64, ttl: u64) {
        self.insert(subject, seq, Known::Goes(ttl));
    }

    /// How long that very message stays; a debt is due after `patience`.
    pub(crate) fn before(&self, subject: &str, seq: u64, patience: Duration) -> Before {
        match self.newest.get(subject) {
            Some((newest, Known::Goes(ttl))) if *newest == seq => Before::Goes(*ttl),
            Some((newest, Known::Owes(since))) if *newest == seq && since.elapsed() <= patience => {
                Before::Fresh
            }
            _ => Before::Stays,
        }
    }

    fn debt(&self, subject: &str) -> Option<Known> {
        self.newest.get(subject).map(|(_, known)| *known).filter(|known| matches!(known, Known::Owes(_)))
    }

    /// Forgetting costs one removed history per key, so no order is kept for it.
    fn insert(&mut self, subject: &str, seq: u64, known: Known) {
        if self.newest.len() >= LIMIT && !self.newest.contains_key(subject) {
            self.newest.clear();
        }
        self.newest.insert(subject.to_owned(), (seq, known));
    }
}

const LIMIT: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn only_the_very_message_is_known() {
        let mut lasting = Lasting::default();
        lasting.wrote("a", 5, true, Expiry::After(72));
        assert_eq!(lasting.before("a", 5, LONG), Before::Goes(72));
        assert_eq!(lasting.before("a", 6, LONG), Before::Stays);
        assert_eq!(lasting.before("b", 5, LONG), Before::Stays);
        lasting.wrote("a", 6, false, Expiry::Never);
        assert_eq!(lasting.before("a", 6, LONG), Before::Stays);
    }

    #[test]
    fn what_should_go_but_stays_is_made_up_for_later() {
        let mut lasting = Lasting::default();
        lasting.wrote("a", 5, true, Expiry::Never);
        lasting.wrote("a", 6, true, Expiry::Never);
        assert_eq!(lasting.before("a", 6, LONG), Before::Fresh);
        std::thread::yield_now();
        assert_eq!(lasting.before("a", 6, Duration::ZERO), Before::Stays);
    }

    #[test]
    fn it_remembers_only_so_many() {
        let mut lasting = Lasting::default();
        (0..20_000_u64).for_each(|n| lasting.read(&n.to_string(), n, 1));
        assert!(lasting.newest.len() <= LIMIT);
        assert_eq!(lasting.before("19999", 19_999, LONG), Before::Goes(1));
    }
}
