//! What was asked of the cluster at one moment.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use crate::api::Api;
use crate::cells::items;
use crate::host;
use crate::trouble::Trouble;

/// The cluster at one moment.
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) node: Value,
    pub(super) members: Value,
    /// What each member says of its kinds.
    pub(super) kinds: Value,
    /// What each member says of its messages; none if they do not count them.
    pub(super) messages: Option<Value>,
}

/// How one message fared, on all members together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fared {
    pub(super) started: u64,
    pub(super) mean: f64,
    pub(super) slowest: f64,
    /// How often it started each second since its node did.
    pub(super) rate: f64,
}

impl Sample {
    /// Asks for everything.
    ///
    /// # Errors
    ///
    /// The node refuses, or does not answer.
    pub(super) fn take(api: &Api) -> Result<Self, Trouble> {
        Ok(Self {
            at: host::now(),
            node: api.get("/v1/node", &[])?,
            members: api.get("/v1/members", &[])?,
            kinds: api.get("/v1/cluster/kinds", &[])?,
            messages: messages(api)?,
        })
    }

    /// How many actors of each kind are active, on all members together.
    pub(super) fn active(&self) -> BTreeMap<String, u64> {
        let mut active = BTreeMap::new();
        for kind in items(&self.kinds["answers"]).iter().flat_map(|one| items(&one["answer"]["kinds"])) {
            if let Some(name) = kind["name"].as_str() {
                *active.entry(name.to_owned()).or_default() += kind["active"].as_u64().unwrap_or(0);
            }
        }
        active
    }

    /// How each message of each kind fared.
    pub(super) fn fared(&self) -> BTreeMap<(String, String), Fared> {
        let mut all: BTreeMap<(String, String), Fared> = BTreeMap::new();
        let answers = self.messages.iter().flat_map(|messages| items(&messages["answers"]));
        for answer in answers.map(|one| &one["answer"]) {
            let uptime =
                answer["uptime_seconds"].as_f64().filter(|uptime| *uptime > 0.0).unwrap_or(f64::INFINITY);
            for one in items(&answer["messages"]) {
                let (Some(kind), Some(message)) = (one["kind"].as_str(), one["message"].as_str()) else {
                    continue;
                };
                all.entry((kind.to_owned(), message.to_owned())).or_default().add(one, uptime);
            }
        }
        all
    }
}

impl Fared {
    fn add(&mut self, one: &Value, uptime: f64) {
        let started = one["started"].as_u64().unwrap_or(0);
        let (before, more) = (self.started as f64, started as f64);
        if before + more > 0.0 {
            let mean = one["mean_seconds"].as_f64().unwrap_or(0.0);
            self.mean = (self.mean * before + mean * more) / (before + more);
        }
        self.slowest = self.slowest.max(one["slowest_seconds"].as_f64().unwrap_or(0.0));
        self.rate += more / uptime;
        self.started += started;
    }
}

/// What all members say of their messages, or this one, or nobody: not every version counts them.
fn messages(api: &Api) -> Result<Option<Value>, Trouble> {
    let unknown = |trouble: &Trouble| trouble.is("no_such_path");
    match api.get("/v1/cluster/messages", &[]) {
        Ok(all) => return Ok(Some(all)),
        Err(trouble) if unknown(&trouble) => {}
        Err(trouble) => return Err(trouble),
    }
    match api.get("/v1/messages", &[]) {
        Ok(own) => Ok(Some(serde_json::json!({ "answers": [{ "node": null, "answer": own }] }))),
        Err(trouble) if unknown(&trouble) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// What two members say, of which each has handled so many messages.
    pub(in super::super) fn sample(started: [u64; 2]) -> Sample {
        let message = |started: u64, mean: f64| {
            json!({
                "uptime_seconds": 10.0, "messages": [{
                    "kind": "Guest", "message": "shop.Greet", "started": started, "sampled": 1,
                    "mean_seconds": mean, "slowest_seconds": mean * 4.0,
                }],
            })
        };
        let kinds = |active: u64| json!({ "kinds": [{ "name": "Guest", "active": active }, { "name": "Idle", "active": 0 }] });
        Sample {
            at: host::now(),
            node: json!({ "id": "00000000000000aa", "name": "north", "namespace": "shop", "session": { "standing": "live" } }),
            members: json!({ "leader": "00000000000000aa", "members": [
                { "id": "00000000000000aa", "name": "north", "status": "up" },
                { "id": "00000000000000bb", "name": "so\u{1b}[2Juth", "status": "up" },
            ] }),
            kinds: json!({ "answers": [{ "answer": kinds(3) }, { "answer": kinds(4) }] }),
            messages: Some(json!({ "answers": [
                { "answer": message(started[0], 0.001) }, { "answer": message(started[1], 0.003) },
            ] })),
        }
    }

    #[test]
    fn what_members_say_is_added_up() {
        let sample = sample([30, 10]);
        assert_eq!(sample.active()["Guest"], 7);
        let fared = sample.fared()[&("Guest".to_owned(), "shop.Greet".to_owned())];
        assert_eq!((fared.started, fared.slowest), (40, 0.012));
        assert!((fared.mean - 0.0015).abs() < 1e-9 && (fared.rate - 4.0).abs() < 1e-9, "{fared:?}");
    }
}
