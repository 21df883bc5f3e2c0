//! What changes something. The gate has seen the token; every act is noted in the log and as an event, whatever came of it.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use archipelago_protocol::contract::TableVersion;
use archipelago_protocol::handoff::{HandOffOutcome, KindBalance};
use archipelago_runtime::{RangeError, Rebalance};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::{Answer, Id, generation, node_id};

/// Which shard is to go where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveShard {
    kind: String,
    shard: u32,
    to: String,
}

/// What is to be balanced.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RebalanceShards {
    /// All kinds if none is named.
    kind: Option<String>,
}

/// Where a range is to be divided.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitRange {
    kind: String,
    at: String,
}

/// Which range is to be merged with the next.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeRange {
    kind: String,
    key: String,
}

/// Which range is to go where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveRange {
    kind: String,
    key: String,
    to: String,
}

#[derive(Serialize)]
struct Done<T> {
    outcome: T,
}

#[derive(Serialize)]
struct Moved {
    moved: bool,
    generation: Option<String>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Rebalancing {
    coordinator: Id,
    kinds: Vec<Balance>,
}

#[derive(Serialize)]
struct Balance {
    kind: String,
    under_way: u32,
    remaining: u32,
}

impl From<KindBalance> for Balance {
    fn from(balance: KindBalance) -> Self {
        let KindBalance { kind, under_way, remaining } = balance;
        Self { kind: kind.to_string(), under_way, remaining }
    }
}

#[derive(Serialize)]
struct Changed {
    version: String,
}

/// Stops the node in good order: its shards go to others, its work is finished, its session is given back.
pub(crate) async fn leave(admin: web::Data<Admin>) -> Answer {
    let begun = admin.node.begin_stop().map(|()| "the node begins to stop").map_err(Refusal::from);
    let subject = admin.node.id().to_string();
    noted(&admin, "leave", &subject, begun.map(|outcome| (StatusCode::ACCEPTED, outcome, outcome.to_owned())))
}

/// Has the owner of a shard hand it over.
pub(crate) async fn move_shard(admin: web::Data<Admin>, wanted: web::Json<MoveShard>) -> Answer {
    let MoveShard { kind, shard, to } = wanted.into_inner();
    let subject = format!("shard {shard} of {kind:?} to {to:?}");
    let moved = async {
        let to = member(&admin, &to)?;
        admin.node.move_shard(&kind, shard, to).await.map_err(Refusal::from)
    };
    let outcome = moved.await.map(|outcome| {
        let moved = match outcome {
            HandOffOutcome::Moved(at) => {
                Moved { moved: true, generation: Some(generation(at)), reason: None }
            }
            other => {
                Moved { moved: false, generation: None, reason: Some(format!("{other:?}").to_lowercase()) }
            }
        };
        (StatusCode::OK, moved, format!("{outcome:?}"))
    });
    noted(&admin, "move shard", &subject, outcome)
}

/// Has shards balanced now, by whichever node looks after them.
pub(crate) async fn rebalance(admin: web::Data<Admin>, wanted: web::Json<RebalanceShards>) -> Answer {
    let kind = wanted.into_inner().kind;
    let subject = kind.as_deref().map_or("all kinds".to_owned(), |kind| format!("{kind:?}"));
    let begun = admin.node.rebalance_shards(kind.as_deref()).await.map_err(Refusal::from);
    let outcome = begun.map(|Rebalance { coordinator, kinds, .. }| {
        let kinds: Vec<_> = kinds.into_iter().map(Balance::from).collect();
        let moves: u64 = kinds.iter().map(|kind| u64::from(kind.under_way) + u64::from(kind.remaining)).sum();
        let words = format!("node {coordinator} begins, {moves} shards to move");
        (StatusCode::OK, Rebalancing { coordinator: Id(coordinator), kinds }, words)
    });
    noted(&admin, "rebalance", &subject, outcome)
}

/// Asks an actor that is active on this node to go once its running messages have ended.
pub(crate) async fn deactivate(admin: web::Data<Admin>, path: web::Path<(String, String)>) -> Answer {
    let (kind, key) = path.into_inner();
    let subject = format!("{kind:?} / {key:?}");
    let asked = async {
        let found = admin.node.whereabouts(&kind, &key).await?;
        if found.here.is_none() {
            return Err(not_here(&admin, found.owner.map(|(node, _)| Id(node))));
        }
        admin.node.actor_ref(&kind, &key).deactivate().map_err(Refusal::from)
    };
    let outcome = "the actor goes once its running messages have ended";
    let asked = asked.await.map(|()| (StatusCode::ACCEPTED, outcome, outcome.to_owned()));
    noted(&admin, "deactivate", &subject, asked)
}

fn not_here(admin: &Admin, owner: Option<Id>) -> Refusal {
    let elsewhere = owner.filter(|Id(owner)| *owner != admin.node.id());
    match elsewhere {
        Some(Id(owner)) => {
            let message = format!("the actor is not active here; ask node {owner}, which owns it");
            Refusal::new(StatusCode::CONFLICT, "elsewhere", message)
        }
        None => Refusal::new(StatusCode::NOT_FOUND, "not_active", "the actor is not active"),
    }
}

/// Takes the datacenter of this node out of service: nothing new is placed in it from outside.
pub(crate) async fn drain_datacenter(admin: web::Data<Admin>) -> Answer {
    let drained = admin.node.drain_datacenter().await.map_err(Refusal::from);
    let outcome = "the datacenter drains";
    let subject = admin.node.datacenters().own.as_ref().map(ToString::to_string).unwrap_or_default();
    noted(
        &admin,
        "drain datacenter",
        &subject,
        drained.map(|()| (StatusCode::OK, outcome, outcome.to_owned())),
    )
}

/// Divides a range.
pub(crate) async fn split_range(admin: web::Data<Admin>, wanted: web::Json<SplitRange>) -> Answer {
    let SplitRange { kind, at } = wanted.into_inner();
    let split = admin.node.split_range(&kind, &at).await;
    changed(&admin, "split range", &format!("{kind:?} at {at:?}"), split)
}

/// Merges a range with the next one.
pub(crate) async fn merge_range(admin: web::Data<Admin>, wanted: web::Json<MergeRange>) -> Answer {
    let MergeRange { kind, key } = wanted.into_inner();
    let merged = admin.node.merge_range(&kind, &key).await;
    changed(&admin, "merge range", &format!("{kind:?} of {key:?}"), merged)
}

/// Gives a range to another node.
pub(crate) async fn move_range(admin: web::Data<Admin>, wanted: web::Json<MoveRange>) -> Answer {
    let MoveRange { kind, key, to } = wanted.into_inner();
    let subject = format!("{kind:?} of {key:?} to {to:?}");
    match member(&admin, &to) {
        Ok(to) => changed(&admin, "move range", &subject, admin.node.move_range(&kind, &key, to).await),
        Err(refusal) => noted::<()>(&admin, "move range", &subject, Err(refusal)),
    }
}

fn changed(admin: &Admin, act: &str, subject: &str, outcome: Result<TableVersion, RangeError>) -> Answer {
    let changed = outcome.map_err(Refusal::from).map(|version| {
        let version = version.0.to_string();
        (StatusCode::OK, Changed { version: version.clone() }, format!("table {version}"))
    });
    noted(admin, act, subject, changed)
}

/// The member that is meant: a shard is not offered to somebody who is not there.
fn member(admin: &Admin, to: &str) -> Result<archipelago_protocol::identity::NodeId, Refusal> {
    let to = node_id(to)?;
    let known = admin.node.members().iter().any(|member| member.info.id == to);
    if known {
        Ok(to)
    } else {
        Err(Refusal::new(StatusCode::NOT_FOUND, "unknown_node", format!("no member {to}")))
    }
}

/// Notes an act, and answers it.
pub(crate) fn noted<T: Serialize>(
    admin: &Admin,
    act: &str,
    subject: &str,
    outcome: Result<(StatusCode, T, String), Refusal>,
) -> Answer {
    match outcome {
        Ok((status, outcome, words)) => {
            admin.node.note_operated(act, subject, &words);
            Ok(HttpResponse::build(status).json(Done { outcome }))
        }
        Err(refusal) => {
            admin.node.note_operated(act, subject, &format!("refused ({}): {refusal}", refusal.code()));
            Err(refusal)
        }
    }
}
