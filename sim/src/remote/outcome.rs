//! What an answer from another node says about its message, as ground truth takes it.

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::COARSE_LAG;

use super::truth::Truth;
use crate::sometimes;
use crate::workload::Reported;

/// Notes the end of an ask.
pub(crate) fn report(truth: &Truth, ticket: u64, answer: &Result<u64, CallError>) {
    let told = match answer {
        Ok(reply) => Reported::Answered(*reply),
        Err(error) => {
            note(error);
            // Whether the handler runs is its own node's to know.
            if error.is_not_started() { Reported::NotStarted } else { Reported::Unknown }
        }
    };
    truth.reported(ticket, told);
}

fn note(error: &CallError) {
    match error {
        CallError::ConnectionLost { .. } => sometimes!("connection lost with calls in flight"),
        CallError::Overloaded { queue: Queue::Lane, .. } => sometimes!("lane full"),
        _ => {}
    }
}

/// How long after its deadline a call with this timeout may end: one sweep, and the grain of the clock it is counted on.
pub(crate) fn allowance(timeout: Millis) -> Millis {
    let coarse = if timeout < EXACT_BELOW { Millis::ZERO } else { COARSE_LAG };
    GRAIN + coarse
}

/// One sweep of the lanes, and one of the arbiter.
const GRAIN: Millis = Millis(25);
/// Longer deadlines are counted on the coarse clock.
const EXACT_BELOW: Millis = Millis(1_000);
