//! Shards and their owners, and those that are on their way.

use std::collections::BTreeMap;

use actix_web::web;
use archipelago_runtime::OwnerView;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::{Answer, Id, generation, show};

/// Which shards to show.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    kind: String,
    /// The first shard to show.
    #[serde(default)]
    from: u32,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Page {
    kind: String,
    /// How many shards there are, and how many of them have an owner.
    shards: u16,
    owned: usize,
    owners: Vec<Count>,
    items: Vec<Shard>,
    next: Option<u32>,
}

#[derive(Serialize)]
struct Count {
    node: Id,
    shards: usize,
}

#[derive(Serialize)]
struct Shard {
    shard: u32,
    node: Id,
    generation: String,
    known: bool,
}

#[derive(Serialize)]
struct Moves {
    moves: Vec<Move>,
    silent: Vec<String>,
}

#[derive(Serialize)]
struct Move {
    kind: String,
    shard: u64,
    to: Id,
    step: &'static str,
}

pub(crate) async fn list(admin: web::Data<Admin>, search: web::Query<Search>) -> Answer {
    let Search { kind, from, limit } = search.into_inner();
    let limit = limit.unwrap_or(USUAL);
    if limit == 0 || limit > MOST {
        return Err(Refusal::invalid(format!("limit is from 1 to {MOST}")));
    }
    let known = admin.node.kinds().await.items.into_iter().find(|known| known.name == kind);
    let Some(shards) = known.and_then(|known| known.layout.shards()) else {
        let message = format!("the node knows no kind {kind:?} that is divided into shards");
        return Err(Refusal::new(actix_web::http::StatusCode::NOT_FOUND, "no_shards", message));
    };
    let all = admin.node.shard_owners(&kind).await?;
    let mut items: Vec<Shard> =
        all.iter().filter(|owner| owner.shard >= from).take(limit + 1).map(shard_of).collect();
    let next = (items.len() > limit).then(|| items.pop().map(|last| last.shard)).flatten();
    show(Page { kind, shards: shards.get(), owned: all.len(), owners: count(&all), items, next })
}

fn count(all: &[OwnerView]) -> Vec<Count> {
    let mut counts: BTreeMap<Id, usize> = BTreeMap::new();
    all.iter().for_each(|owner| *counts.entry(Id(owner.node)).or_default() += 1);
    counts.into_iter().map(|(node, shards)| Count { node, shards }).collect()
}

fn shard_of(owner: &OwnerView) -> Shard {
    Shard {
        shard: owner.shard,
        node: Id(owner.node),
        generation: generation(owner.generation),
        known: owner.known,
    }
}

pub(crate) async fn moves(admin: web::Data<Admin>) -> Answer {
    let gathered = admin.node.moves_under_way().await;
    let view = |one: archipelago_runtime::MoveView| Move {
        kind: one.kind,
        shard: one.shard,
        to: Id(one.to),
        step: one.step,
    };
    show(Moves { moves: gathered.items.into_iter().map(view).collect(), silent: gathered.silent })
}

/// How many shards are shown if nothing is said, and at most.
const USUAL: usize = 256;
const MOST: usize = 1_000;
