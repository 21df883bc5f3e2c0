//! Acts that are over when the node has answered.

use std::time::Duration;

use serde_json::{Value, json};

use crate::actor_id;
use crate::api::Api;
use crate::cells;
use crate::names::Names;
use crate::screen::Screen;
use crate::table::Table;
use crate::trouble::{Ended, Trouble, Verdict};

/// Carries out an act whose answer is one sentence.
fn act(api: &Api, screen: &mut Screen, path: &str, body: &Value) -> Ended {
    let answer = api.post(path, body)?;
    if screen.is_for_programs() {
        screen.json(&answer)?;
    } else {
        screen.line(&cells::text(&answer["outcome"]))?;
    }
    Ok(Verdict::Yes)
}

/// Tells the node to leave.
pub(crate) fn leave(api: &Api, screen: &mut Screen) -> Ended {
    act(api, screen, "/v1/node/leave", &Value::Null)
}

/// Drains the datacenter of the node.
pub(crate) fn drain_datacenter(api: &Api, screen: &mut Screen) -> Ended {
    act(api, screen, "/v1/datacenter/drain", &Value::Null)
}

/// Asks an actor to go.
pub(crate) fn deactivate(api: &Api, screen: &mut Screen, id: &str) -> Ended {
    act(api, screen, &format!("{}/deactivate", actor_id::path(id)?), &Value::Null)
}

/// Divides a range.
pub(crate) fn split(api: &Api, screen: &mut Screen, kind: &str, at: &str) -> Ended {
    ranges(api, screen, "split", &json!({ "kind": kind, "at": at }))
}

/// Merges a range with the next.
pub(crate) fn merge(api: &Api, screen: &mut Screen, kind: &str, key: &str) -> Ended {
    ranges(api, screen, "merge", &json!({ "kind": kind, "key": key }))
}

/// Gives a range to another node.
pub(crate) fn move_range(api: &Api, screen: &mut Screen, (kind, key): (&str, &str), node: &str) -> Ended {
    let to = Names::read(api)?.id_of(node)?;
    ranges(api, screen, "move", &json!({ "kind": kind, "key": key, "to": to }))
}

fn ranges(api: &Api, screen: &mut Screen, change: &str, body: &Value) -> Ended {
    let answer = api.post(&format!("/v1/ranges/{change}"), body)?;
    screen.show(&answer, |answer| {
        let mut table = Table::new(&["what", "value"]);
        table.row(["table".to_owned(), cells::text(&answer["outcome"]["version"])]);
        table
    })?;
    Ok(Verdict::Yes)
}

/// What to ask an actor.
pub(crate) struct Call<'a> {
    pub(crate) id: &'a str,
    pub(crate) message: &'a str,
    pub(crate) body: &'a str,
    /// In milliseconds.
    pub(crate) deadline: Option<u64>,
}

/// Asks an actor and shows its reply, which is JSON either way.
pub(crate) fn call(api: &Api, screen: &mut Screen, Call { id, message, body, deadline }: &Call<'_>) -> Ended {
    let body: Value = serde_json::from_str(body)
        .map_err(|error| Trouble::Usage(format!("the message is no JSON: {error}")))?;
    let mut question = json!({ "message": message, "body": body });
    if let Some(deadline) = deadline {
        question["deadline_ms"] = json!(deadline);
    }
    // The node ends the call; whoever waits for the answer waits a little longer.
    let within = Duration::from_millis(deadline.unwrap_or(LONGEST_MS)) + GRACE;
    let answer = api.post_within(&format!("{}/call", actor_id::path(id)?), &question, within)?;
    screen.json(&answer["outcome"]["reply"])?;
    Ok(Verdict::Yes)
}

/// How long an answer may be later than the reply in it.
const GRACE: Duration = Duration::from_secs(5);
const LONGEST_MS: u64 = 300_000;
