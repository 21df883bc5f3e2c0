//! Judges what happened: the journals of all processes, the ledger of acknowledged writes, and the sum of all accounts.
//!
//! For each actor, after a job has started under some generation no job starts and no reply leaves under a lower one. This is
//! about real processes: one that is stopped by a signal between the gate and the deed is not prevented by anybody, and
//! the journal of such a run would be refused; that moment is far shorter than a thousandth of the time between two deeds.

use std::collections::BTreeMap;
use std::fmt;

use crate::journal::{Deed, Mark};

/// What the oracle looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Jobs that started.
    pub starts: usize,
    /// Replies that left.
    pub replies: usize,
    /// How often a job started under a greater generation than all before it.
    pub handovers: usize,
}

/// Why it objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// There is nothing to judge: a test that did nothing would pass.
    Nothing(Deed),
    /// Something was done under a generation that was over.
    Stale {
        /// What was done.
        mark: Mark,
        /// The job that had started before, under a greater generation.
        after: Mark,
    },
    /// A write that was acknowledged is gone.
    Lost {
        /// Whose.
        actor: usize,
        /// What it holds.
        value: u64,
        /// What was acknowledged.
        acknowledged: u64,
    },
    /// There is more than anybody wrote.
    Invented {
        /// Whose.
        actor: usize,
        /// What it holds.
        value: u64,
        /// How often somebody tried.
        attempted: u64,
    },
    /// Money came or went.
    Sum(i64),
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Judges the marks of all processes.
///
/// # Errors
///
/// The first [`Objection`], in the order of time.
pub fn judge(mut marks: Vec<Mark>) -> Result<Verdict, Objection> {
    marks.sort_by_key(|mark| mark.at);
    let mut verdict = Verdict::default();
    let mut newest: BTreeMap<u64, Mark> = BTreeMap::new();
    for mark in marks {
        match newest.get(&mark.actor) {
            Some(after) if mark.generation < after.generation && mark.at > after.at => {
                return Err(Objection::Stale { mark, after: *after });
            }
            _ => verdict.count(mark.deed),
        }
        if mark.deed == Deed::Start {
            let before = newest.entry(mark.actor).or_insert(mark);
            if mark.generation > before.generation {
                verdict.handovers += 1;
                *before = mark;
            }
        }
    }
    verdict.of_something()
}

impl Verdict {
    fn count(&mut self, deed: Deed) {
        match deed {
            Deed::Start => self.starts += 1,
            Deed::Reply => self.replies += 1,
        }
    }

    fn of_something(self) -> Result<Self, Objection> {
        match self {
            Self { starts: 0, .. } => Err(Objection::Nothing(Deed::Start)),
            Self { replies: 0, .. } => Err(Objection::Nothing(Deed::Reply)),
            _ => Ok(self),
        }
    }
}

/// What was written to actors, as their callers know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(BTreeMap<usize, Written>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    attempted: u64,
    acknowledged: u64,
}

impl Ledger {
    /// A write begins.
    pub fn attempt(&mut self, actor: usize) {
        self.0.entry(actor).or_default().attempted += 1;
    }

    /// A write was answered.
    pub fn acknowledge(&mut self, actor: usize) {
        self.0.entry(actor).or_default().acknowledged += 1;
    }

    /// How many writes were answered.
    pub fn acknowledged(&self) -> u64 {
        self.0.values().map(|written| written.acknowledged).sum()
    }

    /// How many were not.
    pub fn unanswered(&self) -> u64 {
        self.0.values().map(|written| written.attempted - written.acknowledged).sum()
    }

    /// Adds what another caller knows.
    pub fn add(&mut self, other: &Self) {
        for (actor, Written { attempted, acknowledged }) in &other.0 {
            let sum = self.0.entry(*actor).or_default();
            sum.attempted += attempted;
            sum.acknowledged += acknowledged;
        }
    }

    /// Whether an actor may hold so many writes.
    ///
    /// # Errors
    ///
    /// [`Objection::Lost`] or [`Objection::Invented`].
    pub fn check(&self, actor: usize, value: u64) -> Result<(), Objection> {
        let Written { attempted, acknowledged } = self.0.get(&actor).copied().unwrap_or_default();
        if value < acknowledged {
            return Err(Objection::Lost { actor, value, acknowledged });
        }
        if value > attempted { Err(Objection::Invented { actor, value, attempted }) } else { Ok(()) }
    }
}

/// Whether nothing came or went: accounts begin empty, and what one gives another gets.
///
/// # Errors
///
/// [`Objection::Sum`].
pub fn check_sum(balances: impl IntoIterator<Item = i64>) -> Result<(), Objection> {
    match balances.into_iter().sum() {
        0 => Ok(()),
        sum => Err(Objection::Sum(sum)),
    }
}

#[cfg(test)]
mod tests {
    use archipelago_protocol::identity::Generation;

    use super::*;

    fn mark(deed: Deed, actor: u64, generation: u64, at: u64) -> Mark {
        Mark { deed, actor, generation: Generation::new(generation), at }
    }

    fn start(actor: u64, generation: u64, at: u64) -> Mark {
        mark(Deed::Start, actor, generation, at)
    }

    fn reply(actor: u64, generation: u64, at: u64) -> Mark {
        mark(Deed::Reply, actor, generation, at)
    }

    #[test]
    fn generations_that_follow_each_other_are_accepted() {
        let marks = vec![start(1, 5, 10), reply(1, 5, 11), start(1, 8, 30), start(2, 3, 40), reply(1, 8, 31)];
        assert_eq!(judge(marks), Ok(Verdict { starts: 3, replies: 2, handovers: 1 }));
    }

    #[test]
    fn a_job_under_an_old_generation_is_objected_to_wherever_it_was_noted() {
        let (after, stale) = (start(1, 8, 30), start(1, 5, 31));
        for marks in [vec![stale, after, reply(1, 8, 40)], vec![after, reply(1, 8, 40), stale]] {
            assert_eq!(judge(marks), Err(Objection::Stale { mark: stale, after }));
        }
    }

    #[test]
    fn a_reply_under_an_old_generation_is_objected_to() {
        let (after, stale) = (start(1, 8, 30), reply(1, 5, 31));
        let marks = vec![start(1, 5, 10), stale, after];
        assert_eq!(judge(marks), Err(Objection::Stale { mark: stale, after }));
    }

    #[test]
    fn nothing_is_no_proof() {
        assert_eq!(judge(Vec::new()), Err(Objection::Nothing(Deed::Start)));
        assert_eq!(judge(vec![start(1, 1, 1)]), Err(Objection::Nothing(Deed::Reply)));
    }

    #[test]
    fn the_ledger_objects_to_what_is_lost_and_to_what_nobody_wrote() {
        let mut ledger = Ledger::default();
        for _ in 0..3 {
            ledger.attempt(4);
        }
        ledger.acknowledge(4);
        let mut sum = Ledger::default();
        sum.add(&ledger);
        assert_eq!(sum, ledger);
        assert_eq!((ledger.acknowledged(), ledger.unanswered()), (1, 2));
        for value in 1..=3 {
            assert_eq!(ledger.check(4, value), Ok(()));
        }
        assert_eq!(ledger.check(4, 0), Err(Objection::Lost { actor: 4, value: 0, acknowledged: 1 }));
        assert_eq!(ledger.check(4, 4), Err(Objection::Invented { actor: 4, value: 4, attempted: 3 }));
        assert_eq!(ledger.check(5, 1), Err(Objection::Invented { actor: 5, value: 1, attempted: 0 }));
    }

    #[test]
    fn money_that_comes_or_goes_is_objected_to() {
        assert_eq!(check_sum([3, -5, 2]), Ok(()));
        assert_eq!(check_sum([3, -5, 3]), Err(Objection::Sum(1)));
    }
}
