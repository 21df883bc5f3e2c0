//! What one write has come to so far, over all its attempts: whether any of them may be applied, now or later.
//!
//! [`Doubt`] is told of every commit that leaves and of every answer. It decides from which version on the log has to be
//! searched for our own effect, and what is said when the write is given up.
//!
//! Invariant: `Unavailable` and `Fatal` are said only if no attempt is applied, now or later.

use archipelago_directory::StoreError;
use archipelago_protocol::contract::BoxError;

use crate::code::Code;
use crate::value::Foreign;

/// The doubt about one write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Doubt {
    /// The read version of the commit that is under way.
    under_way: Option<u64>,
    /// The least read version of those that ended without saying how.
    unknown: Option<u64>,
    /// Why the last attempt failed.
    last: Option<Code>,
}

impl Doubt {
    /// A commit that read at `read_version` leaves.
    pub(crate) fn commit_leaves(&mut self, read_version: u64) {
        self.under_way = Some(read_version);
    }

    /// The commit under way ended with `code`.
    pub(crate) fn commit_failed(&mut self, code: Code) {
        let sent = self.under_way.take();
        if !code.certainly_not_committed() {
            self.unknown = self.unknown.into_iter().chain(sent).min();
        }
    }

    /// An attempt has failed with `code`, and another is made.
    pub(crate) fn begins_anew(&mut self, code: Code) {
        self.last = Some(code);
    }

    /// Why the last attempt failed.
    pub(crate) fn last(&self) -> Option<Code> {
        self.last
    }

    /// After which version an attempt may have been applied. It cannot be at or before: it has read at that version.
    pub(crate) fn since(&self) -> Option<u64> {
        self.unknown
    }

    /// What is said when nothing more is tried, because of `why`.
    pub(crate) fn give_up(&self, why: GivenUp) -> StoreError {
        if self.unknown.is_some() || self.under_way.is_some() {
            return StoreError::Unknown { source: why.into_source() };
        }
        match why {
            GivenUp::Code(code) => code.of_read(),
            GivenUp::Because(source) => StoreError::Unavailable { source },
            GivenUp::Fatal(source) => StoreError::Fatal { source },
        }
    }
}

/// Why nothing more is tried.
#[derive(Debug)]
pub(crate) enum GivenUp {
    /// The engine says that trying again will not help.
    Code(Code),
    /// Something that may be better another time.
    Because(BoxError),
    /// Something that will not be better.
    Fatal(BoxError),
}

impl GivenUp {
    fn into_source(self) -> BoxError {
        match self {
            Self::Code(code) => code.into(),
            Self::Because(source) | Self::Fatal(source) => source,
        }
    }
}

impl From<Code> for GivenUp {
    fn from(code: Code) -> Self {
        Self::Code(code)
    }
}

impl From<Foreign> for GivenUp {
    fn from(foreign: Foreign) -> Self {
        Self::Fatal(foreign.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(codes: &[i32]) -> Doubt {
        let mut doubt = Doubt::default();
        for (n, &code) in codes.iter().enumerate() {
            doubt.commit_leaves(10 + n as u64);
            doubt.commit_failed(Code(code));
        }
        doubt
    }

    fn unknown(doubt: &Doubt, why: impl Into<GivenUp>) -> bool {
        matches!(doubt.give_up(why.into()), StoreError::Unknown { .. })
    }

    #[test]
    fn a_commit_under_way_is_in_doubt_until_it_is_answered() {
        let mut doubt = Doubt::default();
        assert!(!unknown(&doubt, GivenUp::Because("too late".into())));
        doubt.commit_leaves(10);
        assert!(unknown(&doubt, GivenUp::Because("too late".into())));
        doubt.commit_failed(Code::NOT_COMMITTED);
        assert!(!unknown(&doubt, GivenUp::Because("too late".into())));
        assert_eq!(doubt.since(), None);
    }

    #[test]
    fn an_unknown_commit_stays_in_doubt_whatever_later_attempts_come_to() {
        let doubt = after(&[1020, 1021, 1020, 1039, 1020]);
        assert_eq!(doubt.since(), Some(11), "the log is searched from the first of them on");
        assert!(unknown(&doubt, Code::NOT_COMMITTED));
        assert!(unknown(&doubt, Code::VALUE_TOO_LARGE));
    }

    #[test]
    fn a_write_without_doubt_is_given_up_as_what_the_code_means() {
        assert!(matches!(after(&[2103]).give_up(Code(2103).into()), StoreError::Fatal { .. }));
        assert!(matches!(after(&[1020]).give_up(Code(1020).into()), StoreError::Unavailable { .. }));
        assert!(unknown(&after(&[1031]), Code(1031)), "a time limit may have cut off an answer");
    }
}
