//! Messages to actors, by name and as JSON, and shards that are balanced by hand.

use actix_web::http::StatusCode;
use archipelago::Event;
use archipelago::Notice;
use serde_json::{Value, json};

use crate::schema::faults;
use crate::support::{
    GREET, Greet, Guest, builder, code, eventually, get, node, post, send_as_is, two_nodes,
};

const WELCOME: &str = "archipelago-admin.Welcome";
const CALL: &str = "/v1/actors/Guest/guest/call";

fn fits(document: &Value, path: &str, answer: &Value) {
    let schema =
        &document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(faults(document, schema, answer), Vec::<String>::new());
}

#[actix::test]
async fn an_actor_is_asked_by_the_name_of_a_message_whatever_its_codec() {
    let node = node().await;
    let (_, document) = get(&node, "/v1/openapi.json").await;
    for body in [json!({ "message": GREET }), json!({ "message": GREET, "body": null })] {
        let (status, answer) = post(&node, CALL, Some(body)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        fits(&document, "/v1/actors/{kind}/{key}/call", &answer);
    }
    assert_eq!(node.actor::<Guest>("guest").send(Greet).await.unwrap(), 3, "it was the same actor");
    let body = json!({ "name": "Ada", "times": 2, "after_ms": 0 });
    let (_, answer) = post(&node, CALL, Some(json!({ "message": WELCOME, "body": body }))).await;
    assert_eq!(answer, json!({ "outcome": { "reply": "Ada Ada" } }));
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_of_another_node_is_asked_there() {
    let (first, second) = two_nodes().await;
    let mut elsewhere = 0;
    for number in 0..32 {
        let path = format!("/v1/actors/Guest/guest-{number}");
        let (status, answer) = post(&first, &format!("{path}/call"), Some(json!({ "message": GREET }))).await;
        assert_eq!((status, &answer["outcome"]["reply"]), (StatusCode::OK, &json!(1)), "{answer}");
        let owner = get(&first, &path).await.1["owner"]["own"].clone();
        if owner == false {
            elsewhere += 1;
            let unknown = post(&first, &format!("{path}/call"), Some(json!({ "message": "nothing" }))).await;
            assert_eq!(code(&unknown), (404, "unknown_message"), "{}", unknown.1);
            let bad =
                post(&first, &format!("{path}/call"), Some(json!({ "message": WELCOME, "body": 1 }))).await;
            assert_eq!(code(&bad), (400, "bad_message"), "{}", bad.1);
        }
    }
    assert!(elsewhere > 0, "the second has some");
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn what_cannot_be_asked_is_refused_with_a_word_of_its_own() {
    let node = node().await;
    let hostile = "\u{1b}[2J\u{0}\"x";
    let long = "m".repeat(9_000);
    let welcome = |body: Value| json!({ "message": WELCOME, "body": body });
    let refused = [
        ("/v1/actors/Nobody/a/call", json!({ "message": GREET }), (404, "unknown_kind")),
        ("/v1/actors/Guest/%00/call", json!({ "message": GREET }), (400, "invalid_id")),
        (CALL, json!({ "message": "nothing" }), (404, "unknown_message")),
        (CALL, json!({ "message": "" }), (404, "unknown_message")),
        (CALL, json!({ "message": hostile }), (404, "unknown_message")),
        (CALL, json!({ "message": long }), (404, "unknown_message")),
        (CALL, json!({ "message": GREET, "body": 1 }), (400, "bad_message")),
        (CALL, welcome(json!({ "name": "Ada", "times": 256, "after_ms": 0 })), (400, "bad_message")),
        (CALL, welcome(json!({ "name": "Ada" })), (400, "bad_message")),
        (CALL, json!({ "message": GREET, "deadline_ms": 0 }), (400, "invalid_request")),
        (CALL, json!({ "message": GREET, "deadline_ms": 300_001 }), (400, "invalid_request")),
        (CALL, json!({ "message": GREET, "more": 1 }), (400, "invalid_request")),
        (CALL, json!({ "body": 1 }), (400, "invalid_request")),
    ];
    for (path, body, word) in refused {
        let answer = post(&node, path, Some(body)).await;
        assert_eq!(code(&answer), word, "{path}: {}", answer.1);
    }
    for body in [format!(r#"{{"message":"{GREET}","body":{}"#, "[".repeat(5_000)), "x".repeat(20 << 10)] {
        let answer = send_as_is(&node, CALL, body).await;
        assert!(matches!(code(&answer), (400, "invalid_request") | (413, "too_large")), "{}", answer.1);
    }
    let deep = format!(r#"{{"message":"{GREET}","body":{}{}}}"#, "[".repeat(4_000), "]".repeat(4_000));
    let answer = send_as_is(&node, CALL, deep).await;
    assert!(matches!(code(&answer), (400, _)), "{}", answer.1);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_call_ends_with_its_deadline_and_says_that_the_handler_had_started() {
    let node = node().await;
    let mut events = node.events().subscribe();
    let slow = json!({ "name": "Ada", "times": 1, "after_ms": 1_500 });
    let body = json!({ "message": WELCOME, "body": slow, "deadline_ms": 50 });
    let answer = post(&node, CALL, Some(body)).await;
    assert_eq!(code(&answer), (504, "timeout"));
    assert!(answer.1["error"]["message"].as_str().unwrap().contains("may have run"), "{}", answer.1);
    let mut acts = Vec::new();
    while let Some(notice) = events.try_next() {
        if let Notice::Event(Event::Operated { act, subject, outcome }) = notice {
            acts.push((act, subject, outcome.split(':').next().unwrap_or_default().to_owned()));
        }
    }
    let subject = format!("{WELCOME:?} of \"Guest\" / \"guest\"");
    assert_eq!(acts, [("call".to_owned(), subject, "refused (timeout)".to_owned())]);
    node.stop().await.unwrap();
}

/// The shards that each of two nodes owns.
async fn owned(node: &archipelago::Node, of: &archipelago::Node) -> u64 {
    let (_, page) = get(node, "/v1/shards?kind=Guest").await;
    let id = of.id().to_string();
    let counts = page["owners"].as_array().unwrap();
    counts.iter().find(|count| count["node"] == id).map_or(0, |count| count["shards"].as_u64().unwrap())
}

#[actix::test]
async fn shards_are_balanced_on_demand_where_nobody_does_it_unasked_and_any_node_passes_it_on() {
    let store = std::sync::Arc::default();
    let off = [("sharding.rebalance", "false")];
    let first = builder(&store, &off).start().await.unwrap();
    for number in 0..64 {
        first.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    let second = builder(&store, &off).start().await.unwrap();
    eventually("both take part", || {
        second
            .members()
            .iter()
            .filter(|member| member.status == archipelago::membership::MemberStatus::Up)
            .count()
            == 2
    })
    .await;
    assert_eq!(owned(&first, &first).await, 16);
    let (_, document) = get(&first, "/v1/openapi.json").await;
    let mut coordinators = std::collections::BTreeSet::new();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while owned(&second, &second).await != 8 {
        assert!(std::time::Instant::now() < until, "the shards are never balanced");
        // One of the two looks after shards, and the other passes it on.
        for asked in [&second, &first] {
            let (status, answer) =
                post(asked, "/v1/shards/rebalance", Some(json!({ "kind": "Guest" }))).await;
            if status == StatusCode::OK {
                fits(&document, "/v1/shards/rebalance", &answer);
                let coordinator = answer["outcome"]["coordinator"].as_str().unwrap().to_owned();
                assert!(
                    [&first, &second].iter().any(|node| node.id().to_string() == coordinator),
                    "{answer}"
                );
                coordinators.insert(coordinator);
            } else {
                assert_eq!(code(&(status, answer.clone())), (503, "not_serving"), "{answer}");
            }
        }
        actix::clock::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(coordinators.len(), 1, "{coordinators:?}");
    let (_, answer) = post(&second, "/v1/shards/rebalance", Some(json!({}))).await;
    let kinds = answer["outcome"]["kinds"].as_array().unwrap();
    let guests = kinds.iter().find(|kind| kind["kind"] == "Guest").unwrap();
    assert_eq!(guests["remaining"], 0, "{answer}");
    let nobody = post(&second, "/v1/shards/rebalance", Some(json!({ "kind": "Nobody" }))).await;
    assert_eq!(code(&nobody), (404, "unknown_kind"));
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}
