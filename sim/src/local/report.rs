//! Which errors a sweep has met.

use archipelago_protocol::call::{CallError, Queue};

use crate::sometimes;

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
