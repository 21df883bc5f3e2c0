//! One node answers for all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::test::TestRequest;
use archipelago::Millis;
use archipelago::embedded::EmbeddedStore;
use archipelago_directory::{Sleep, Timer};
use archipelago_protocol::contract::Directory;
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::session::Session;
use serde_json::{Value, json};

use crate::schema::faults;
use crate::support::{Greet, Guest, TOKEN, builder, code, eventually, get, send, two_nodes};

/// What can be asked of the cluster, by the path of the same read on one node.
const READS: [&str; 12] = [
    "node",
    "session",
    "members",
    "kinds",
    "actors",
    "moves",
    "datacenters",
    "peers",
    "lanes",
    "dead-letters",
    "messages",
    "config",
];

fn nodes_in(answers: &Value) -> Vec<&str> {
    let mut nodes: Vec<_> =
        answers.as_array().unwrap().iter().map(|answer| answer["node"].as_str().unwrap()).collect();
    nodes.sort_unstable();
    nodes
}

#[actix::test]
async fn one_node_answers_for_all() {
    let (first, second) = two_nodes().await;
    for number in 0..64 {
        first.actor::<Guest>(format!("guest-{number}")).send(Greet).await.unwrap();
    }
    let (_, document) = get(&first, "/v1/openapi.json").await;
    let mut both = [first.id().to_string(), second.id().to_string()];
    both.sort_unstable();
    for read in READS {
        let (status, cluster) = get(&first, &format!("/v1/cluster/{read}")).await;
        assert_eq!(
            (status, nodes_in(&cluster["answers"])),
            (StatusCode::OK, both.each_ref().map(String::as_str).to_vec()),
            "{cluster}"
        );
        let schema = &document["paths"]["/v1/cluster/{what}"]["get"]["responses"]["200"]["content"]["application/json"]
            ["schema"];
        assert_eq!(faults(&document, schema, &cluster), Vec::<String>::new());
        let schema = &document["paths"][format!("/v1/{read}")]["get"]["responses"]["200"]["content"]["application/json"]
            ["schema"];
        for answer in cluster["answers"].as_array().unwrap() {
            assert_eq!(faults(&document, schema, &answer["answer"]), Vec::<String>::new(), "{read}");
        }
    }
    let (_, cluster) = get(&first, "/v1/cluster/actors?kind=Guest&limit=1000").await;
    let shown = cluster["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["answer"]["actors"].as_array().unwrap().len());
    let shown: Vec<usize> = shown.collect();
    assert_eq!(shown.iter().sum::<usize>(), 64, "each lives on one of the two");
    assert!(shown.iter().all(|count| *count > 0), "{shown:?}");
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn what_makes_no_sense_is_refused_by_each_and_said() {
    let (first, second) = two_nodes().await;
    let (_, cluster) = get(&first, "/v1/cluster/actors?kind=Nobody").await;
    let codes: Vec<_> =
        cluster["refused"].as_array().unwrap().iter().map(|one| one["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!("unknown_kind"), json!("unknown_kind")]);
    let (_, cluster) = get(&first, "/v1/cluster/actors?limit=nonsense").await;
    assert_eq!(cluster["refused"].as_array().unwrap().len(), 2, "{cluster}");
    for path in ["/v1/cluster/events", "/v1/cluster/nothing", "/v1/cluster/openapi.json", "/v1/cluster/a/b"] {
        assert_eq!(code(&get(&first, path).await), (404, "no_such_path"), "{path}");
    }
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

/// The clock of the machine, for a directory of the test's own.
struct Clock;

impl Timer for Clock {
    fn now(&self) -> Millis {
        Millis::ZERO
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(actix::clock::sleep(length.to_duration()))
    }
}

/// Puts a member up at an address where nobody listens.
async fn announce_nobody(store: &Arc<EmbeddedStore>) -> NodeId {
    let directory = archipelago_embedded::directory(Arc::clone(store), Arc::new(Clock));
    let (id, address) = (NodeId::new(0xdead), "127.0.0.1:1".parse().unwrap());
    directory.open_session(Session { id, ttl: Millis(60_000) }, 1).await.unwrap();
    let nobody = NodeInfo {
        id,
        address,
        name: "nobody".to_owned(),
        roles: BTreeSet::new(),
        version: "1".to_owned(),
        kinds: BTreeSet::new(),
    };
    directory.announce(&nobody).await.unwrap();
    id
}

#[actix::test]
async fn who_does_not_answer_is_named() {
    let store = Arc::default();
    let node = builder(&store, &[]).start().await.unwrap();
    let nobody = announce_nobody(&store).await;
    eventually("it is announced", || node.members().len() == 2).await;
    let (status, cluster) = get(&node, "/v1/cluster/node").await;
    assert_eq!(
        (status, nodes_in(&cluster["answers"])),
        (StatusCode::OK, vec![node.id().to_string().as_str()])
    );
    assert_eq!(nodes_in(&cluster["silent"]), [nobody.to_string()]);
    assert!(cluster["silent"][0]["reason"].as_str().unwrap().starts_with("not sent"), "{cluster}");
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_member_that_guards_what_it_shows_shows_it_nobody_through_another() {
    let store = Arc::default();
    let open = builder(&store, &[]).start().await.unwrap();
    let guarded = builder(&store, &[("admin.guard_reads", "true")]).start().await.unwrap();
    eventually("both take part", || open.members().len() == 2 && guarded.members().len() == 2).await;
    let (status, cluster) = get(&open, "/v1/cluster/config").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(nodes_in(&cluster["refused"]), [guarded.id().to_string()], "{cluster}");
    assert_eq!(cluster["refused"][0]["error"]["code"], json!("wrong_token"));
    let proven = TestRequest::get()
        .uri("/v1/cluster/config")
        .insert_header(("Authorization", format!("bearer {TOKEN}")));
    let (_, cluster) = send(&open, proven).await;
    assert_eq!(nodes_in(&cluster["answers"]).len(), 2, "{cluster}");
    guarded.stop().await.unwrap();
    open.stop().await.unwrap();
}

#[actix::test]
async fn a_member_is_not_asked_more_often_than_its_own_rate_allows() {
    let store = Arc::default();
    let asking = builder(&store, &[]).start().await.unwrap();
    let asked = builder(&store, &[("admin.rate", "5")]).start().await.unwrap();
    eventually("both take part", || asking.members().len() == 2 && asked.members().len() == 2).await;
    let mut refused = 0;
    for _ in 0..40 {
        let (_, cluster) = get(&asking, "/v1/cluster/session").await;
        refused += cluster["refused"].as_array().unwrap().len();
    }
    assert!((1..=35).contains(&refused), "{refused}");
    asked.stop().await.unwrap();
    asking.stop().await.unwrap();
}
