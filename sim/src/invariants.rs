//! The promises a run is judged by: how often each was looked at, and which were broken, the first of each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A promise, by the name that design, tests and models call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// No message starts before `on_activate` has succeeded, nor while the farewell runs.
    HandledOnlyWhenValid,
    /// No two activations of one id, counting detached handlers and farewells, live at once.
    AtMostOneActivation,
    /// No handler of an actor starts while another has not ended.
    OneMessageAtATime,
    /// What one sender sends to one actor starts in the order of sending.
    FifoPerSender,
    /// What was accepted is handled, or becomes a dead letter that says why.
    NoAcceptedMessageLost,
    /// No message starts twice.
    NoMessageHandledTwice,
    /// A call reported as not started never starts.
    NotStartedIsTrue,
    /// A call reported as started, or answered, did start.
    StartedIsTrue,
    /// Every call ends by its deadline and one grain of the sweep.
    EveryCallEndsByItsDeadline,
    /// A call ends once, with its own reply.
    CompletionExactlyOnce,
    /// A counter is never below what was acknowledged, nor above what was attempted.
    AckedValueAttempted,
    /// The money in all accounts and on its way is constant.
    BankingSumConstant,
    /// Every instance has a place in the catalog, and no place or call is left when all is quiet.
    CatalogIsConsistent,
    /// No job starts after the session's confirmed deadline, nor under an old generation.
    NothingStartsAfterTheSession,
    /// No handler, detached ones included, goes on after the session's fence.
    NothingRunsAfterTheFence,
    /// Each life of a node has a greater generation than those before.
    GenerationGrows,
    /// Once nothing is wrong any more, every node reaches every kind within a bounded time.
    HealsAfterFaults,
    /// What was accepted and not yet handled, and what is under way, stays below its bounds.
    BuffersAreBounded,
    /// No task and no connection of a node outlives it.
    NothingOutlivesItsNode,
    /// Whoever handles a message is the owner at its generation, as the store says at that moment.
    ServerIsRecorded,
    /// Nobody handles a message whose session has ended in the store.
    EndedSessionIsSilent,
    /// A session that has ended is never written to again.
    EndedNeverComesBack,
    /// Once nothing is wrong any more, every node soon sees all nodes up and answering, and the same leader.
    ViewsConverge,
    /// After a shard's new owner has started anything, nobody starts anything there under an older generation.
    ShardHasOneOwner,
    /// What one sender sends to one actor starts in the order of sending, also if the actor moves in between.
    HandoffKeepsOrder,
    /// In a run in which nothing is wrong, shards that move lose no message.
    NoMessageLostWithoutFault,
    /// An actor that gets state along with its shard gets all that its last activation had, and one whose shard came with
    /// its state does not start without it.
    MigratedStateIsComplete,
    /// An actor whose datacenter is settled beforehand comes to life there and nowhere else.
    LivesWhereItBelongs,
    /// In a run in which nothing is wrong, no node loses its session.
    CalmKeepsSessions,
}

impl Invariant {
    /// Those that the workload of one node looks at.
    pub const LOCAL: &[Self] = &[
        Self::HandledOnlyWhenValid,
        Self::AtMostOneActivation,
        Self::OneMessageAtATime,
        Self::FifoPerSender,
        Self::NoAcceptedMessageLost,
        Self::NoMessageHandledTwice,
        Self::NotStartedIsTrue,
        Self::StartedIsTrue,
        Self::EveryCallEndsByItsDeadline,
        Self::CompletionExactlyOnce,
        Self::AckedValueAttempted,
        Self::BankingSumConstant,
        Self::CatalogIsConsistent,
        Self::NothingStartsAfterTheSession,
        Self::NothingRunsAfterTheFence,
        Self::GenerationGrows,
        Self::EndedSessionIsSilent,
    ];

    /// Those that the workload of several nodes looks at.
    pub const REMOTE: &[Self] = &[
        Self::AtMostOneActivation,
        Self::OneMessageAtATime,
        Self::FifoPerSender,
        Self::NoAcceptedMessageLost,
        Self::NoMessageHandledTwice,
        Self::NotStartedIsTrue,
        Self::StartedIsTrue,
        Self::EveryCallEndsByItsDeadline,
        Self::CompletionExactlyOnce,
        Self::CatalogIsConsistent,
        Self::NothingStartsAfterTheSession,
        Self::NothingRunsAfterTheFence,
        Self::HealsAfterFaults,
        Self::BuffersAreBounded,
        Self::NothingOutlivesItsNode,
        Self::EndedSessionIsSilent,
    ];

    /// Those that the workload of a cluster looks at.
    pub const CLUSTER: &[Self] = &[
        Self::AtMostOneActivation,
        Self::OneMessageAtATime,
        Self::FifoPerSender,
        Self::NoAcceptedMessageLost,
        Self::NoMessageHandledTwice,
        Self::NotStartedIsTrue,
        Self::StartedIsTrue,
        Self::EveryCallEndsByItsDeadline,
        Self::CompletionExactlyOnce,
        Self::AckedValueAttempted,
        Self::CatalogIsConsistent,
        Self::NothingStartsAfterTheSession,
        Self::NothingRunsAfterTheFence,
        Self::GenerationGrows,
        Self::HealsAfterFaults,
        Self::NothingOutlivesItsNode,
        Self::ServerIsRecorded,
        Self::EndedSessionIsSilent,
        Self::EndedNeverComesBack,
        Self::ViewsConverge,
        Self::CalmKeepsSessions,
    ];

    /// Those that the workload of a cluster looks at whose shards move, besides those of [`CLUSTER`](Self::CLUSTER).
    pub const HANDOFF: &[Self] = &[
        Self::ShardHasOneOwner,
        Self::HandoffKeepsOrder,
        Self::NoMessageLostWithoutFault,
        Self::MigratedStateIsComplete,
    ];

    /// Those that the workload of several datacenters looks at.
    pub const DATACENTERS: &[Self] = &[
        Self::AtMostOneActivation,
        Self::LivesWhereItBelongs,
        Self::OneMessageAtATime,
        Self::FifoPerSender,
        Self::NoMessageHandledTwice,
        Self::NotStartedIsTrue,
        Self::StartedIsTrue,
        Self::EveryCallEndsByItsDeadline,
        Self::CompletionExactlyOnce,
        Self::NothingStartsAfterTheSession,
        Self::NothingRunsAfterTheFence,
        Self::EndedSessionIsSilent,
        Self::HealsAfterFaults,
        Self::NothingOutlivesItsNode,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HandledOnlyWhenValid => "handled_only_when_valid",
            Self::AtMostOneActivation => "at_most_one_activation",
            Self::OneMessageAtATime => "one_message_at_a_time",
            Self::FifoPerSender => "fifo_per_sender",
            Self::NoAcceptedMessageLost => "no_accepted_message_lost",
            Self::NoMessageHandledTwice => "no_message_handled_twice",
            Self::NotStartedIsTrue => "not_started_is_true",
            Self::StartedIsTrue => "started_is_true",
            Self::EveryCallEndsByItsDeadline => "every_call_ends_by_its_deadline",
            Self::CompletionExactlyOnce => "completion_exactly_once",
            Self::AckedValueAttempted => "acked_value_attempted",
            Self::BankingSumConstant => "banking_sum_constant",
            Self::CatalogIsConsistent => "catalog_is_consistent",
            Self::NothingStartsAfterTheSession => "nothing_starts_after_the_session",
            Self::NothingRunsAfterTheFence => "nothing_runs_after_the_fence",
            Self::GenerationGrows => "generation_grows",
            Self::HealsAfterFaults => "heals_after_faults",
            Self::BuffersAreBounded => "buffers_are_bounded",
            Self::NothingOutlivesItsNode => "nothing_outlives_its_node",
            Self::ServerIsRecorded => "server_is_recorded",
            Self::EndedSessionIsSilent => "ended_session_is_silent",
            Self::EndedNeverComesBack => "ended_never_comes_back",
            Self::ViewsConverge => "views_converge",
            Self::ShardHasOneOwner => "shard_has_one_owner",
            Self::HandoffKeepsOrder => "handoff_keeps_order",
            Self::NoMessageLostWithoutFault => "no_message_lost_without_fault",
            Self::MigratedStateIsComplete => "migrated_state_is_complete",
            Self::LivesWhereItBelongs => "lives_where_it_belongs",
            Self::CalmKeepsSessions => "calm_keeps_sessions",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// How.
    pub detail: String,
    /// When, in true time since the beginning.
    pub at: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:.3}s: {}", self.invariant, self.at.as_secs_f64(), self.detail)
    }
}

/// The book of one run.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    evaluated: BTreeMap<Invariant, u64>,
    /// The first time that each promise was broken, in that order.
    broken: Vec<Violation>,
}

impl Judge {
    /// Looks at one promise: `holds` must be true.
    pub(crate) fn check(
        &self,
        invariant: Invariant,
        holds: bool,
        at: Duration,
        detail: impl FnOnce() -> String,
    ) {
        let mut inner = self.lock();
        *inner.evaluated.entry(invariant).or_default() += 1;
        if !holds && inner.broken.iter().all(|known| known.invariant != invariant) {
            inner.broken.push(Violation { invariant, detail: detail(), at });
        }
    }

    pub(crate) fn violated(&self) -> bool {
        !self.lock().broken.is_empty()
    }

    /// How often each promise was looked at, and how those were broken that were, the first one first.
    pub(crate) fn verdict(&self) -> (BTreeMap<Invariant, u64>, Vec<Violation>) {
        let inner = self.lock();
        (inner.evaluated.clone(), inner.broken.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_broken_after_another_is_known_as_well() {
        let (judge, at) = (Judge::default(), Duration::ZERO);
        let broken = |invariant, how: &str| judge.check(invariant, false, at, || how.to_owned());
        assert!(!judge.violated());
        broken(Invariant::FifoPerSender, "one");
        broken(Invariant::FifoPerSender, "two");
        broken(Invariant::HandoffKeepsOrder, "three");
        judge.check(Invariant::ShardHasOneOwner, true, at, String::new);
        let (evaluated, found) = judge.verdict();
        let found: Vec<_> = found.iter().map(|one| (one.invariant, one.detail.as_str())).collect();
        assert_eq!(found, [(Invariant::FifoPerSender, "one"), (Invariant::HandoffKeepsOrder, "three")]);
        assert_eq!(evaluated[&Invariant::FifoPerSender], 2);
    }
}
