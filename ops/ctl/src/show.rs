//! The reads: what is asked for each, and the table that people are shown.

use serde_json::{Value, json};

use crate::api::Api;
use crate::arguments::OfCluster;
use crate::names::Names;
use crate::screen::Screen;
use crate::table::Table;
use crate::trouble::{Ended, Trouble, Verdict};
use crate::{actor_id, cells};

/// Shows what one node answers at a path.
pub(crate) fn read(api: &Api, screen: &mut Screen, path: &str, table: fn(&Value) -> Table) -> Ended {
    let answer = api.get(path, &[])?;
    screen.show(&answer, table)?;
    Ok(Verdict::Yes)
}

/// Shows what one node answers, or what all of them do.
pub(crate) fn read_of(
    (api, screen): (&Api, &mut Screen),
    OfCluster { cluster }: OfCluster,
    what: &str,
    table: fn(&Value) -> Table,
) -> Ended {
    if !cluster {
        return read(api, screen, &format!("/v1/{what}"), table);
    }
    let answer = api.get(&format!("/v1/cluster/{what}"), &[])?;
    let names = if screen.is_for_programs() { Names::default() } else { Names::read(api)? };
    screen.show(&answer, |answer| of_all(answer, &names, table))?;
    Ok(Verdict::Yes)
}

/// One table of what all members answer.
pub(crate) fn of_all(answer: &Value, names: &Names, table: impl Fn(&Value) -> Table) -> Table {
    let mut all = table(&Value::Null).under("node");
    for one in cells::items(&answer["answers"]) {
        all.append(&names.of(&one["node"]), table(&one["answer"]));
    }
    for one in cells::items(&answer["refused"]) {
        all.note(format!("{} refuses: {}", names.of(&one["node"]), cells::text(&one["error"]["message"])));
    }
    for one in cells::items(&answer["silent"]) {
        all.note(format!("{} does not answer: {}", names.of(&one["node"]), cells::text(&one["reason"])));
    }
    all
}

/// Shows the shards of one kind, or how many of each kind each node has.
pub(crate) fn shards(api: &Api, screen: &mut Screen, kind: Option<&str>) -> Ended {
    let names = if screen.is_for_programs() { Names::default() } else { Names::read(api)? };
    if let Some(kind) = kind {
        let page = all_shards(api, kind)?;
        screen.show(&page, |page| cells::shards_of(page, &names))?;
        return Ok(Verdict::Yes);
    }
    let kinds = api.get("/v1/kinds", &[])?;
    let sharded = cells::items(&kinds["kinds"]).iter().filter(|kind| kind["divided"] == "shards");
    let mut all = Vec::new();
    for kind in sharded.filter_map(|kind| kind["name"].as_str()) {
        let mut page = api.get("/v1/shards", &[("kind", kind), ("limit", "1")])?;
        if let Some(fields) = page.as_object_mut() {
            fields.remove("items");
            fields.remove("next");
        }
        all.push(page);
    }
    screen.show(&json!({ "kinds": all }), |answer| cells::shard_counts(answer, &names))?;
    Ok(Verdict::Yes)
}

/// All shards of a kind, as one page.
fn all_shards(api: &Api, kind: &str) -> Result<Value, Trouble> {
    let mut whole = api.get("/v1/shards", &[("kind", kind), ("limit", PAGE)])?;
    let mut items: Vec<Value> = cells::items(&whole["items"]).to_vec();
    let mut next = whole["next"].as_u64();
    while let Some(from) = next {
        let page = api.get("/v1/shards", &[("kind", kind), ("limit", PAGE), ("from", &from.to_string())])?;
        items.extend_from_slice(cells::items(&page["items"]));
        next = page["next"].as_u64().filter(|next| *next > from);
    }
    whole["items"] = Value::Array(items);
    whole["next"] = Value::Null;
    Ok(whole)
}

/// What to list of the actors.
pub(crate) struct Actors<'a> {
    pub(crate) kind: Option<&'a str>,
    pub(crate) prefix: &'a str,
    pub(crate) limit: u32,
    pub(crate) of: OfCluster,
}

/// Shows active actors: of one node page after page, of all of them one page each.
pub(crate) fn actors(api: &Api, screen: &mut Screen, wanted: &Actors<'_>) -> Ended {
    if !wanted.of.cluster {
        let answer = json!({ "actors": pages(api, wanted)? });
        screen.show(&answer, cells::actors)?;
        return Ok(Verdict::Yes);
    }
    let limit = wanted.limit.min(MOST_IN_A_PAGE).to_string();
    let answer = api.get("/v1/cluster/actors", &query(wanted, &limit, None))?;
    let names = if screen.is_for_programs() { Names::default() } else { Names::read(api)? };
    screen.show(&answer, |answer| of_all(answer, &names, cells::actors))?;
    Ok(Verdict::Yes)
}

fn pages(api: &Api, wanted: &Actors<'_>) -> Result<Vec<Value>, Trouble> {
    let most = wanted.limit as usize;
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let left =
            u32::try_from(most - found.len()).unwrap_or(MOST_IN_A_PAGE).min(MOST_IN_A_PAGE).to_string();
        let page = api.get("/v1/actors", &query(wanted, &left, cursor.as_deref()))?;
        found.extend_from_slice(cells::items(&page["actors"]));
        found.truncate(most);
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() || found.len() >= most {
            return Ok(found);
        }
    }
}

fn query<'a>(
    wanted: &'a Actors<'_>,
    limit: &'a str,
    cursor: Option<&'a str>,
) -> Vec<(&'static str, &'a str)> {
    let mut query = vec![("limit", limit)];
    query.extend(wanted.kind.map(|kind| ("kind", kind)));
    if !wanted.prefix.is_empty() {
        query.push(("prefix", wanted.prefix));
    }
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    query
}

/// Shows where an actor is.
pub(crate) fn actor(api: &Api, screen: &mut Screen, id: &str) -> Ended {
    let answer = api.get(&actor_id::path(id)?, &[])?;
    let names = if screen.is_for_programs() { Names::default() } else { Names::read(api)? };
    screen.show(&answer, |answer| cells::actor(answer, &names))?;
    Ok(Verdict::Yes)
}

/// Shows the ranges of a kind.
pub(crate) fn ranges(api: &Api, screen: &mut Screen, kind: &str) -> Ended {
    let answer = api.get("/v1/ranges", &[("kind", kind)])?;
    let names = if screen.is_for_programs() { Names::default() } else { Names::read(api)? };
    screen.show(&answer, |answer| cells::ranges(answer, &names))?;
    Ok(Verdict::Yes)
}

/// Shows which messages take how long; an older node does not count them.
pub(crate) fn messages(api: &Api, screen: &mut Screen, of: OfCluster) -> Ended {
    let ended = read_of((api, screen), of, "messages", cells::messages);
    ended.map_err(|trouble| {
        let unknown = trouble.is("no_such_path");
        if unknown {
            Trouble::Failed("the node does not count its messages: its API has no /v1/messages".to_owned())
        } else {
            trouble
        }
    })
}

/// How many of each listing are asked for at a time.
const PAGE: &str = "1000";
const MOST_IN_A_PAGE: u32 = 1_000;
