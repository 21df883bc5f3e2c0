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
    follow_out(api, &id, total, within)?;
    if screen.is_for_programs() {
        screen.json(&json!({ "node": id, "gone": true, "shards": total }))?;
    } else {
        screen.line(&format!("node {id} has left; it owned {total} shards"))?;
    }
    Ok(Verdict::Yes)
}

fn follow_out(api: &Api, id: &str, total: u64, within: Duration) -> Result<(), Trouble> {
    let (until, mut progress) = (host::now() + within, Progress::new());
    let (mut left, mut silent) = (total, 0);
    loop {
        let words = if left == 0 { "shards handed over, the node stops" } else { "shards handed over" };
        progress.show(total - left, total, words);
        match owned_by(api, id) {
            // It has gone, and its API with it. One answer that is late says nothing yet.
            Err(Trouble::Unreachable(_)) if silent > 0 => break,
            Err(Trouble::Unreachable(_)) => silent += 1,
            // An API inside an application of the user's outlives its node.
            Ok(0) | Err(_) if has_ended(api) => break,
            Ok(owned) => (left, silent) = (owned.min(left), 0),
            Err(_) => {}
        }
        if host::now() > until {
            let seconds = within.as_secs();
            let message =
                format!("node {id} still runs after {seconds}s, with {left} shards; it goes on leaving");
            return Err(Trouble::Failed(message));
        }
        host::pause(LOOK_EVERY);
    }
    progress.show(total, total, "the node has gone");
    Ok(())
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
    let answer = if wanted.once {
        api.post("/v1/shards/rebalance", &body)?
    } else {
        follow(api, &body, host::now() + wanted.within)?
    };
    screen.show(&answer, |answer| balance(&answer["outcome"]))?;
    let done = wanted.once || to_do(&answer) == 0;
    Ok(if done { Verdict::Yes } else { Verdict::No })
}

/// Asks again and again, until nothing is left to move or the time is over; the last answer.
fn follow(api: &Api, body: &Value, until: Instant) -> Result<Value, Trouble> {
    let (mut progress, mut most) = (Progress::new(), 0);
    loop {
        let answer = api.post("/v1/shards/rebalance", body);
        let over = host::now() > until;
        match answer {
            Ok(answer) => {
                let left = to_do(&answer);
                most = most.max(left);
                progress.show(most - left, most, "shards moved");
                if left == 0 || over {
                    return Ok(answer);
                }
            }
            // Nobody has the duty for the moment, or more was asked than may be.
            Err(trouble) if !over && passes(&trouble) => {}
            Err(trouble) => return Err(trouble),
        }
        host::pause(LOOK_EVERY);
    }
}

fn passes(trouble: &Trouble) -> bool {
    ["not_serving", "too_many_requests", "no_route"].into_iter().any(|word| trouble.is(word))
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
