//! Many actors, a page at a time.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use archipelago::prelude::*;
use serde_json::Value;

use crate::support::{Greet, Guest, get, node};

async fn guests(node: &Node, count: usize) {
    let asked = (0..count).map(|number| node.actor::<Guest>(format!("guest-{number:05}")).send(Greet));
    for answered in futures_util::future::join_all(asked).await {
        answered.unwrap();
    }
}

/// Follows a listing to its end.
async fn all_pages(node: &Node, query: &str) -> Vec<Value> {
    pages_from(node, query, String::new()).await
}

async fn pages_from(node: &Node, query: &str, mut cursor: String) -> Vec<Value> {
    let mut actors = Vec::new();
    loop {
        let (status, mut page) = get(node, &format!("/v1/actors?{query}{cursor}")).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(page["actors"].as_array().unwrap().len() <= 97);
        actors.append(page["actors"].as_array_mut().unwrap());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return actors,
        }
    }
}

fn keys(actors: &[Value]) -> BTreeSet<&str> {
    actors.iter().map(|actor| actor["key"].as_str().unwrap()).collect()
}

#[actix::test]
async fn pages_show_every_actor_once() {
    let node = node().await;
    guests(&node, 5_000).await;
    let actors = all_pages(&node, "limit=97").await;
    assert_eq!((actors.len(), keys(&actors).len()), (5_000, 5_000));
    let one = &actors[0];
    assert_eq!((one["kind"].as_str(), one["state"].as_str()), (Some("Guest"), Some("valid")));
    assert_ne!(one["generation"], "0", "its shard is owned");
    assert_eq!(get(&node, "/v1/kinds").await.1["kinds"][0]["active"], 5_000);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_search_shows_those_that_begin_so() {
    let node = node().await;
    guests(&node, 3_000).await;
    let found = all_pages(&node, "limit=97&prefix=guest-0001").await;
    let expected: Vec<String> = (10..20).map(|number| format!("guest-{number:05}")).collect();
    assert_eq!(keys(&found), expected.iter().map(String::as_str).collect());
    assert!(all_pages(&node, "limit=97&prefix=nobody").await.is_empty());
    assert!(all_pages(&node, "limit=97&kind=Guest&prefix=guest-029").await.len() == 100);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_listing_that_is_followed_while_actors_go_misses_none_that_stays() {
    let node = node().await;
    guests(&node, 600).await;
    let (_, first) = get(&node, "/v1/actors?limit=50").await;
    let shown: Vec<String> = first["actors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|actor| actor["key"].as_str().unwrap().to_owned())
        .collect();
    for key in &shown {
        node.actor::<Guest>(key).deactivate().unwrap();
    }
    let rest = pages_from(&node, "limit=97", format!("&cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!(rest.len(), 550, "the page that went before is not missed");
    assert!(keys(&rest).iter().all(|key| !shown.iter().any(|gone| gone == key)));
    node.stop().await.unwrap();
}
