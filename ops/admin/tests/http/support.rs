//! Nodes and requests.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::http::StatusCode;
use actix_web::{App, test};
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::ActorKey;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, KindLayout, ShardCount, Sharding};
use archipelago_admin::admin;
use serde_json::Value;

pub(crate) const TOKEN: &str = "a-token-for-the-tests";

/// Greets, and counts how often.
#[remote(u32)]
pub(crate) struct Greet;

/// Its name on the wire.
pub(crate) const GREET: &str = "archipelago-admin.Greet";

/// Greets somebody by name, after a while.
#[remote(String, codec = "json")]
pub(crate) struct Welcome {
    pub(crate) name: String,
    pub(crate) times: u8,
    pub(crate) after_ms: u64,
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet, Welcome))]
pub(crate) struct Guest {
    greeted: u32,
}

impl Actor for Guest {
    type Context = Context<Self>;
}

impl Handler<Greet> for Guest {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        self.greeted += 1;
        self.greeted
    }
}

impl Handler<Welcome> for Guest {
    type Result = ResponseFuture<String>;

    fn handle(&mut self, Welcome { name, times, after_ms }: Welcome, _: &mut Context<Self>) -> Self::Result {
        let words = vec![name; times.into()].join(" ");
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(after_ms)).await;
            words
        })
    }
}

/// Has a record of its own wherever it is.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet))]
pub(crate) struct Loner;

impl Actor for Loner {
    type Context = Context<Self>;
}

impl Handler<Greet> for Loner {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        1
    }
}

/// Its kind is divided by ranges of keys.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet))]
pub(crate) struct Shelf;

impl Actor for Shelf {
    type Context = Context<Self>;
}

impl Handler<Greet> for Shelf {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        1
    }
}

/// One of several nodes of this process, which reads no files.
pub(crate) fn builder(store: &Arc<EmbeddedStore>, keys: &[(&str, &str)]) -> Builder {
    let mut loader = archipelago::config::Loader::new()
        .directory(env!("CARGO_TARGET_TMPDIR"))
        .environment(std::iter::empty::<(String, String)>())
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "2")
        .set("admin.token_file", token_file())
        .set("admin.rate", "4294967295");
    for (key, value) in keys {
        loader = loader.set(*key, value);
    }
    let shards = Sharding::new(|_, _| Guest::default()).shards(ShardCount::new(16).unwrap());
    let settings = loader.load().expect("the test's settings are valid");
    Node::builder()
        .settings(settings)
        .embedded_store(Arc::clone(store))
        .shard(shards)
        .shard(Sharding::new(|_, _| Loner).divided(KindLayout::Actor))
        .shard(Sharding::new(|_, _| Shelf).ranges([ActorKey::new("m").unwrap()]))
}

/// A node of its own whose API has a token and answers as many requests as are asked.
pub(crate) async fn node() -> Node {
    node_with(&[]).await
}

/// The same with some keys set.
pub(crate) async fn node_with(keys: &[(&str, &str)]) -> Node {
    builder(&Arc::default(), keys).start().await.unwrap()
}

/// Two nodes that see each other; the API is that of the first.
pub(crate) async fn two_nodes() -> (Node, Node) {
    let store = Arc::default();
    let first = builder(&store, &[]).start().await.unwrap();
    let second = builder(&store, &[]).start().await.unwrap();
    eventually("both take part", || {
        first.members().iter().filter(|member| member.status == MemberStatus::Up).count() == 2
    })
    .await;
    (first, second)
}

/// The file that holds the token of the tests.
fn token_file() -> String {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("admin-token");
    // Other tests may be reading it.
    let new = folder.join(format!("admin-token-{}", std::process::id()));
    std::fs::write(&new, format!("{TOKEN}\n")).unwrap();
    std::fs::rename(new, &path).unwrap();
    path.display().to_string()
}

/// Waits until `condition` holds; panics after thirty seconds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if condition() {
            return;
        }
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}

/// Sends a request to the API of a node, in the process.
pub(crate) async fn send(node: &Node, request: test::TestRequest) -> (StatusCode, Value) {
    let app = test::init_service(App::new().service(admin(node))).await;
    let response = match test::try_call_service(&app, request.to_request()).await {
        Ok(response) => response.into_parts().1,
        Err(error) => error.error_response(),
    };
    let status = response.status();
    let Ok(body) = to_bytes(response.into_body()).await else { panic!("no body") };
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

pub(crate) async fn get(node: &Node, path: &str) -> (StatusCode, Value) {
    send(node, test::TestRequest::get().uri(path)).await
}

pub(crate) async fn post(node: &Node, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let request =
        test::TestRequest::post().uri(path).insert_header(("Authorization", format!("Bearer {TOKEN}")));
    let request = match body {
        Some(body) => request.set_json(body),
        None => request,
    };
    send(node, request).await
}

/// The word for programs of a refusal.
pub(crate) fn code(answer: &(StatusCode, Value)) -> (u16, &str) {
    (answer.0.as_u16(), answer.1["error"]["code"].as_str().unwrap_or("none"))
}

/// Posts a body that need not be JSON.
pub(crate) async fn send_as_is(node: &Node, path: &str, body: String) -> (StatusCode, Value) {
    let request = test::TestRequest::post().uri(path).set_payload(body);
    let request = request.insert_header(("Authorization", format!("Bearer {TOKEN}")));
    send(node, request.insert_header(("Content-Type", "application/json"))).await
}
