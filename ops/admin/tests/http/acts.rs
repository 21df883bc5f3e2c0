//! Who may change something, and what comes of it.

use actix_web::App;
use actix_web::dev::Service;
use actix_web::http::StatusCode;
use actix_web::test::{self, TestRequest};
use archipelago::{Event, Node, Notice};
use archipelago_admin::admin;
use futures_util::future::poll_immediate;
use serde_json::{Value, json};

use crate::schema::faults;
use crate::support::{
    GREET, Greet, Guest, TOKEN, code, eventually, get, node, node_with, post, send, two_nodes,
};

/// Every path that changes something, with a body that would do.
fn acts() -> Vec<(&'static str, Value)> {
    let shard = json!({ "kind": "Guest", "shard": 0, "to": "0000000000000001" });
    let range = json!({ "kind": "Guest", "key": "a", "to": "0000000000000001" });
    vec![
        ("/v1/node/leave", Value::Null),
        ("/v1/shards/move", shard),
        ("/v1/actors/Guest/guest/deactivate", Value::Null),
        ("/v1/actors/Guest/guest/call", json!({ "message": GREET, "body": null })),
        ("/v1/shards/rebalance", json!({})),
        ("/v1/datacenter/drain", Value::Null),
        ("/v1/ranges/split", json!({ "kind": "Guest", "at": "a" })),
        ("/v1/ranges/merge", json!({ "kind": "Guest", "key": "a" })),
        ("/v1/ranges/move", range),
    ]
}

#[actix::test]
async fn without_the_very_token_nothing_is_done() {
    let node = node().await;
    node.actor::<Guest>("guest").send(Greet).await.unwrap();
    let almost = [
        None,
        Some(String::new()),
        Some("Bearer ".to_owned()),
        Some(format!("Bearer {TOKEN}x")),
        Some(format!("Bearer {}", &TOKEN[..TOKEN.len() - 1])),
        Some(format!("Bearer  {TOKEN}")),
        Some(format!("bearer-{TOKEN}")),
        Some(format!("Basic {TOKEN}")),
        Some(TOKEN.to_owned()),
    ];
    for (path, body) in acts() {
        for given in &almost {
            let mut request = TestRequest::post().uri(path).set_json(&body);
            if let Some(given) = given {
                request = request.insert_header(("Authorization", given.as_str()));
            }
            let answer = send(&node, request).await;
            assert_eq!(code(&answer), (401, "wrong_token"), "{path} with {given:?}");
        }
    }
    assert!(node.session().is_ready(), "it does not leave");
    let (_, guest) = get(&node, "/v1/actors/Guest/guest").await;
    assert_eq!(guest["here"]["leaving"], Value::Null, "{guest}");
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_node_without_a_token_changes_nothing() {
    let node = node_with(&[("admin.token_file", "")]).await;
    for (path, body) in acts() {
        let answer = post(&node, path, Some(body)).await;
        assert_eq!(code(&answer), (403, "acts_are_off"), "{path}");
    }
    assert_eq!(get(&node, "/v1/node").await.0, StatusCode::OK, "reading goes on");
    node.stop().await.unwrap();
}

#[actix::test]
async fn guarded_reads_need_the_token_and_health_does_not() {
    let node = node_with(&[("admin.guard_reads", "true")]).await;
    for path in ["/v1/node", "/v1/events", "/v1/config", "/v1/openapi.json", "/v1/nothing"] {
        assert_eq!(code(&get(&node, path).await), (401, "wrong_token"), "{path}");
    }
    let known =
        TestRequest::get().uri("/v1/node").insert_header(("Authorization", format!("Bearer {TOKEN}")));
    assert_eq!(send(&node, known).await.0, StatusCode::OK);
    assert_eq!(get(&node, "/readyz").await.0, StatusCode::OK);
    node.stop().await.unwrap();
}

/// A shard that belongs to this one of two nodes.
async fn a_shard_of(node: &Node) -> Value {
    for number in 0..64 {
        node.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    let (_, page) = get(node, "/v1/shards?kind=Guest").await;
    let mine = page["items"].as_array().unwrap().iter().find(|shard| shard["node"] == node.id().to_string());
    mine.expect("it has some")["shard"].clone()
}

#[actix::test]
async fn a_shard_moves_to_the_node_that_is_named() {
    let (first, second) = two_nodes().await;
    let number = a_shard_of(&first).await;
    let to = second.id().to_string();
    let wanted = json!({ "kind": "Guest", "shard": number, "to": to });
    let (status, moved) = post(&first, "/v1/shards/move", Some(wanted)).await;
    assert_eq!((status, moved["outcome"]["moved"].as_bool()), (StatusCode::OK, Some(true)), "{moved}");
    let (_, page) = get(&first, &format!("/v1/shards?kind=Guest&from={number}&limit=1")).await;
    assert_eq!((&page["items"][0]["shard"], page["items"][0]["node"].as_str()), (&number, Some(to.as_str())));
    let nobody = json!({ "kind": "Guest", "shard": 0, "to": "00000000000000ff" });
    assert_eq!(code(&post(&first, "/v1/shards/move", Some(nobody)).await), (404, "unknown_node"));
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_is_asked_to_go_and_comes_back_new() {
    let node = node().await;
    let guest = node.actor::<Guest>("guest");
    assert_eq!((guest.send(Greet).await.unwrap(), guest.send(Greet).await.unwrap()), (1, 2));
    let path = "/v1/actors/Guest/guest/deactivate";
    assert_eq!(post(&node, path, None).await.0, StatusCode::ACCEPTED);
    for _ in 0..1_000 {
        if get(&node, "/v1/actors/Guest/guest").await.1["here"].is_null() {
            break;
        }
    }
    assert_eq!(code(&post(&node, path, None).await), (404, "not_active"));
    assert_eq!(guest.send(Greet).await.unwrap(), 1, "a new activation counts anew");
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_of_another_node_is_left_to_that_node() {
    let (first, second) = two_nodes().await;
    let mut elsewhere = None;
    for number in 0..64 {
        let key = format!("guest-{number}");
        first.actor::<Guest>(&key).send(Greet).await.unwrap();
        let (_, found) = get(&first, &format!("/v1/actors/Guest/{key}")).await;
        if found["owner"]["own"] == false {
            assert!(found["here"].is_null());
            elsewhere = Some(key);
        }
    }
    let key = elsewhere.expect("the second has some");
    let answer = post(&first, &format!("/v1/actors/Guest/{key}/deactivate"), None).await;
    assert_eq!(code(&answer), (409, "elsewhere"));
    assert!(answer.1["error"]["message"].as_str().unwrap().contains(&second.id().to_string()));
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn every_act_is_an_event_whatever_came_of_it() {
    let node = node().await;
    let mut events = node.events().subscribe();
    post(&node, "/v1/actors/Guest/nobody/deactivate", None).await;
    post(&node, "/v1/shards/move", Some(json!({ "kind": "Guest", "shard": 0, "to": "zz" }))).await;
    let mut acts = Vec::new();
    while let Some(notice) = events.try_next() {
        if let Notice::Event(Event::Operated { act, outcome, .. }) = notice {
            acts.push((act, outcome));
        }
    }
    let acts: Vec<_> =
        acts.iter().map(|(act, outcome)| (act.as_str(), outcome.split(':').next().unwrap())).collect();
    assert_eq!(acts, [("deactivate", "refused (not_active)"), ("move shard", "refused (invalid_request)")]);
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_act_goes_on_to_its_end_when_whoever_asked_is_gone() {
    let (first, second) = two_nodes().await;
    let number = a_shard_of(&first).await;
    let mut events = first.events().subscribe();
    let wanted = json!({ "kind": "Guest", "shard": number, "to": second.id().to_string() });
    let bearer = format!("Bearer {TOKEN}");
    let request = TestRequest::post().uri("/v1/shards/move").set_json(wanted);
    let request = request.insert_header(("Authorization", bearer)).to_request();
    let app = test::init_service(App::new().service(admin(&first))).await;
    let begun = poll_immediate(app.call(request)).await;
    assert!(begun.is_none(), "it cannot be done at once");
    let mut noted = || {
        std::iter::from_fn(|| events.try_next())
            .any(|notice| matches!(notice, Notice::Event(Event::Operated { act, .. }) if act == "move shard"))
    };
    for _ in 0..6_000 {
        if noted() {
            second.stop().await.unwrap();
            return first.stop().await.unwrap();
        }
        actix::clock::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the act was broken off");
}

#[actix::test]
async fn a_node_that_is_told_to_leave_hands_over_and_stops() {
    let (first, second) = two_nodes().await;
    for number in 0..64 {
        first.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    let run = actix::spawn({
        let first = first.clone();
        async move { first.run().await }
    });
    assert_eq!(post(&first, "/v1/node/leave", None).await.0, StatusCode::ACCEPTED);
    assert_eq!(run.await.unwrap(), Ok(()), "whoever runs it is told");
    assert_eq!(code(&post(&first, "/v1/node/leave", None).await), (409, "stopping_already"));
    let gone = first.id();
    eventually("it is no member", || second.members().iter().all(|member| member.info.id != gone)).await;
    for number in 0..64 {
        second.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    second.stop().await.unwrap();
}

#[actix::test]
async fn ranges_are_shown_divided_and_merged() {
    let node = node().await;
    let mut shown = Value::Null;
    for _ in 0..2_000 {
        shown = get(&node, "/v1/ranges?kind=Shelf").await.1;
        if shown["ranges"].as_array().is_some_and(|ranges| ranges.len() == 2) {
            break;
        }
        actix::clock::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(shown["ranges"][0]["node"], node.id().to_string(), "{shown}");
    let (_, document) = get(&node, "/v1/openapi.json").await;
    let fits = |path: &str, method: &str, answer: &Value| {
        let schema =
            &document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"];
        assert_eq!(faults(&document, schema, answer), Vec::<String>::new());
    };
    fits("/v1/ranges", "get", &shown);
    let (status, split) = post(&node, "/v1/ranges/split", Some(json!({ "kind": "Shelf", "at": "f" }))).await;
    assert_eq!(status, StatusCode::OK, "{split}");
    fits("/v1/ranges/split", "post", &split);
    let again = post(&node, "/v1/ranges/split", Some(json!({ "kind": "Shelf", "at": "f" }))).await;
    assert_eq!(code(&again), (409, "range_refused"), "{}", again.1);
    let nobody = json!({ "kind": "Shelf", "key": "f", "to": "00000000000000ff" });
    assert_eq!(code(&post(&node, "/v1/ranges/move", Some(nobody)).await), (404, "unknown_node"));
    node.stop().await.unwrap();
}
