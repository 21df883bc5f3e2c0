//! What an answer says about its message, as ground truth takes it.

use archipelago_protocol::call::{CallError, Queue};

use super::truth::{Reported, Truth};
use crate::sometimes;

/// Notes the end of an ask that was made on its actor's arbiter, or from `outside` of it.
pub(crate) fn report(truth: &Truth, ticket: u64, answer: &Result<u64, CallError>, outside: bool) {
    let told = match answer {
        Ok(reply) => Reported::Answered(*reply),
        // A caller outside may have given up by itself; then it cannot know, and says the worse.
        Err(CallError::Timeout { started: true }) if outside => Reported::Unknown,
        Err(error) => {
            note(error);
            if error.is_not_started() { Reported::NotStarted } else { Reported::Started }
        }
    };
    truth.reported(ticket, told);
}

/// Notes which errors a sweep has met.
pub(crate) fn note(error: &CallError) {
    match error {
        CallError::Timeout { started: true } => sometimes!("timeout after the handler started"),
        CallError::Timeout { started: false } => sometimes!("timeout before the handler started"),
        CallError::CallCycle => sometimes!("call cycle refused"),
        CallError::Overloaded { queue: Queue::Inbox, .. } => sometimes!("inbox full"),
        CallError::Overloaded { queue: Queue::PendingCalls, .. } => sometimes!("call table full"),
        CallError::Overloaded { queue: Queue::Ingress, .. } => sometimes!("ingress full"),
        _ => {}
    }
}
