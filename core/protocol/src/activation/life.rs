//! When an activation may start a job, and when it must go.
//!
//! [`Life`] holds the state, the number of running jobs and the two clocks of idleness. The catalog's slot
//! feeds it and carries out what it allows; the queue itself stays with the slot.
//!
//! Invariants: jobs start only in `Valid` and not after somebody asked for deactivation; `Deactivating` is
//! entered from `Valid` only when no job runs.

use serde::{Deserialize, Serialize};

use crate::message::MessageFlags;
use crate::time::Millis;

use super::{ActivationState, IllegalTransition};

/// Why an activation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DeactivateReason {
    /// No message kept it alive for the idle time of its kind.
    Idle,
    /// Somebody asked for it.
    Requested,
    /// The actor stopped its own context.
    StoppedItself,
    /// A handler panicked.
    Panicked,
    /// The node stops.
    NodeStopping,
    /// `on_activate`, the factory or the loading of its state failed.
    ActivationFailed,
    /// More actors were active than may be, and this one was used least recently.
    Evicted,
    /// Its shard goes to another node, where the next message finds it.
    Moving,
}

/// What one look for an actor that can make room found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoomLook {
    /// It is idle and was asked to leave.
    Asked,
    /// It has work, or was used later than was known: look at it again after those that were last used before this.
    UsedAt(Millis),
    /// It leaves anyway.
    Leaves,
}

/// Which messages of a kind may overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// One message at a time, whatever its flags say.
    #[default]
    Never,
    /// `ALWAYS_INTERLEAVE` messages overlap with each other and with nothing else.
    ReadOnly,
    /// Every message starts as soon as it arrives, as plain actix does with async handlers.
    Always,
}

/// The life of one activation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    state: ActivationState,
    running: u32,
    /// All running jobs are `ALWAYS_INTERLEAVE`.
    running_interleaves: bool,
    leaving: Option<DeactivateReason>,
    worked: bool,
    last_message: Millis,
    last_keepalive: Millis,
}

impl Life {
    /// A life that begins at `now`, in `Creating`.
    pub const fn new(now: Millis) -> Self {
        Self {
            state: ActivationState::Creating,
            running: 0,
            running_interleaves: true,
            leaving: None,
            worked: false,
            last_message: now,
            last_keepalive: now,
        }
    }

    /// Goes one step further.
    ///
    /// # Errors
    ///
    /// [`IllegalTransition`] if life has no such step, or if jobs still run; nothing changed.
    pub fn advance(&mut self, to: ActivationState) -> Result<(), IllegalTransition> {
        let busy = to == ActivationState::Deactivating && self.running > 0;
        if busy || !self.state.may_become(to) {
            return Err(IllegalTransition { from: self.state, to });
        }
        self.state = to;
        Ok(())
    }

    /// Asks the activation to end as soon as its running jobs have; the first reason stands.
    pub fn leave(&mut self, reason: DeactivateReason) {
        self.leaving.get_or_insert(reason);
    }

    /// Notes that a job has started at `now`.
    #[inline]
    pub fn job_started(&mut self, now: Millis, flags: MessageFlags) {
        let interleaves = flags.contains(MessageFlags::ALWAYS_INTERLEAVE);
        self.running_interleaves = interleaves && (self.running == 0 || self.running_interleaves);
        self.running += 1;
        self.worked = true;
        self.last_message = now;
        if !flags.contains(MessageFlags::SUPPRESS_KEEP_ALIVE) {
            self.last_keepalive = now;
        }
    }

    /// Notes that a job has ended at `now`: a long job counts as activity until its end.
    #[inline]
    pub fn job_ended(&mut self, now: Millis, flags: MessageFlags) {
        self.running = self.running.saturating_sub(1);
        if !flags.contains(MessageFlags::SUPPRESS_KEEP_ALIVE) {
            self.last_keepalive = self.last_keepalive.max(now);
        }
    }

    /// True if a job with these flags may start now, where `most` of them may overlap.
    #[inline]
    pub fn may_start(&self, flags: MessageFlags, rule: Interleave, most: u32) -> bool {
        let room = self.running == 0
            || self.running < most
                && match rule {
                    Interleave::Never => false,
                    Interleave::ReadOnly => {
                        self.running_interleaves && flags.contains(MessageFlags::ALWAYS_INTERLEAVE)
                    }
                    Interleave::Always => true,
                };
        room && self.state == ActivationState::Valid && self.leaving.is_none()
    }

    /// The reason to enter `Deactivating` now, if there is one and no job runs.
    #[inline]
    pub fn may_leave(&self) -> Option<DeactivateReason> {
        if self.state == ActivationState::Valid && self.running == 0 { self.leaving } else { None }
    }

    /// One look for idleness: asks the activation to leave if it has been idle for `idle_after` and no message is
    /// `waiting`; otherwise answers when to look again, always later than `now`. `None` if it leaves anyway.
    pub fn look_for_idleness(&mut self, now: Millis, idle_after: Millis, waiting: bool) -> Option<Millis> {
        if self.leaving.is_some() {
            return None;
        }
        match self.idle_at(idle_after) {
            Some(due) if due > now => Some(due),
            Some(_) if !waiting => {
                self.leave(DeactivateReason::Idle);
                None
            }
            // Busy now. Looked at again soon: messages that keep nothing alive must not put its end off for long.
            _ => Some(now + Millis((idle_after.0 / 10).max(1))),
        }
    }

    /// One look for room at `now`: asks the activation to leave if it has nothing to do, no message is `waiting`, and it was
    /// not used since `known`.
    pub fn look_for_room(&mut self, now: Millis, known: Millis, waiting: bool) -> RoomLook {
        if self.leaving.is_some() {
            return RoomLook::Leaves;
        }
        if waiting || self.running > 0 || self.state != ActivationState::Valid {
            return RoomLook::UsedAt(now);
        }
        if self.last_keepalive > known {
            return RoomLook::UsedAt(self.last_keepalive);
        }
        self.leave(DeactivateReason::Evicted);
        RoomLook::Asked
    }

    /// When the activation was last used.
    pub const fn last_used(&self) -> Millis {
        self.last_keepalive
    }

    /// When the activation will have been idle for `idle_after`; `None` while it is not idling.
    pub fn idle_at(&self, idle_after: Millis) -> Option<Millis> {
        let idling = self.state == ActivationState::Valid && self.running == 0 && self.leaving.is_none();
        idling.then(|| self.last_keepalive + idle_after)
    }

    /// The state.
    pub const fn state(&self) -> ActivationState {
        self.state
    }

    /// How many jobs have started and not ended.
    pub const fn running(&self) -> u32 {
        self.running
    }

    /// When the last job started.
    pub const fn last_message(&self) -> Millis {
        self.last_message
    }

    /// True if it ended by itself before it handled anything: to begin again at once would only repeat it.
    pub const fn was_stillborn(&self) -> bool {
        let by_itself =
            matches!(self.leaving, Some(DeactivateReason::Panicked | DeactivateReason::StoppedItself));
        by_itself && !self.worked
    }

    /// Why it is about to end, if it is.
    pub const fn leaving(&self) -> Option<DeactivateReason> {
        self.leaving
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ActivationState::{Activating, Creating, Deactivating, Invalid, Valid};

    const PLAIN: MessageFlags = MessageFlags::empty();
    const OVERLAP: MessageFlags = MessageFlags::ALWAYS_INTERLEAVE;
    const MANY: u32 = 1_000;
    const QUIET: MessageFlags = MessageFlags::SUPPRESS_KEEP_ALIVE;

    fn valid() -> Life {
        let mut life = Life::new(Millis(0));
        life.advance(Activating).unwrap();
        life.advance(Valid).unwrap();
        life
    }

    /// Proves: R250, R259
    #[test]
    fn jobs_start_only_when_valid() {
        let mut life = Life::new(Millis(0));
        for next in [Activating, Valid, Deactivating, Invalid] {
            assert_eq!(life.may_start(PLAIN, Interleave::Always, MANY), life.state() == Valid);
            life.advance(next).unwrap();
        }
        assert!(!life.may_start(PLAIN, Interleave::Always, MANY));
    }

    /// Proves: R262, C16
    #[test]
    fn one_job_at_a_time_by_default() {
        let mut life = valid();
        life.job_started(Millis(1), PLAIN);
        assert!(!life.may_start(PLAIN, Interleave::Never, MANY));
        assert!(!life.may_start(OVERLAP, Interleave::Never, MANY));
        life.job_ended(Millis(2), PLAIN);
        assert!(life.may_start(PLAIN, Interleave::Never, MANY));
    }

    /// Proves: R76, R500
    #[test]
    fn interleaving_messages_overlap_only_with_each_other() {
        let mut life = valid();
        life.job_started(Millis(1), OVERLAP);
        assert!(life.may_start(OVERLAP, Interleave::ReadOnly, MANY));
        assert!(!life.may_start(PLAIN, Interleave::ReadOnly, MANY));
        life.job_ended(Millis(2), OVERLAP);
        life.job_started(Millis(3), PLAIN);
        assert!(!life.may_start(OVERLAP, Interleave::ReadOnly, MANY));
    }

    #[test]
    fn no_more_jobs_overlap_than_may() {
        for rule in [Interleave::ReadOnly, Interleave::Always] {
            let mut life = valid();
            for running in 0..3 {
                assert!(life.may_start(OVERLAP, rule, 3), "{running} run");
                life.job_started(Millis(1), OVERLAP);
            }
            assert!(!life.may_start(OVERLAP, rule, 3));
            life.job_ended(Millis(2), OVERLAP);
            assert!(life.may_start(OVERLAP, rule, 3));
        }
        assert!(valid().may_start(PLAIN, Interleave::Always, 0), "one may always run");
    }

    /// Proves: R264, R78, R318, R317, C17
    #[test]
    fn a_quiet_message_is_noted_but_does_not_keep_alive() {
        let mut life = valid();
        life.job_started(Millis(50), QUIET);
        life.job_ended(Millis(60), QUIET);
        assert_eq!(life.last_message(), Millis(50));
        assert_eq!(life.idle_at(Millis(100)), Some(Millis(100)));
        life.job_started(Millis(70), PLAIN);
        assert_eq!(life.idle_at(Millis(100)), None, "a running job is not idle");
        life.job_ended(Millis(90), PLAIN);
        assert_eq!(life.idle_at(Millis(100)), Some(Millis(190)));
    }

    /// Proves: R311, R318
    #[test]
    fn a_busy_look_is_repeated_soon_so_that_quiet_messages_do_not_put_the_end_off() {
        let mut life = valid();
        assert_eq!(life.look_for_idleness(Millis(60), Millis(100), false), Some(Millis(100)));
        life.job_started(Millis(99), QUIET);
        assert_eq!(life.look_for_idleness(Millis(100), Millis(100), false), Some(Millis(110)), "it works");
        life.job_ended(Millis(105), QUIET);
        assert_eq!(life.look_for_idleness(Millis(110), Millis(100), true), Some(Millis(120)), "one waits");
        assert_eq!(life.look_for_idleness(Millis(120), Millis(100), false), None);
        assert_eq!(life.leaving(), Some(DeactivateReason::Idle));
        assert_eq!(life.look_for_idleness(Millis(130), Millis(0), false), None);
    }

    #[test]
    fn only_an_idle_activation_that_was_not_used_since_makes_room() {
        let mut life = valid();
        life.job_started(Millis(40), PLAIN);
        assert_eq!(
            life.look_for_room(Millis(50), Millis(40), false),
            RoomLook::UsedAt(Millis(50)),
            "it works"
        );
        life.job_ended(Millis(60), PLAIN);
        assert_eq!(life.look_for_room(Millis(70), Millis(50), false), RoomLook::UsedAt(Millis(60)));
        assert_eq!(
            life.look_for_room(Millis(70), Millis(60), true),
            RoomLook::UsedAt(Millis(70)),
            "one waits"
        );
        assert_eq!(life.look_for_room(Millis(70), Millis(70), false), RoomLook::Asked);
        assert_eq!(life.leaving(), Some(DeactivateReason::Evicted));
        assert_eq!(life.look_for_room(Millis(80), Millis(80), false), RoomLook::Leaves);
        let mut newborn = Life::new(Millis(0));
        assert_eq!(newborn.look_for_room(Millis(9), Millis(9), false), RoomLook::UsedAt(Millis(9)));
    }

    #[test]
    fn a_busy_activation_leaves_after_its_jobs() {
        let mut life = valid();
        life.job_started(Millis(1), PLAIN);
        life.leave(DeactivateReason::Requested);
        life.leave(DeactivateReason::Idle);
        assert!(life.advance(Deactivating).is_err());
        assert_eq!(life.may_leave(), None);
        life.job_ended(Millis(2), PLAIN);
        assert!(!life.may_start(PLAIN, Interleave::Always, MANY), "nothing starts after the request");
        assert_eq!(life.may_leave(), Some(DeactivateReason::Requested));
    }

    proptest! {
        /// Proves: R251, R253, R261, R270
        #[test]
        fn no_order_of_requests_makes_an_illegal_step(steps in prop::collection::vec(0_usize..5, 0..40)) {
            let mut life = Life::new(Millis(0));
            let mut seen_valid = false;
            for step in steps {
                let before = life.state();
                let to = ActivationState::ALL[step];
                let done = life.advance(to);
                prop_assert_eq!(done.is_ok(), before.may_become(to));
                prop_assert_eq!(life.state(), if done.is_ok() { to } else { before });
                prop_assert!(before != Invalid || life.state() == Invalid);
                prop_assert!(life.state() != Valid || before == Activating || seen_valid);
                seen_valid |= life.state() == Valid;
            }
            prop_assert!(life.state() != Creating || !seen_valid);
        }
    }
}
