//! The kinds that a node knows, and how the keys of those are divided that have ranges.

use actix_web::web;
use archipelago_runtime::KindView;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::{Answer, Id, show};

#[derive(Serialize)]
struct Kinds {
    kinds: Vec<Kind>,
    silent: Vec<String>,
}

#[derive(Serialize)]
struct Kind {
    name: String,
    hosted: bool,
    singleton: bool,
    persistent: bool,
    divided: &'static str,
    shards: Option<u16>,
    idle_after_ms: Option<u64>,
    reach: &'static str,
    messages: Vec<&'static str>,
    active: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfKind {
    kind: String,
}

#[derive(Serialize)]
struct Ranges {
    kind: String,
    version: Option<String>,
    ranges: Vec<Range>,
}

#[derive(Serialize)]
struct Range {
    partition: String,
    range: String,
    node: Id,
    address: String,
}

pub(crate) async fn kinds(admin: web::Data<Admin>) -> Answer {
    let gathered = admin.node.kinds().await;
    show(Kinds { kinds: gathered.items.into_iter().map(kind_of).collect(), silent: gathered.silent })
}

fn kind_of(view: KindView) -> Kind {
    let shards = view.layout.shards();
    let divided = match (shards, view.layout.is_by_range()) {
        (Some(_), _) => "shards",
        (None, true) => "ranges",
        (None, false) => "actors",
    };
    Kind {
        name: view.name,
        hosted: view.hosted,
        singleton: view.singleton,
        persistent: view.persistent,
        divided,
        shards: shards.map(|shards| shards.get()),
        idle_after_ms: view.idle_after.map(|idle| idle.0),
        reach: view.reach,
        messages: view.messages,
        active: view.active,
    }
}

/// How the keys of a kind are divided, as far as this node knows.
pub(crate) async fn ranges(admin: web::Data<Admin>, query: web::Query<OfKind>) -> Answer {
    let kind = query.into_inner().kind;
    let known = admin.node.kinds().await.items.into_iter().find(|known| known.name == kind);
    if !known.is_some_and(|known| known.layout.is_by_range()) {
        let message = format!("the node knows no kind {kind:?} that is divided into ranges");
        return Err(Refusal::new(actix_web::http::StatusCode::NOT_FOUND, "no_ranges", message));
    }
    let table = admin.node.ranges(&kind);
    let entries = table.iter().flat_map(|known| known.table.entries());
    let ranges = entries.map(|entry| Range {
        partition: entry.partition.to_string(),
        range: entry.range.to_string(),
        node: Id(entry.owner.node),
        address: entry.owner.address.to_string(),
    });
    let ranges = ranges.collect();
    show(Ranges { kind, version: table.map(|known| known.version.0.to_string()), ranges })
}
