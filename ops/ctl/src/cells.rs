//! From what the API answers to rows. A field that is not there is a dash: nodes may be older than this command.

use serde_json::Value;

use crate::names::Names;
use crate::table::Table;

/// The items of a list; none if it is none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as a word.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A length of time in milliseconds as people say it.
pub(crate) fn span(value: &Value) -> String {
    match value.as_u64() {
        None => "-".to_owned(),
        Some(millis @ 0..1_000) => format!("{millis}ms"),
        Some(millis @ 1_000..120_000) => format!("{:.1}s", millis as f64 / 1e3),
        Some(millis @ 120_000..7_200_000) => format!("{}min", millis / 60_000),
        Some(millis) => format!("{}h", millis / 3_600_000),
    }
}

/// A length of time in seconds, which may be very short.
pub(crate) fn seconds(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1e-3 => format!("{:.0}us", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1}ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1}s"),
    }
}

fn rounded(value: &Value) -> String {
    value.as_f64().map_or("-".to_owned(), |number| format!("{number:.1}"))
}

/// Two columns: what it is, and what it says.
fn facts(facts: &[(&str, String)]) -> Table {
    let mut table = Table::new(&["what", "value"]);
    facts.iter().for_each(|(name, value)| table.row([(*name).to_owned(), value.clone()]));
    table
}

/// A row for each of a list.
fn rows(list: &Value, columns: &[&str], row: impl Fn(&Value) -> Vec<String>) -> Table {
    let mut table = Table::new(columns);
    items(list).iter().for_each(|item| table.row(row(item)));
    table
}

fn with_silent(mut table: Table, answer: &Value) -> Table {
    for arbiter in items(&answer["silent"]) {
        table.note(format!("arbiter {} did not answer: an actor keeps it busy", text(arbiter)));
    }
    table
}

pub(crate) fn node(answer: &Value) -> Table {
    let session = &answer["session"];
    facts(&[
        ("id", text(&answer["id"])),
        ("name", text(&answer["name"])),
        ("address", text(&answer["address"])),
        ("namespace", text(&answer["namespace"])),
        ("version", text(&answer["version"])),
        ("roles", text(&answer["roles"])),
        ("leader", text(&answer["leader"])),
        ("ready", text(&answer["ready"])),
        ("session", text(&session["standing"])),
        ("reason", text(&session["reason"])),
        ("serving for", span(&session["serving_for_ms"])),
        ("time to live", span(&session["ttl_ms"])),
        ("stopping", text(&session["stopping"])),
    ])
}

pub(crate) fn members(answer: &Value) -> Table {
    let leader = &answer["leader"];
    let columns =
        ["id", "name", "address", "status", "leads", "version", "roles", "actors", "waiting", "phi"];
    rows(&answer["members"], &columns, |member| {
        let suspect = if member["suspect"] == true { " (suspect)" } else { "" };
        vec![
            text(&member["id"]),
            text(&member["name"]),
            text(&member["address"]),
            format!("{}{suspect}", text(&member["status"])),
            if !leader.is_null() && member["id"] == *leader { "yes" } else { "no" }.to_owned(),
            text(&member["version"]),
            text(&member["roles"]),
            text(&member["load"]["activations"]),
            text(&member["load"]["waiting"]),
            rounded(&member["phi"]),
        ]
    })
}

pub(crate) fn kinds(answer: &Value) -> Table {
    let columns = ["kind", "divided", "hosted", "active", "idle after", "reach", "messages"];
    let table = rows(&answer["kinds"], &columns, |kind| {
        let divided = match kind["shards"].as_u64() {
            Some(1) if kind["singleton"] == true => "singleton".to_owned(),
            Some(count) => format!("{count} shards"),
            None => text(&kind["divided"]),
        };
        vec![
            text(&kind["name"]),
            divided,
            text(&kind["hosted"]),
            text(&kind["active"]),
            span(&kind["idle_after_ms"]),
            text(&kind["reach"]),
            text(&kind["messages"]),
        ]
    });
    with_silent(table, answer)
}

pub(crate) fn shard_counts(answer: &Value, names: &Names) -> Table {
    let mut table = Table::new(&["kind", "shards", "owned", "node", "of it"]);
    for kind in items(&answer["kinds"]) {
        let about = [text(&kind["kind"]), text(&kind["shards"]), text(&kind["owned"])];
        let owners = items(&kind["owners"]);
        if owners.is_empty() {
            table.row(about.clone().into_iter().chain(["-".to_owned(), "-".to_owned()]));
        }
        for owner in owners {
            table.row(about.clone().into_iter().chain([names.of(&owner["node"]), text(&owner["shards"])]));
        }
    }
    table
}

pub(crate) fn shards_of(page: &Value, names: &Names) -> Table {
    let mut table = rows(&page["items"], &["shard", "node", "generation", "known"], |shard| {
        let known = text(&shard["known"]);
        vec![text(&shard["shard"]), names.of(&shard["node"]), text(&shard["generation"]), known]
    });
    table.note(format!("{} of {} shards have an owner", text(&page["owned"]), text(&page["shards"])));
    table
}

pub(crate) fn actors(answer: &Value) -> Table {
    let columns = ["kind", "key", "shard", "generation", "state", "running", "waiting", "idle"];
    rows(&answer["actors"], &columns, |actor| {
        let leaving =
            actor["leaving"].as_str().map_or(String::new(), |reason| format!(" (leaves: {reason})"));
        vec![
            text(&actor["kind"]),
            text(&actor["key"]),
            text(&actor["shard"]),
            text(&actor["generation"]),
            format!("{}{leaving}", text(&actor["state"])),
            text(&actor["running"]),
            text(&actor["waiting"]),
            span(&actor["idle_ms"]),
        ]
    })
}

pub(crate) fn actor(answer: &Value, names: &Names) -> Table {
    let (owner, here) = (&answer["owner"], &answer["here"]);
    let mut told = vec![
        ("actor", text(&answer["actor"])),
        ("owner", if owner.is_null() { "nobody".to_owned() } else { names.of(&owner["node"]) }),
        ("generation", text(&owner["generation"])),
        ("active here", text(&Value::Bool(!here.is_null()))),
    ];
    if !here.is_null() {
        told.extend([
            ("state", text(&here["state"])),
            ("leaving", text(&here["leaving"])),
            ("running", text(&here["running"])),
            ("waiting", text(&here["waiting"])),
            ("idle", span(&here["idle_ms"])),
        ]);
    }
    let mut table = facts(&told);
    if owner["own"] == false {
        table.note("another node owns it: ask that one whether it is active");
    }
    table
}

pub(crate) fn moves(answer: &Value) -> Table {
    let table = rows(&answer["moves"], &["kind", "shard", "to", "step"], |one| {
        vec![text(&one["kind"]), text(&one["shard"]), text(&one["to"]), text(&one["step"])]
    });
    with_silent(table, answer)
}

pub(crate) fn ranges(answer: &Value, names: &Names) -> Table {
    let mut table = rows(&answer["ranges"], &["range", "partition", "node", "address"], |one| {
        vec![text(&one["range"]), text(&one["partition"]), names.of(&one["node"]), text(&one["address"])]
    });
    table.note(format!("table {}", text(&answer["version"])));
    table
}

pub(crate) fn datacenters(answer: &Value) -> Table {
    let columns = ["id", "name", "region", "zone", "standing", "round trip", "endpoints"];
    let mut table = rows(&answer["datacenters"], &columns, |one| {
        let trip = one["round_trip_ms"].as_f64().map_or("-".to_owned(), |trip| format!("{trip:.1}ms"));
        vec![
            text(&one["id"]),
            text(&one["name"]),
            text(&one["region"]),
            text(&one["zone"]),
            text(&one["standing"]),
            trip,
            text(&one["endpoints"]),
        ]
    });
    if answer["stale"] == true {
        table
            .note(format!("this is stale: the control plane was last heard {} ago", span(&answer["age_ms"])));
    }
    table
}

pub(crate) fn peers(answer: &Value) -> Table {
    let columns = ["id", "name", "address", "datacenter", "client", "connected", "leaving", "silent for"];
    rows(&answer["peers"], &columns, |peer| {
        vec![
            text(&peer["id"]),
            text(&peer["name"]),
            text(&peer["address"]),
            text(&peer["datacenter"]),
            text(&peer["client"]),
            text(&peer["connected"]),
            text(&peer["leaving"]),
            span(&peer["silent_for_ms"]),
        ]
    })
}

pub(crate) fn lanes(answer: &Value) -> Table {
    let columns =
        ["from", "peer", "to", "connected", "waiting bytes", "answer bytes", "in flight", "stalled"];
    let table = rows(&answer["lanes"], &columns, |lane| {
        vec![
            text(&lane["from"]),
            text(&lane["node"]),
            text(&lane["to"]),
            text(&lane["connected"]),
            text(&lane["waiting_bytes"]),
            text(&lane["answer_bytes"]),
            text(&lane["in_flight"]),
            text(&lane["stalled"]),
        ]
    });
    with_silent(table, answer)
}

pub(crate) fn dead_letters(answer: &Value) -> Table {
    let columns = ["number", "at", "peer", "target", "message", "reason"];
    rows(&answer["letters"], &columns, |letter| {
        let at = letter["at_unix_ms"].as_i64().map_or("-".to_owned(), |millis| clock_time(millis / 1_000));
        vec![
            text(&letter["number"]),
            at,
            text(&letter["node"]),
            text(&letter["target"]),
            text(&letter["message"]),
            text(&letter["reason"]),
        ]
    })
}

pub(crate) fn messages(answer: &Value) -> Table {
    let columns = ["kind", "message", "started", "sampled", "mean", "slowest"];
    rows(&answer["messages"], &columns, |one| {
        vec![
            text(&one["kind"]),
            text(&one["message"]),
            text(&one["started"]),
            text(&one["sampled"]),
            seconds(&one["mean_seconds"]),
            seconds(&one["slowest_seconds"]),
        ]
    })
}

pub(crate) fn config(answer: &Value) -> Table {
    let mut table = Table::new(&["key", "value"]);
    for (key, value) in answer["values"].as_object().into_iter().flatten() {
        table.row([key.clone(), text(value)]);
    }
    if answer["known"] == false {
        table.note("the node was configured by code, which says nothing about it");
    }
    table
}

/// The time of day, UTC, of a second since 1970.
pub(crate) fn clock_time(unix: i64) -> String {
    let of_day = unix.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_older_node_does_not_say_is_a_dash() {
        let lines = members(&json!({ "members": [{}] })).lines();
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words, ["-", "-", "-", "-", "no", "-", "-", "-", "-", "-"]);
        let tables: [fn(&Value) -> Table; 11] =
            [node, members, kinds, actors, moves, datacenters, peers, lanes, dead_letters, messages, config];
        for table in tables {
            table(&Value::Null).lines();
            table(&json!([1])).lines();
        }
    }

    #[test]
    fn lengths_of_time_are_as_people_say_them() {
        let said: Vec<String> =
            [5, 1_500, 600_000, 36_000_000].iter().map(|millis| span(&json!(millis))).collect();
        assert_eq!(said, ["5ms", "1.5s", "10min", "10h"]);
        assert_eq!([0.000_25, 0.25, 2.5].map(|one| seconds(&json!(one))), ["250us", "250.0ms", "2.5s"]);
        assert_eq!(clock_time(86_399), "23:59:59");
    }
}
