//! When something of a node still runs past its fence, and what is to be done about it.
//!
//! At the fence everything that runs on a node's data arbiters is dropped. A handler that blocks its thread cannot be
//! dropped from inside: [`FenceWatch`] decides when an arbiter counts as stuck, and whether the process is to be aborted
//! or the matter is only reported ([`OnStuck`]). It does no I/O and reads no clock. Its shell looks from a thread that
//! no user code can block, and carries out what it asks for.
//!
//! Invariant: an arbiter that was not asked to end, and given a grace *after* the watch itself ran, is not called stuck.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::times;
use crate::time::Millis;

/// What a node does about a handler that blocks its thread past the fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnStuck {
    /// Aborts the process: nothing has an effect after others may have taken over.
    #[default]
    Abort,
    /// Says so, and stays down until the handler returns. Its effects on the outside world are not prevented.
    Report,
}

/// What the shell sees when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FenceSight {
    /// By when everything must have ended. Zero: it must have ended already, others may have taken over.
    pub fence_at: Millis,
    /// How many data arbiters have not ended.
    pub running: usize,
}

/// What the shell does about it, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceAction {
    /// Make the arbiters look at the clock: one that sleeps must wake up to end.
    AskToEnd,
    /// So many arbiters are stuck: abort the process.
    Abort(usize),
    /// So many arbiters are stuck: say so.
    Report(usize),
    /// What was reported has ended.
    Freed,
    /// Look again at this time, or sooner.
    LookAt(Millis),
}

/// Watches the fence of one life of a node. An answer without [`FenceAction::LookAt`] is the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FenceWatch {
    on_stuck: OnStuck,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The fence is ahead.
    Ahead,
    /// The arbiters have until then; `again` if they were given more time because the watch had stood still.
    Asked { until: Millis, again: bool },
    /// They are stuck, and that was said.
    Stuck,
}

impl FenceWatch {
    /// The watch of a life that begins.
    pub const fn new(on_stuck: OnStuck) -> Self {
        Self { on_stuck, stage: Stage::Ahead }
    }

    /// Takes one look at time `now` and returns what to do, in order.
    pub fn look(&mut self, now: Millis, sight: FenceSight) -> Vec<FenceAction> {
        if sight.running == 0 {
            let freed = core::mem::replace(&mut self.stage, Stage::Ahead) == Stage::Stuck;
            return if freed { vec![FenceAction::Freed] } else { Vec::new() };
        }
        match self.stage {
            Stage::Stuck => vec![FenceAction::LookAt(now + LOOK_EVERY)],
            // A beat was confirmed meanwhile.
            _ if now < sight.fence_at => {
                self.stage = Stage::Ahead;
                vec![FenceAction::LookAt(sight.fence_at.min(now + LOOK_EVERY))]
            }
            Stage::Ahead => self.ask(now, sight.fence_at),
            Stage::Asked { until, .. } if now < until => vec![FenceAction::LookAt(until)],
            Stage::Asked { until, again } if !again && now >= until + STUCK_GRACE => {
                self.wait_until(now + LATE_GRACE, true)
            }
            Stage::Asked { .. } => self.stuck(now, sight.running),
        }
    }

    /// In time, the grace is counted from the fence. A watch that comes late stood still itself, and the arbiters with it:
    /// their being late says nothing yet.
    fn ask(&mut self, now: Millis, fence_at: Millis) -> Vec<FenceAction> {
        let in_time = fence_at + STUCK_GRACE;
        if now < in_time { self.wait_until(in_time, false) } else { self.wait_until(now + LATE_GRACE, false) }
    }

    fn wait_until(&mut self, until: Millis, again: bool) -> Vec<FenceAction> {
        self.stage = Stage::Asked { until, again };
        vec![FenceAction::AskToEnd, FenceAction::LookAt(until)]
    }

    fn stuck(&mut self, now: Millis, running: usize) -> Vec<FenceAction> {
        self.stage = Stage::Stuck;
        let action = match self.on_stuck {
            OnStuck::Abort => FenceAction::Abort(running),
            OnStuck::Report => FenceAction::Report(running),
        };
        vec![action, FenceAction::LookAt(now + LOOK_EVERY)]
    }
}

/// How long after the fence an arbiter may take to end before it counts as stuck. Shorter than what observers wait beyond
/// the drift of clocks, so that an abort comes before anybody may take over.
pub const STUCK_GRACE: Millis = Millis(200);

/// The same where there is nothing left to be in time for: the process stood still, or the session was found ended.
pub const LATE_GRACE: Millis = Millis(1_000);

/// How far apart two looks are at most: timers may stand still while the machine sleeps.
const LOOK_EVERY: Millis = Millis(1_000);

const _: () = assert!(STUCK_GRACE.0 < times::GRACE.0);

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: Millis = Millis(10_000);

    fn sight(running: usize) -> FenceSight {
        FenceSight { fence_at: FENCE, running }
    }

    fn asked() -> (FenceWatch, Millis) {
        let mut watch = FenceWatch::new(OnStuck::Abort);
        let until = FENCE + STUCK_GRACE;
        assert_eq!(watch.look(FENCE, sight(2)), [FenceAction::AskToEnd, FenceAction::LookAt(until)]);
        (watch, until)
    }

    #[test]
    fn the_fence_is_looked_at_when_it_comes_and_once_a_second_before() {
        let mut watch = FenceWatch::new(OnStuck::Abort);
        assert_eq!(watch.look(Millis(7_000), sight(1)), [FenceAction::LookAt(Millis(8_000))]);
        assert_eq!(watch.look(Millis(9_500), sight(1)), [FenceAction::LookAt(FENCE)]);
        let beaten = FenceSight { fence_at: Millis(12_000), running: 1 };
        assert_eq!(watch.look(FENCE, beaten), [FenceAction::LookAt(Millis(11_000))]);
    }

    #[test]
    fn what_has_ended_by_the_grace_is_not_stuck() {
        let (mut watch, until) = asked();
        assert_eq!(watch.look(until, sight(0)), []);
    }

    #[test]
    fn an_arbiter_that_has_not_ended_by_the_grace_aborts_the_process() {
        let (mut watch, until) = asked();
        assert_eq!(watch.look(until - Millis(1), sight(1)), [FenceAction::LookAt(until)]);
        let actions = watch.look(until, sight(1));
        assert_eq!(actions[0], FenceAction::Abort(1));
        assert!(!watch.look(until + Millis(1), sight(1)).contains(&FenceAction::Abort(1)), "said once");
    }

    #[test]
    fn a_report_is_made_once_and_taken_back_when_the_handler_returns() {
        let mut watch = FenceWatch::new(OnStuck::Report);
        watch.look(FENCE, sight(1));
        assert_eq!(watch.look(FENCE + STUCK_GRACE, sight(1))[0], FenceAction::Report(1));
        let again = watch.look(FENCE + Millis(5_000), sight(1));
        assert_eq!(again, [FenceAction::LookAt(FENCE + Millis(6_000))]);
        assert_eq!(watch.look(FENCE + Millis(6_000), sight(0)), [FenceAction::Freed]);
    }

    #[test]
    fn after_a_standstill_the_arbiters_get_a_grace_of_their_own() {
        let mut watch = FenceWatch::new(OnStuck::Abort);
        let late = FENCE + Millis(60_000);
        let until = late + LATE_GRACE;
        assert_eq!(watch.look(late, sight(1)), [FenceAction::AskToEnd, FenceAction::LookAt(until)]);
        assert_eq!(watch.look(until, sight(1))[0], FenceAction::Abort(1));
    }

    #[test]
    fn a_standstill_within_the_grace_gives_more_time_once() {
        let (mut watch, until) = asked();
        let thawed = until + Millis(30_000);
        let more = thawed + LATE_GRACE;
        assert_eq!(watch.look(thawed, sight(1)), [FenceAction::AskToEnd, FenceAction::LookAt(more)]);
        assert_eq!(watch.look(more + Millis(30_000), sight(1))[0], FenceAction::Abort(1));
    }

    #[test]
    fn a_session_that_was_found_ended_leaves_no_margin_and_still_a_grace() {
        let mut watch = FenceWatch::new(OnStuck::Abort);
        let ended = FenceSight { fence_at: Millis::ZERO, running: 1 };
        assert_eq!(watch.look(FENCE, ended)[0], FenceAction::AskToEnd);
        assert_eq!(watch.look(FENCE + LATE_GRACE, ended)[0], FenceAction::Abort(1));
    }

    #[test]
    fn a_beat_that_is_confirmed_in_the_grace_calls_the_watch_off() {
        let (mut watch, until) = asked();
        let beaten = FenceSight { fence_at: FENCE + Millis(2_000), running: 2 };
        assert_eq!(watch.look(until, beaten), [FenceAction::LookAt(until + Millis(1_000))]);
        assert_eq!(watch.look(beaten.fence_at, beaten)[0], FenceAction::AskToEnd);
    }
}
