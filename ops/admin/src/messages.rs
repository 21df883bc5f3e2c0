//! The messages that keep the node busy, and those that take long.

use std::cmp::Reverse;

use actix_web::web;
use archipelago_runtime::{MESSAGE_BOUNDS, MessageView};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::{Answer, show};

/// Which messages come first, and how many are shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    #[serde(default)]
    by: By,
    #[serde(default = "usual")]
    limit: usize,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    /// Those that were started most often.
    #[default]
    Busiest,
    /// Those that take longest on average.
    Slowest,
    /// By kind and name.
    Name,
}

#[derive(Serialize)]
struct Messages {
    uptime_seconds: f64,
    bounds_seconds: Vec<f64>,
    messages: Vec<Message>,
    silent: Vec<String>,
}

#[derive(Serialize)]
struct Message {
    kind: String,
    message: &'static str,
    started: u64,
    sampled: u64,
    mean_seconds: f64,
    slowest_seconds: f64,
    buckets: Vec<u64>,
}

pub(crate) async fn messages(admin: web::Data<Admin>, order: web::Query<Order>) -> Answer {
    let Order { by, limit } = order.into_inner();
    if limit == 0 || limit > MOST {
        return Err(Refusal::invalid(format!("limit is from 1 to {MOST}")));
    }
    let gathered = admin.node.messages().await;
    let mut views = gathered.items;
    sort(&mut views, by);
    views.truncate(limit);
    show(Messages {
        uptime_seconds: admin.node.uptime().to_duration().as_secs_f64(),
        bounds_seconds: MESSAGE_BOUNDS.iter().map(|bound| bound.as_secs_f64()).collect(),
        messages: views.into_iter().map(message_of).collect(),
        silent: gathered.silent,
    })
}

/// What is equal otherwise is sorted by name, so that two looks at an idle node show the same.
fn sort(views: &mut [MessageView], by: By) {
    let name = |view: &MessageView| (view.kind.clone(), view.message);
    match by {
        By::Busiest => views.sort_by_cached_key(|view| (Reverse(view.started), name(view))),
        By::Slowest => views.sort_by_cached_key(|view| (Reverse((view.mean, view.slowest)), name(view))),
        By::Name => views.sort_by_cached_key(name),
    }
}

fn message_of(view: MessageView) -> Message {
    Message {
        kind: view.kind,
        message: view.message,
        started: view.started,
        sampled: view.sampled,
        mean_seconds: view.mean.as_secs_f64(),
        slowest_seconds: view.slowest.as_secs_f64(),
        buckets: view.buckets,
    }
}

const fn usual() -> usize {
    100
}

/// How many messages one answer shows at most.
const MOST: usize = 1_000;
