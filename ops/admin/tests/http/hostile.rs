//! Requests that should not be: each is refused with a word, and none does harm.

use crate::support::{Greet, Guest, TOKEN, code, get, node, node_with, send};
use actix_web::http::StatusCode;
use actix_web::test::TestRequest;

fn post(path: &str) -> TestRequest {
    let request = TestRequest::post().uri(path);
    request
        .insert_header(("Authorization", format!("Bearer {TOKEN}")))
        .insert_header(("Content-Type", "application/json"))
}

#[actix::test]
async fn hostile_ids_and_paths_are_refused_with_a_word() {
    let node = node().await;
    let long = "k".repeat(4_000);
    let long = format!("/v1/actors/Guest/{long}");
    let refused = [
        ("/v1/actors/Nobody/key", 404, "unknown_kind"),
        ("/v1/actors/%00/key", 404, "unknown_kind"),
        ("/v1/actors/Guest/a%0Ab", 400, "invalid_id"),
        ("/v1/actors/Guest/%00", 400, "invalid_id"),
        (long.as_str(), 400, "invalid_id"),
        ("/v1/actors/Guest/a/b/c", 404, "no_such_path"),
        ("/v1/../livez", 404, "no_such_path"),
        ("/v1/", 404, "no_such_path"),
        ("/v1/nothing", 404, "no_such_path"),
        ("/v1/actors?cursor=nonsense", 400, "bad_cursor"),
        ("/v1/actors?cursor=0.0.0.zz.a", 400, "bad_cursor"),
        ("/v1/actors?limit=0", 400, "invalid_request"),
        ("/v1/actors?limit=1001", 400, "invalid_request"),
        ("/v1/actors?limit=-1", 400, "invalid_request"),
        ("/v1/actors?limit=99999999999999999999", 400, "invalid_request"),
        ("/v1/actors?unknown=1", 400, "invalid_request"),
        ("/v1/actors?kind=Nobody", 404, "unknown_kind"),
        ("/v1/shards", 400, "invalid_request"),
        ("/v1/shards?kind=Nobody", 404, "no_shards"),
        ("/v1/shards?kind=Guest&limit=0", 400, "invalid_request"),
        ("/v1/ranges?kind=Guest", 404, "no_ranges"),
    ];
    for (path, status, word) in refused {
        let answer = get(&node, path).await;
        assert_eq!(code(&answer), (status, word), "{}: {}", &path[..path.len().min(60)], answer.1);
    }
    // What looks like a path is a key like any other.
    let (status, found) = get(&node, "/v1/actors/Guest/..%2F..%2Fetc").await;
    assert_eq!((status, found["actor"].as_str()), (StatusCode::OK, Some("default::Guest/..%2F..%2Fetc")));
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_cursor_from_elsewhere_does_no_harm() {
    let node = node().await;
    node.actor::<Guest>("guest").send(Greet).await.unwrap();
    for cursor in ["65535.0.0", "0.4294967295.4294967295", "0.0.4294967295", "1.0.15.ffffffffffffffff.zz"] {
        let (status, page) = get(&node, &format!("/v1/actors?cursor={cursor}")).await;
        assert_eq!((status, page["next"].is_null()), (StatusCode::OK, true), "{cursor}: {page}");
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn bodies_that_are_too_large_or_no_wishes_are_refused() {
    let node = node().await;
    let large = format!(r#"{{"kind":"{}","shard":0,"to":"a"}}"#, "k".repeat(20 << 10));
    let refused = [
        (large.as_str(), 413, "too_large"),
        ("", 400, "invalid_request"),
        ("{", 400, "invalid_request"),
        ("[]", 400, "invalid_request"),
        (r#"{"kind":"Guest","shard":-1,"to":"0000000000000001"}"#, 400, "invalid_request"),
        (r#"{"kind":"Guest","shard":4294967296,"to":"0000000000000001"}"#, 400, "invalid_request"),
        (r#"{"kind":"Guest","shard":0,"to":"0000000000000001","more":1}"#, 400, "invalid_request"),
        (r#"{"kind":"Guest","shard":0}"#, 400, "invalid_request"),
        (r#"{"kind":"Guest","shard":0,"to":"not a node"}"#, 400, "invalid_request"),
    ];
    for (body, status, word) in refused {
        let answer = send(&node, post("/v1/shards/move").set_payload(body.to_owned())).await;
        assert_eq!(code(&answer), (status, word), "{}: {}", &body[..body.len().min(60)], answer.1);
    }
    let deep = "[".repeat(10_000);
    let answer = send(&node, post("/v1/shards/move").set_payload(deep)).await;
    assert_eq!(code(&answer), (400, "invalid_request"));
    let large = post("/v1/node/leave").set_payload("x").insert_header(("Content-Length", "999999999"));
    assert_eq!(code(&send(&node, large).await), (413, "too_large"));
    assert!(node.session().is_ready());
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_path_takes_the_methods_that_it_has() {
    let node = node().await;
    for (request, path) in [
        (TestRequest::delete(), "/v1/node"),
        (TestRequest::put(), "/v1/actors/Guest/a"),
        (TestRequest::post(), "/v1/members"),
    ] {
        let request = request.uri(path).insert_header(("Authorization", format!("Bearer {TOKEN}")));
        assert_eq!(code(&send(&node, request).await), (405, "wrong_method"), "{path}");
    }
    assert_eq!(
        code(&get(&node, "/v1/node/leave").await),
        (405, "wrong_method"),
        "a link must not stop a node"
    );
    node.stop().await.unwrap();
}

#[actix::test]
async fn above_the_rate_requests_are_told_to_wait() {
    let node = node_with(&[("admin.rate", "5")]).await;
    let mut answers = Vec::new();
    for _ in 0..40 {
        answers.push(get(&node, "/v1/session").await);
    }
    let granted = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
    assert!((5..40).contains(&granted), "{granted}");
    let refused = answers.iter().find(|(status, _)| *status != StatusCode::OK).unwrap();
    assert_eq!(code(refused), (429, "too_many_requests"));
    assert_eq!(
        get(&node, "/readyz").await.0,
        StatusCode::OK,
        "whoever watches over the process is not held up"
    );
    node.stop().await.unwrap();
}

#[actix::test]
async fn whoever_knows_the_token_is_not_locked_out_by_those_who_do_not() {
    let node = node_with(&[("admin.rate", "5")]).await;
    for _ in 0..50 {
        get(&node, "/v1/session").await;
    }
    assert_eq!(code(&get(&node, "/v1/session").await), (429, "too_many_requests"));
    let answer = send(&node, post("/v1/actors/Guest/guest/deactivate")).await;
    assert_eq!(code(&answer), (404, "not_active"), "{}", answer.1);
    node.stop().await.unwrap();
}

#[actix::test]
async fn what_costs_more_uses_the_rate_up_faster() {
    let node = node_with(&[("admin.rate", "16")]).await;
    let mut granted = 0;
    for _ in 0..16 {
        granted += usize::from(get(&node, "/v1/shards?kind=Guest").await.0 == StatusCode::OK);
    }
    assert!((2..16).contains(&granted), "{granted}");
    node.stop().await.unwrap();
}
