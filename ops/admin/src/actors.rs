//! The actors that are active on the node, a page at a time, and where a single one is.

use actix_web::web;
use archipelago_runtime::{ActorCursor, ActorQuery, ActorView};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::{Answer, Id, generation, show};

/// What to list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    kind: Option<String>,
    #[serde(default)]
    prefix: String,
    cursor: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Page {
    actors: Vec<Actor>,
    next: Option<String>,
    looked_at: usize,
}

#[derive(Serialize)]
struct Actor {
    kind: String,
    key: String,
    shard: Option<u32>,
    generation: String,
    state: String,
    leaving: Option<String>,
    running: u32,
    waiting: usize,
    idle_ms: u64,
}

#[derive(Serialize)]
struct Whereabouts {
    actor: String,
    owner: Option<Owner>,
    here: Option<Actor>,
}

#[derive(Serialize)]
struct Owner {
    node: Id,
    generation: String,
    own: bool,
}

pub(crate) async fn list(admin: web::Data<Admin>, search: web::Query<Search>) -> Answer {
    let Search { kind, prefix, cursor, limit } = search.into_inner();
    let from: Option<ActorCursor> =
        cursor.map(|text| text.parse()).transpose().map_err(|error: archipelago_runtime::BadCursor| {
            Refusal::new(actix_web::http::StatusCode::BAD_REQUEST, "bad_cursor", error.to_string())
        })?;
    let limit = limit.unwrap_or(ActorQuery::default().limit);
    if limit == 0 || limit > ActorQuery::MOST {
        return Err(Refusal::invalid(format!("limit is from 1 to {}", ActorQuery::MOST)));
    }
    let query = ActorQuery { kind, prefix, from: from.unwrap_or_default(), limit };
    let page = admin.node.active_actors(query).await?;
    show(Page {
        actors: page.actors.into_iter().map(actor_of).collect(),
        next: page.next.map(|next| next.to_string()),
        looked_at: page.looked_at,
    })
}

pub(crate) async fn one(admin: web::Data<Admin>, path: web::Path<(String, String)>) -> Answer {
    let (kind, key) = path.into_inner();
    let found = admin.node.whereabouts(&kind, &key).await?;
    let own = admin.node.id();
    let owner =
        found.owner.map(|(node, at)| Owner { node: Id(node), generation: generation(at), own: node == own });
    show(Whereabouts { actor: found.actor.to_string(), owner, here: found.here.map(actor_of) })
}

fn actor_of(view: ActorView) -> Actor {
    let lower = |text: String| text.to_lowercase();
    Actor {
        kind: view.actor.kind().to_string(),
        key: view.actor.key().as_str().to_owned(),
        shard: view.shard,
        generation: generation(view.generation),
        state: lower(format!("{:?}", view.state)),
        leaving: view.leaving.map(|reason| lower(format!("{reason:?}"))),
        running: view.running,
        waiting: view.waiting,
        idle_ms: view.idle.0,
    }
}
