//! The events of the node, as they happen: server-sent events.
//!
//! A reader that is slower than the events loses the oldest and is told how many. How many may read at the same time is bounded,
//! and one that has gone is noticed by the next event or the next sign of life.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use actix_web::http::header;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};
use archipelago_protocol::identity::NodeInfo;
use archipelago_protocol::membership::MemberEvent;
use archipelago_runtime::{DeadLetter, Event, Node, Notice, Subscription};
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream;
use serde_json::{Value, json};

use crate::gate::Proven;
use crate::host::sleep;
use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::state::StreamPlace;
use crate::wire::Answer;

struct Reader {
    node: Node,
    subscription: Subscription,
    count: u64,
    /// Given back when the reader has gone.
    _place: StreamPlace,
}

pub(crate) async fn events(admin: web::Data<Admin>, request: HttpRequest) -> Answer {
    let proven = request.extensions().get::<Proven>().is_some_and(|Proven(proven)| *proven);
    let place = admin.state.clone().follow(proven).ok_or_else(Refusal::too_many_streams)?;
    let node = admin.node.clone();
    let reader = Reader { subscription: node.events().subscribe(), node, count: 0, _place: place };
    // The first line tells the reader that it is heard from now on.
    let begin = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b": events follow\n\n"))]);
    let follow = stream::unfold(reader, |mut reader| async move {
        let lines = reader.next().await?;
        Some((Ok(lines), reader))
    });
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "text/event-stream"));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(response.streaming(stream::StreamExt::chain(begin, follow)))
}

impl Reader {
    /// What comes next; nothing when the node has stopped.
    async fn next(&mut self) -> Option<Bytes> {
        let (told, quiet) = (pin!(self.subscription.next()), pin!(sleep(SIGN_OF_LIFE)));
        let notice = match select(select(told, quiet), pin!(self.node.stopped())).await {
            Either::Left((Either::Left((notice, _)), _)) => notice?,
            Either::Left((Either::Right(_), _)) => return Some(Bytes::from_static(b": still here\n\n")),
            Either::Right(_) => return None,
        };
        self.count += 1;
        let data = match &notice {
            Notice::Event(event) => described(event),
            Notice::Missed(count) => json!({ "type": "missed", "count": count }),
        };
        let kind = data["type"].as_str().unwrap_or("event");
        Some(Bytes::from(format!("id: {}\nevent: {kind}\ndata: {data}\n\n", self.count)))
    }
}

/// An event as JSON. JSON has no raw line breaks, so it is one line whatever it holds.
fn described(event: &Event) -> Value {
    match event {
        Event::NodeStarted { node } => json!({ "type": "node_started", "node": node.to_string() }),
        Event::NodeStopping { node } => json!({ "type": "node_stopping", "node": node.to_string() }),
        Event::SessionOpened { node } => json!({ "type": "session_opened", "node": node.to_string() }),
        Event::SessionLost { node, reason } => {
            json!({ "type": "session_lost", "node": node.to_string(), "reason": reason })
        }
        Event::Rejoined { before, now } => {
            json!({ "type": "rejoined", "before": before.to_string(), "now": now.to_string() })
        }
        Event::ArbitersStuck { node, arbiters } => {
            json!({ "type": "arbiters_stuck", "node": node.to_string(), "arbiters": arbiters })
        }
        Event::MemberJoined { member } => of_member("member_joined", member),
        Event::MemberGone { member } => of_member("member_gone", member),
        Event::Membership(change) => of_membership(change),
        Event::SessionEnded { node } => json!({ "type": "session_ended", "node": node.to_string() }),
        Event::Operated { act, subject, outcome } => {
            json!({ "type": "operated", "act": act, "subject": subject, "outcome": outcome })
        }
        other => of_actors_and_shards(other),
    }
}

fn of_actors_and_shards(event: &Event) -> Value {
    match event {
        Event::StateNotSaved { actor, reason } => {
            json!({ "type": "state_not_saved", "actor": actor, "reason": reason })
        }
        Event::StateNotCarried { actor, reason } => {
            json!({ "type": "state_not_carried", "actor": actor, "reason": reason })
        }
        Event::ActorsOverBound { active, bound } => {
            json!({ "type": "actors_over_bound", "active": active, "bound": bound })
        }
        Event::ShardMovesCold { kind, shard } => {
            json!({ "type": "shard_moves_cold", "kind": kind, "shard": shard })
        }
        Event::ShardMoving { kind, shard, generation, to } => json!({
            "type": "shard_moving", "kind": kind, "shard": shard,
            "generation": generation.as_u64().to_string(), "to": to.to_string(),
        }),
        Event::ShardMoved { kind, shard, generation, to } => json!({
            "type": "shard_moved", "kind": kind, "shard": shard,
            "generation": generation.as_u64().to_string(), "to": to.to_string(),
        }),
        Event::ShardStays { kind, shard, outcome } => {
            json!({ "type": "shard_stays", "kind": kind, "shard": shard, "outcome": format!("{outcome:?}") })
        }
        Event::RangesChanged { kind, version, ranges } => {
            json!({ "type": "ranges_changed", "kind": kind, "version": version.0.to_string(), "ranges": ranges })
        }
        Event::RangeServed { kind, partition, range, generation } => json!({
            "type": "range_served", "kind": kind, "partition": partition,
            "range": range.to_string(), "generation": generation.as_u64().to_string(),
        }),
        Event::RangeGivenUp { kind, partition, retired } => {
            json!({ "type": "range_given_up", "kind": kind, "partition": partition, "retired": retired })
        }
        Event::DeadLetter(letter) => of_letter("dead_letter", None, letter),
        Event::RemoteDeadLetter(dead) => {
            of_letter("remote_dead_letter", dead.node.map(|node| node.to_string()), &dead.letter)
        }
        other => of_others(other),
    }
}

fn of_others(event: &Event) -> Value {
    match event {
        Event::PeerConnected { node } => json!({ "type": "peer_connected", "node": node.to_string() }),
        Event::PeerDisconnected { node, reason } => {
            json!({ "type": "peer_disconnected", "node": node.to_string(), "reason": reason })
        }
        Event::PeerRefused { address, reason } => {
            let address = address.as_ref().map(ToString::to_string);
            json!({ "type": "peer_refused", "address": address, "reason": reason })
        }
        Event::PeerGone { node } => json!({ "type": "peer_gone", "node": node.to_string() }),
        Event::DataCenterUp { datacenter } => {
            json!({ "type": "datacenter_up", "datacenter": datacenter.to_string() })
        }
        Event::DataCenterDraining { datacenter } => {
            json!({ "type": "datacenter_draining", "datacenter": datacenter.to_string() })
        }
        Event::DataCenterDown { datacenter } => {
            json!({ "type": "datacenter_down", "datacenter": datacenter.to_string() })
        }
        Event::DataCentersStale => json!({ "type": "datacenters_stale" }),
        Event::DataCentersFresh => json!({ "type": "datacenters_fresh" }),
        Event::ControllerTaken { epoch } => json!({ "type": "controller_taken", "epoch": epoch.to_string() }),
        Event::ControllerLost { by } => json!({ "type": "controller_lost", "by": by.to_string() }),
        other => json!({ "type": "other", "text": format!("{other:?}") }),
    }
}

fn of_member(kind: &str, member: &NodeInfo) -> Value {
    json!({
        "type": kind, "node": member.id.to_string(), "name": member.name,
        "address": member.address.to_string(),
    })
}

fn of_membership(change: &MemberEvent) -> Value {
    let (word, member) = match change {
        MemberEvent::MemberJoined(member) => ("joined", member),
        MemberEvent::MemberUp(member) => ("up", member),
        MemberEvent::MemberLeaving(member) => ("leaving", member),
        MemberEvent::MemberExiting(member) => ("exiting", member),
        MemberEvent::MemberDowned(member) => ("downed", member),
        MemberEvent::MemberRemoved(member) => ("removed", member),
        MemberEvent::Unreachable(member) => ("unreachable", member),
        MemberEvent::ReachableAgain(member) => ("reachable_again", member),
        MemberEvent::LeaderChanged(leader) => {
            let leader = leader.map(|leader| leader.to_string());
            return json!({ "type": "leader_changed", "leader": leader });
        }
        MemberEvent::Converged => return json!({ "type": "converged" }),
        MemberEvent::Refused(node) => return json!({ "type": "member_refused", "node": node.to_string() }),
        other => return json!({ "type": "other", "text": format!("{other:?}") }),
    };
    json!({ "type": "membership", "change": word, "node": member.id().to_string() })
}

fn of_letter(kind: &str, node: Option<String>, letter: &DeadLetter) -> Value {
    json!({
        "type": kind, "node": node, "target": letter.target, "message": letter.message,
        "reason": letter.reason.to_string(),
    })
}

/// How often a reader that nothing is told hears that it is not forgotten.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
