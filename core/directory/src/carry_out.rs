//! Carries out what the session machines ask of the directory, and turns the answers into their events.
//!
//! The shell that owns clock and timers stays free of decisions: it hands each action here, with a time limit
//! (`times::attempt_timeout`; what runs out is `Unknown`), and feeds the event back.

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
            let answer = directory.open_session(*session, *nonce).await;
            Some(HolderEvent::OpenAnswered(outcome(answer)))
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
