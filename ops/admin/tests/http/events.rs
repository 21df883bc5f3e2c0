//! The events, as a browser gets them.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::http::StatusCode;
use actix_web::{App, test};
use archipelago::prelude::*;
use archipelago_admin::admin;

use crate::support::{TOKEN, code, get, node, node_with};

/// The body of one who follows the events.
struct Follower(Pin<Box<BoxBody>>);

impl Follower {
    async fn of(node: &Node) -> Self {
        let app = test::init_service(App::new().service(admin(node))).await;
        let response =
            test::call_service(&app, test::TestRequest::get().uri("/v1/events").to_request()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
        let mut follower = Self(Box::pin(response.map_into_boxed_body().into_body()));
        assert_eq!(follower.next().await, ": events follow\n\n");
        follower
    }

    async fn next(&mut self) -> String {
        let part = poll_fn(|cx| self.0.as_mut().poll_next(cx));
        let part = actix::clock::timeout(Duration::from_secs(10), part).await.expect("something comes");
        String::from_utf8(part.expect("it goes on").unwrap().to_vec()).unwrap()
    }
}

#[actix::test]
async fn whoever_follows_gets_the_events_in_order() {
    let node = node().await;
    let mut follower = Follower::of(&node).await;
    for number in 1..=3 {
        node.note_operated("try", "line\nbreak \u{2028} </script>", &number.to_string());
    }
    for number in 1..=3 {
        let lines = follower.next().await;
        let mut lines = lines.split_terminator('\n');
        assert_eq!(lines.next(), Some(format!("id: {number}").as_str()));
        assert_eq!(lines.next(), Some("event: operated"));
        let data = lines.next().unwrap().strip_prefix("data: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["subject"], "line\nbreak \u{2028} </script>");
        assert_eq!(data["outcome"], number.to_string());
        assert_eq!((lines.next(), lines.next()), (Some(""), None), "one line, whatever is in it");
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_slow_reader_is_told_how_much_it_has_lost() {
    let node = node_with(&[("events.subscriber_queue", "8")]).await;
    let mut follower = Follower::of(&node).await;
    for number in 0..100 {
        node.note_operated("try", "", &number.to_string());
    }
    let lines = follower.next().await;
    assert!(lines.contains("event: missed\ndata: {\"count\":92,\"type\":\"missed\"}"), "{lines}");
    assert!(follower.next().await.contains("\"outcome\":\"92\""), "the newest are there");
    node.stop().await.unwrap();
}

#[actix::test]
async fn so_many_follow_and_no_more() {
    let node = node_with(&[("admin.event_streams", "2")]).await;
    let first = Follower::of(&node).await;
    let _second = Follower::of(&node).await;
    assert_eq!(code(&get(&node, "/v1/events").await), (429, "too_many_streams"));
    drop(first);
    let _third = Follower::of(&node).await;
    node.stop().await.unwrap();
}

/// Nobody can take all of them away from those who look after the node.
#[actix::test]
async fn a_quarter_of_the_places_is_for_those_who_show_the_token() {
    let node = node_with(&[("admin.event_streams", "4")]).await;
    let mut followers = Vec::new();
    for _ in 0..3 {
        followers.push(Follower::of(&node).await);
    }
    assert_eq!(code(&get(&node, "/v1/events").await), (429, "too_many_streams"));
    let app = test::init_service(App::new().service(admin(&node))).await;
    let shown = ("Authorization", format!("Bearer {TOKEN}"));
    let request = test::TestRequest::get().uri("/v1/events").insert_header(shown);
    assert_eq!(test::call_service(&app, request.to_request()).await.status(), StatusCode::OK);
    node.stop().await.unwrap();
}

#[actix::test]
async fn the_events_end_with_the_node() {
    let node = node().await;
    let mut follower = Follower::of(&node).await;
    node.stop().await.unwrap();
    let mut last = String::new();
    while let Some(part) = poll_fn(|cx| follower.0.as_mut().poll_next(cx)).await {
        last = String::from_utf8(part.unwrap().to_vec()).unwrap();
    }
    assert!(last.contains("event: "), "what happened until then is told: {last}");
}
