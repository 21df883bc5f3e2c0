//! A call that somebody waits for: it must end by its deadline.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::call::CallError;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::COARSE_LAG;
use futures_util::future::{Either, LocalBoxFuture, select};

use super::ledger::Ledger;
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::world::World;

/// An ask under way.
pub(crate) struct Pending<R> {
    pub(crate) ticket: u64,
    pub(crate) call: LocalBoxFuture<'static, Result<R, CallError>>,
    pub(crate) timeout: Millis,
    /// When to drop it instead.
    pub(crate) cancel: Option<Duration>,
    /// When it was sent, on the clock of its node.
    pub(crate) sent: Millis,
    /// How long after its deadline it may end.
    pub(crate) grain: Millis,
    pub(crate) env: Arc<SimEnvironment>,
}

/// What became of a call.
pub(crate) enum Ended<R> {
    Answered(Result<R, CallError>),
    /// It was dropped after so long.
    Dropped(Duration),
    /// It never ended, and that has been said.
    Hangs,
}

impl<R: Debug> Pending<R> {
    /// Waits for the end, or drops the call when it is time.
    pub(crate) async fn wait<M: Copy + Debug>(mut self, ledger: &Ledger<M>, world: &World) -> Ended<R> {
        let patience = self.cancel.unwrap_or(self.timeout.to_duration() + HANG);
        loop {
            match select(&mut self.call, Box::pin(TrueClock::sleep(patience))).await {
                Either::Left((answer, _)) => {
                    world.record("ended", self.ticket, outcome_code(&answer));
                    let times = (self.sent, self.timeout, self.grain);
                    check_end(ledger, self.ticket, &self.env, times, &answer);
                    return Ended::Answered(answer);
                }
                Either::Right(_) if self.cancel.is_some() => {
                    world.record("cancelled", self.ticket, 0);
                    return Ended::Dropped(patience);
                }
                // A paused node ends no calls; it will when it goes on.
                Either::Right(_) if self.env.switch().is_paused() => {}
                Either::Right(_) => {
                    ledger.check(Invariant::EveryCallEndsByItsDeadline, false, || {
                        format!("{} has not ended after {patience:?}", ledger.describe(self.ticket))
                    });
                    return Ended::Hangs;
                }
            }
        }
    }
}

/// An ask that was sent at a time, with so long to end and such a grain, has ended just now.
pub(crate) fn check_end<M: Copy + Debug, R: Debug>(
    ledger: &Ledger<M>,
    ticket: u64,
    env: &SimEnvironment,
    (sent, timeout, grain): (Millis, Millis, Millis),
    answer: &Result<R, CallError>,
) {
    let now = env.clock().now();
    let due = (sent + timeout).max(env.resumed_at()) + grain;
    let in_time = now <= due || env.switch().is_paused();
    ledger.check(Invariant::EveryCallEndsByItsDeadline, in_time, || {
        format!("{} ended at {now}, due at {due}, as {answer:?}", ledger.describe(ticket))
    });
}

/// How long after its deadline a call with this timeout may end, if it is looked at every `sweep`: the grain of the clock it
/// is counted on comes on top.
pub(crate) fn allowance(timeout: Millis, sweep: Millis) -> Millis {
    let coarse = if timeout < EXACT_BELOW { Millis::ZERO } else { COARSE_LAG };
    sweep + coarse
}

fn outcome_code<R>(answer: &Result<R, CallError>) -> u64 {
    match answer {
        Ok(_) => 0,
        Err(error) if error.is_not_started() => 1,
        Err(_) => 2,
    }
}

/// Longer deadlines are counted on the coarse clock.
const EXACT_BELOW: Millis = Millis(1_000);
/// When a call hangs for good.
const HANG: Duration = Duration::from_secs(5);
