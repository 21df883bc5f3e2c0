//! The web application of the examples, over real HTTP.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the server under test runs on the test's own arbiter, and its port is knocked at"
)]

#[allow(dead_code, reason = "the example's own main is not called")]
#[path = "../examples/webapp.rs"]
mod webapp;

use std::net::SocketAddr;

use actix_web::web;

/// A request from a thread of its own, so that the server's threads are free to answer it.
async fn request(
    at: SocketAddr,
    method: &'static str,
    path: &'static str,
    body: &'static str,
) -> (String, String) {
    let asked = web::block(move || webapp::request(at, method, path, body)).await;
    asked.expect("the client runs").expect("the server answers")
}

const OK: &str = "HTTP/1.1 200 OK";

#[actix::test]
async fn workers_of_a_web_server_share_the_actors_of_a_node() {
    let node = webapp::start_node().await.unwrap();
    let (server, at) = webapp::start_server(&node, "127.0.0.1:0").unwrap();
    let (handle, server) = (server.handle(), actix::spawn(server));
    let puts = (0..40).map(|_| request(at, "POST", "/carts/alice", r#"{"item":"tea","count":1}"#));
    let mut counts = Vec::new();
    for (status, body) in futures_util::future::join_all(puts).await {
        assert_eq!(status, OK);
        let cart: std::collections::BTreeMap<String, u32> = serde_json::from_str(&body).unwrap();
        counts.push(cart["tea"]);
    }
    counts.sort_unstable();
    assert_eq!(counts, (1..=40).collect::<Vec<_>>(), "each request saw the cart after its own change");
    assert_eq!(request(at, "GET", "/carts/alice", "").await, (OK.to_owned(), r#"{"tea":40}"#.to_owned()));
    assert_eq!(request(at, "GET", "/carts/bob", "").await, (OK.to_owned(), "{}".to_owned()));
    handle.stop(true).await;
    server.await.unwrap().unwrap();
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_failed_call_has_a_status_that_says_whether_to_try_again() {
    let node = webapp::start_node().await.unwrap();
    let (server, at) = webapp::start_server(&node, "127.0.0.1:0").unwrap();
    let (handle, server) = (server.handle(), actix::spawn(server));
    let (status, body) = request(at, "GET", "/carts/a%0Ab", "").await;
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    assert!(body.starts_with("invalid actor id"), "{body}");
    node.stop().await.unwrap();
    let (status, body) = request(at, "GET", "/carts/alice", "").await;
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(body, "the node does not serve: it has stopped");
    handle.stop(true).await;
    server.await.unwrap().unwrap();
}

#[actix::test]
async fn the_end_of_the_node_closes_the_door() {
    let node = webapp::start_node().await.unwrap();
    let (server, at) = webapp::start_server(&node, "127.0.0.1:0").unwrap();
    let stopped_by = node.clone();
    let client = actix::spawn(async move {
        let answer = request(at, "GET", "/carts/alice", "").await;
        stopped_by.begin_stop().unwrap();
        answer
    });
    webapp::serve(server, &node).await.unwrap();
    assert_eq!(client.await.unwrap().0, OK);
    assert_eq!(node.stop().await, Err(archipelago::StopError::Twice));
    assert!(std::net::TcpStream::connect(at).is_err(), "nobody listens any more");
}
