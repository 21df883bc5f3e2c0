//! Acts that take their time: shards on their way, followed until they are there.
//!
//! Each has a deadline of its own. When it passes the act goes on without anybody who looks, and the command says no.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::cells::{self, items};
use crate::names::Names;
use crate::progress::Progress;
use crate::screen::Screen;
use crate::trouble::{Ended, Trouble, Verdict};
use crate::{host, show};

/// Tells the node to leave and follows its shards until it answers no more.
pub(crate) fn drain(api: &Api, screen: &mut Screen, within: Duration) -> Ended {
    let id = cells::text(&api.get("/v1/node", &[])?["id"]);
    let total = owned_by(api, &id)?;
    api.post("/v1/node/leave", &Value::Null)?;
    let (until, mut progress, mut left) = (host::now() + within, Progress::new(), total);
    progress.show(0, total, "shards handed over");
    loop {
        match owned_by(api, &id) {
            Ok(owned) => left = owned.min(left),
            // It has gone, and its API with it; or it lives again, as another.
            Err(Trouble::Unreachable(_)) => break,
            // An API inside an application of the user's outlives its node.
            Err(_) if has_ended(api) => break,
            Err(_) => {}
        }
        progress.show(
            total - left,
            total,
            if left == 0 { "shards handed over, the node stops" } else { "shards handed over" },
        );
        if host::now() > until {
            let message = format!(
                "node {id} still runs after {}s, with {left} shards; it goes on leaving",
                within.as_secs()
            );
            return Err(Trouble::Failed(message));
        }
        host::pause(LOOK_EVERY);
    }
    progress.show(total, total, "the node has gone");
    progress.end();
    if screen.is_for_programs() {
        screen.json(&json!({ "node": id, "gone": true, "shards": total }))?;
    } else {
        screen.line(&format!("node {id} has left; it owned {total} shards"))?;
    }
    Ok(Verdict::Yes)
}

fn has_ended(api: &Api) -> bool {
    let standing = api.get("/v1/session", &[]).map(|session| session["standing"].clone());
    standing.is_ok_and(|standing| standing == "closed" || standing == "lost")
}

/// How many shards the directory says that a node owns.
fn owned_by(api: &Api, id: &str) -> Result<u64, Trouble> {
    let kinds = api.get("/v1/kinds", &[])?;
    let sharded = items(&kinds["kinds"]).iter().filter(|kind| kind["divided"] == "shards");
    let mut owned = 0;
    for kind in sharded.filter_map(|kind| kind["name"].as_str()) {
        let page = api.get("/v1/shards", &[("kind", kind), ("limit", "1")])?;
        let own = items(&page["owners"]).iter().find(|owner| owner["node"] == id);
        owned += own.and_then(|owner| owner["shards"].as_u64()).unwrap_or(0);
    }
    Ok(owned)
}

/// What is to be balanced, and for how long it is followed.
pub(crate) struct Rebalance<'a> {
    pub(crate) kind: Option<&'a str>,
    pub(crate) once: bool,
    pub(crate) within: Duration,
}

/// Has shards balanced, round after round until nothing is left to move.
pub(crate) fn rebalance(api: &Api, screen: &mut Screen, wanted: &Rebalance<'_>) -> Ended {
    let body = wanted.kind.map_or_else(|| json!({}), |kind| json!({ "kind": kind }));
    let until = host::now() + wanted.within;
    let mut answer = api.post("/v1/shards/rebalance", &body)?;
    if !wanted.once {
        answer = follow(api, &body, answer, until)?;
    }
    screen.show(&answer, |answer| balance(&answer["outcome"]))?;
    let done = wanted.once || to_do(&answer) == 0;
    Ok(if done { Verdict::Yes } else { Verdict::No })
}

fn follow(api: &Api, body: &Value, mut answer: Value, until: Instant) -> Result<Value, Trouble> {
    let (mut progress, total) = (Progress::new(), to_do(&answer));
    let mut most = total;
    loop {
        let left = to_do(&answer);
        most = most.max(left);
        progress.show(most - left, most, "shards moved");
        if left == 0 || host::now() > until {
            return Ok(answer);
        }
        host::pause(LOOK_EVERY);
        match api.post("/v1/shards/rebalance", body) {
            Ok(newer) => answer = newer,
            // The duty passes on, or more was asked than may be.
            Err(trouble) if trouble.is("not_serving") || trouble.is("too_many_requests") => {}
            Err(trouble) => return Err(trouble),
        }
    }
}

fn to_do(answer: &Value) -> u64 {
    let count = |kind: &Value, what: &str| kind[what].as_u64().unwrap_or(0);
    items(&answer["outcome"]["kinds"])
        .iter()
        .map(|kind| count(kind, "under_way") + count(kind, "remaining"))
        .sum()
}

fn balance(outcome: &Value) -> crate::table::Table {
    let mut table = crate::table::Table::new(&["kind", "under way", "remaining"]);
    for kind in items(&outcome["kinds"]) {
        table.row([
            cells::text(&kind["kind"]),
            cells::text(&kind["under_way"]),
            cells::text(&kind["remaining"]),
        ]);
    }
    table.note(format!("node {} looks after the shards", cells::text(&outcome["coordinator"])));
    table
}

/// Has a shard handed to another node, and shows how far it is meanwhile.
pub(crate) fn move_shard(api: &Api, screen: &mut Screen, (kind, shard): (&str, u32), node: &str) -> Ended {
    let to = Names::read(api)?.id_of(node)?;
    let body = json!({ "kind": kind, "shard": shard, "to": to });
    let answer =
        while_it_moves(api, (kind, shard), || api.post_within("/v1/shards/move", &body, LONGEST_MOVE))?;
    let outcome = &answer["outcome"];
    let moved = outcome["moved"] == true;
    if screen.is_for_programs() {
        screen.json(&answer)?;
    } else if moved {
        let generation = cells::text(&outcome["generation"]);
        screen.line(&format!("shard {shard} of {kind} is node {to}'s, at generation {generation}"))?;
    } else {
        screen.line(&format!(
            "shard {shard} of {kind} stays where it is: {}",
            cells::text(&outcome["reason"])
        ))?;
    }
    Ok(if moved { Verdict::Yes } else { Verdict::No })
}

/// Carries out an act while somebody looks how far it is.
fn while_it_moves(
    api: &Api,
    shard: (&str, u32),
    act: impl FnOnce() -> Result<Value, Trouble> + Send,
) -> Result<Value, Trouble> {
    std::thread::scope(|scope| {
        let acting = scope.spawn(act);
        let mut progress = Progress::new();
        while !acting.is_finished() {
            if let Some(step) = step_of(api, shard) {
                progress.show(0, 1, &format!("shard {} of {}: {step}", shard.1, shard.0));
            }
            host::pause(GLANCE_EVERY);
        }
        acting.join().unwrap_or_else(|_| Err(Trouble::Failed("the request broke down".to_owned())))
    })
}

/// Where a shard is on its way, as its owner says.
fn step_of(api: &Api, (kind, shard): (&str, u32)) -> Option<String> {
    let answer = api.get("/v1/cluster/moves", &[]).ok()?;
    let moves = items(&answer["answers"]).iter().flat_map(|one| items(&one["answer"]["moves"]));
    let mut of_shard = moves.filter(|one| one["kind"] == kind && one["shard"] == shard);
    of_shard.next().map(|one| cells::text(&one["step"]))
}

/// Shows the moves that are under way.
pub(crate) fn moves(api: &Api, screen: &mut Screen, of: crate::arguments::OfCluster) -> Ended {
    show::read_of((api, screen), of, "moves", cells::moves)
}

/// Between two looks at something that takes long, and at something that does not.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const GLANCE_EVERY: Duration = Duration::from_millis(20);

/// The owner of a shard answers within five seconds.
const LONGEST_MOVE: Duration = Duration::from_secs(30);
