//! What a running node answers, held against the OpenAPI document.

use actix_web::http::StatusCode;
use archipelago::prelude::*;
use serde_json::{Value, json};

use crate::schema::faults;
use crate::support::{Greet, Guest, eventually, get, node, post, two_nodes};

/// The schema of an answer.
fn schema_of<'a>(document: &'a Value, method: &str, path: &str, status: StatusCode) -> &'a Value {
    let responses = &document["paths"][path][method]["responses"];
    let schema = &responses[status.as_str()]["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{method} {path} says nothing about {status}");
    schema
}

fn check(document: &Value, method: &str, path: &str, (status, body): &(StatusCode, Value)) {
    let found = faults(document, schema_of(document, method, path, *status), body);
    assert!(found.is_empty(), "{method} {path} answered {status} {body}: {found:#?}");
}

/// A request for each path that is read.
const READS: [(&str, &str); 18] = [
    ("/livez", "/livez"),
    ("/readyz", "/readyz"),
    ("/v1/node", "/v1/node"),
    ("/v1/session", "/v1/session"),
    ("/v1/members", "/v1/members"),
    ("/v1/kinds", "/v1/kinds"),
    ("/v1/ranges", "/v1/ranges?kind=Guest"),
    ("/v1/actors", "/v1/actors?limit=7"),
    ("/v1/actors/{kind}/{key}", "/v1/actors/Guest/guest-1"),
    ("/v1/shards", "/v1/shards?kind=Guest&limit=3"),
    ("/v1/moves", "/v1/moves"),
    ("/v1/datacenters", "/v1/datacenters"),
    ("/v1/peers", "/v1/peers"),
    ("/v1/lanes", "/v1/lanes"),
    ("/v1/dead-letters", "/v1/dead-letters"),
    ("/v1/messages", "/v1/messages?by=slowest&limit=2"),
    ("/v1/config", "/v1/config"),
    ("/v1/openapi.json", "/v1/openapi.json"),
];

#[actix::test]
async fn every_answer_of_a_running_node_fits_the_document() {
    let (first, second) = two_nodes().await;
    for number in 0..20 {
        first.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    let (_, document) = get(&first, "/v1/openapi.json").await;
    let described =
        document["paths"].as_object().unwrap().iter().filter(|(_, item)| item.get("get").is_some());
    let mut described: Vec<&str> = described.map(|(path, _)| path.as_str()).collect();
    // These have tests of their own.
    described.retain(|path| !["/v1/events", "/v1/cluster/{what}"].contains(path));
    let mut tried = READS.map(|(path, _)| path);
    tried.sort_unstable();
    assert_eq!(described, tried, "each is tried");
    for (path, request) in READS {
        check(&document, "get", path, &get(&first, request).await);
    }
    check(&document, "get", "/v1/actors", &get(&first, "/v1/actors?kind=Nobody").await);
    second.stop().await.unwrap();
    first.stop().await.unwrap();
    check(&document, "get", "/readyz", &get(&first, "/readyz").await);
    check(&document, "get", "/v1/actors", &get(&first, "/v1/actors").await);
}

#[actix::test]
async fn members_and_peers_are_shown_as_they_are() {
    let (first, second) = two_nodes().await;
    let (status, members) = get(&first, "/v1/members").await;
    assert_eq!(status, StatusCode::OK);
    let other = &second.id().to_string();
    let found = members["members"].as_array().unwrap().iter().find(|member| member["id"] == *other).unwrap();
    assert_eq!((found["status"].as_str(), found["suspect"].as_bool()), (Some("up"), Some(false)));
    assert!(found["phi"].is_number(), "of two each watches the other: {found}");
    assert_eq!(found["reachable"], true);
    let (_, peers) = get(&first, "/v1/peers").await;
    assert!(
        peers["peers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|peer| peer["id"] == *other && peer["connected"] == true)
    );
    let (_, lanes) = get(&first, "/v1/lanes").await;
    let control = lanes["lanes"].as_array().unwrap().iter().find(|lane| lane["from"] == "control").unwrap();
    assert_eq!(
        (control["node"].as_str(), control["connected"].as_bool()),
        (Some(other.as_str()), Some(true))
    );
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn a_node_is_ready_while_its_session_is_live() {
    let node = node().await;
    assert_eq!(get(&node, "/livez").await, (StatusCode::OK, json!({ "ok": true })));
    assert_eq!(get(&node, "/readyz").await, (StatusCode::OK, json!({ "ok": true })));
    let (_, session) = get(&node, "/v1/session").await;
    assert_eq!(session["standing"], "live");
    let left = session["serving_for_ms"].as_u64().unwrap();
    assert!((1..=session["ttl_ms"].as_u64().unwrap()).contains(&left), "{session}");
    node.stop().await.unwrap();
    assert_eq!(get(&node, "/livez").await.0, StatusCode::OK);
    assert_eq!(get(&node, "/readyz").await, (StatusCode::SERVICE_UNAVAILABLE, json!({ "ok": false })));
    assert_eq!(get(&node, "/v1/session").await.1["standing"], "closed");
}

#[actix::test]
async fn shards_and_their_owners_come_in_pages() {
    let node = node().await;
    for number in 0..64 {
        node.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    let (mut from, mut seen) = (Some(0), Vec::new());
    while let Some(at) = from {
        let (status, page) = get(&node, &format!("/v1/shards?kind=Guest&from={at}&limit=5")).await;
        assert_eq!((status, page["shards"].as_u64()), (StatusCode::OK, Some(16)));
        for shard in page["items"].as_array().unwrap() {
            assert_eq!(shard["node"], node.id().to_string());
            seen.push(shard["shard"].as_u64().unwrap());
        }
        from = page["next"].as_u64();
    }
    assert_eq!(seen, (0..16).collect::<Vec<_>>(), "64 guests are in all 16 shards");
    node.stop().await.unwrap();
}

/// Is registered nowhere.
#[derive(NamedActor)]
#[named_actor(handles(Greet))]
struct Porter;

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Greet> for Porter {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        0
    }
}

#[actix::test]
async fn dead_letters_are_kept_with_their_reasons() {
    let node = node().await;
    assert_eq!(get(&node, "/v1/dead-letters").await.1, json!({ "letters": [] }));
    let nobody = node.named::<Porter>("/nobody").unwrap();
    for _ in 0..300 {
        nobody.tell(Greet).unwrap();
    }
    eventually("all are given up", || node.dead_letters().first().is_some_and(|newest| newest.number == 300))
        .await;
    let (_, letters) = get(&node, "/v1/dead-letters").await;
    let letters = letters["letters"].as_array().unwrap();
    assert_eq!(
        (letters.len(), &letters[0]["number"], &letters[255]["number"]),
        (256, &json!(300), &json!(45))
    );
    let newest = &letters[0];
    assert!(newest["target"].as_str().unwrap().contains("nobody"), "{newest}");
    assert!(newest["reason"].as_str().unwrap().contains("no actor"), "{newest}");
    assert!(newest["message"].as_str().unwrap().ends_with("Greet") && newest["node"].is_null(), "{newest}");
    node.stop().await.unwrap();
}

#[actix::test]
async fn acts_answer_as_the_document_says() {
    let (first, second) = two_nodes().await;
    let (_, document) = get(&first, "/v1/openapi.json").await;
    first.actor::<Guest>("guest").send(Greet).await.unwrap();
    let shard = get(&first, "/v1/actors/Guest/guest").await.1;
    let owner = shard["owner"]["node"].as_str().unwrap().to_owned();
    let to = if owner == first.id().to_string() { second.id() } else { first.id() };
    let number = get(&first, "/v1/shards?kind=Guest").await.1["items"][0]["shard"].clone();
    let wanted = json!({ "kind": "Guest", "shard": number, "to": to.to_string() });
    check(&document, "post", "/v1/shards/move", &post(&first, "/v1/shards/move", Some(wanted)).await);
    let path = "/v1/actors/Guest/nobody/deactivate";
    check(&document, "post", "/v1/actors/{kind}/{key}/deactivate", &post(&first, path, None).await);
    let split = json!({ "kind": "Guest", "at": "m" });
    check(&document, "post", "/v1/ranges/split", &post(&first, "/v1/ranges/split", Some(split)).await);
    check(&document, "post", "/v1/datacenter/drain", &post(&first, "/v1/datacenter/drain", None).await);
    check(&document, "post", "/v1/node/leave", &post(&first, "/v1/node/leave", None).await);
    first.stopped().await;
    second.stop().await.unwrap();
}
