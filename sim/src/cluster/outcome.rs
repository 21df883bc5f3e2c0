//! What an answer says about its message, as ground truth takes it.

use archipelago_protocol::call::CallError;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::COARSE_LAG;

use super::counter::Tally;
use super::truth::Truth;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::workload::Reported;

/// Notes the end of an ask.
pub(crate) fn report(truth: &Truth, ticket: u64, answer: &Result<Tally, CallError>) {
    let told = match answer {
        Ok(tally) => {
            truth.acknowledged(*tally);
            Reported::Answered(tally.ticket)
        }
        // Whether the handler runs is its own node's to know.
        Err(error) if error.is_not_started() => Reported::NotStarted,
        Err(_) => Reported::Unknown,
    };
    truth.reported(ticket, told);
}

/// An ask that was `sent` with so much time has ended just now.
pub(crate) fn check_end(
    truth: &Truth,
    ticket: u64,
    env: &SimEnvironment,
    (sent, timeout): (Millis, Millis),
    answer: &Result<Tally, CallError>,
) {
    let now = env.clock().now();
    let due = (sent + timeout).max(env.resumed_at()) + allowance(timeout);
    let in_time = now <= due || env.switch().is_paused();
    truth.check(Invariant::EveryCallEndsByItsDeadline, in_time, || {
        format!("{} ended at {now}, due at {due}, as {answer:?}", truth.describe(ticket))
    });
}

/// How long after its deadline a call with this timeout may end: one sweep, and the grain of the clock it is counted on.
fn allowance(timeout: Millis) -> Millis {
    let coarse = if timeout < EXACT_BELOW { Millis::ZERO } else { COARSE_LAG };
    GRAIN + coarse
}

/// One sweep of the lanes, and one of the arbiter.
const GRAIN: Millis = Millis(25);
/// Longer deadlines are counted on the coarse clock.
const EXACT_BELOW: Millis = Millis(1_000);
