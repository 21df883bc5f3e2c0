//! Carries out what the session machines ask of the directory, and turns the answers into their events.
//!
//! The shell that owns clock and timers stays free of decisions: it hands each action here, with a time limit
//! (`times::attempt_timeout`; what runs out is `Unknown`), and feeds the event back.

use std::error::Error;

use archipelago_protocol::contract::{Directory, DirectoryError};
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::session::{
    HolderAction, HolderEvent, Lease, LeaseAnswer, LeaseOutcome, LeaseSeen, ObserverAction, ObserverEvent,
    Session,
};

/// Does what the holder's machine asks of the directory; `None` if the action is none of the directory's.
pub async fn carry_out_holder(
    directory: &dyn Directory,
    info: &NodeInfo,
    action: &HolderAction,
) -> Option<HolderEvent> {
    match action {
        HolderAction::SendOpen { session, nonce } => {
            Some(carry_out_open(directory, *session, *nonce).await.0)
        }
        HolderAction::SendBeat(beat) => {
            let outcome = outcome(directory.beat(*beat).await);
            Some(HolderEvent::BeatAnswered { seq: beat.seq, outcome })
        }
        HolderAction::ReadBack(id) => {
            Some(directory.lease(*id).await.map_or(HolderEvent::ReadFailed, HolderEvent::Seen))
        }
        HolderAction::Announce => directory.announce(info).await.ok().map(|()| HolderEvent::Announced),
        HolderAction::SendClose(session) => {
            if let Err(error) = directory.close_session(*session).await {
                tracing::info!(session = %session.id, %error, "close unanswered, observers will end the session");
            }
            None
        }
        HolderAction::Gate(_) | HolderAction::Lost { .. } | HolderAction::WakeAt(_) => None,
    }
}

/// Opens a session: what the holder's machine is told, and what people are told if that was not an answer.
pub async fn carry_out_open(
    directory: &dyn Directory,
    session: Session,
    nonce: u64,
) -> (HolderEvent, Option<String>) {
    let answer = directory.open_session(session, nonce).await;
    let trouble = answer.as_ref().err().map(in_full);
    (HolderEvent::OpenAnswered(outcome(answer)), trouble)
}

/// An error with all that it came from.
fn in_full(error: &DirectoryError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Does what the observer's machine at node `me` asks of the directory; `None` if it is none of the directory's.
pub async fn carry_out_observer(
    directory: &dyn Directory,
    me: NodeId,
    action: &ObserverAction,
) -> Option<ObserverEvent> {
    match action {
        ObserverAction::ReadOrPin(session) => Some(read_or_pin(directory, *session).await),
        ObserverAction::End { id, version, why } => {
            let outcome = outcome(directory.end_session(*id, *version, me, *why).await);
            Some(ObserverEvent::EndAnswered { id: *id, version: *version, outcome })
        }
        ObserverAction::WatchAll(_) | ObserverAction::Ended(_) | ObserverAction::WakeAt(_) => None,
    }
}

async fn read_or_pin(directory: &dyn Directory, session: Session) -> ObserverEvent {
    if let Ok(Some(seen)) = directory.lease(session.id).await {
        return ObserverEvent::Seen(seen);
    }
    match directory.pin_session(session).await {
        Ok(LeaseAnswer::Found(Some(seen))) => ObserverEvent::Seen(seen),
        Ok(LeaseAnswer::Applied(version)) => {
            let lease = Lease::Missing { ttl: session.ttl };
            ObserverEvent::Seen(LeaseSeen { id: session.id, version, lease })
        }
        Ok(LeaseAnswer::Found(None)) | Err(_) => ObserverEvent::Unread(session.id),
    }
}

/// Only what is certainly not applied may be called so.
fn outcome(answer: Result<LeaseAnswer, DirectoryError>) -> LeaseOutcome {
    match answer {
        Ok(answer) => answer.into(),
        Err(DirectoryError::Unavailable { .. }) => LeaseOutcome::Unavailable,
        Err(_) => LeaseOutcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes() {
        let error = DirectoryError::Unavailable { backend: "embedded", source: "nobody answers".into() };
        assert_eq!(in_full(&error), "embedded is unavailable: nobody answers");
    }
}
