//! The metrics for Prometheus, as running nodes show them. A program of its own, because the recorder is that of the process.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a web server"
)]

mod shown;
#[path = "../http/support.rs"]
#[allow(dead_code, reason = "the tests of the API use the rest")]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{App, test};
use archipelago::datacenter::ControlPlane;
use archipelago::embedded::{EmbeddedStore, control_plane};
use archipelago::prelude::*;
use archipelago::{METRICS, MetricKind};
use archipelago_admin::{admin, install_metrics};

use shown::{Shown, read};
use support::{Greet, Guest, Loner, Shelf, TOKEN, builder, code, eventually, get, node_with};

/// What two nodes of one datacenter and one of another have to show, by what they do in the test, without the prefix.
const CORE: [&str; 41] = [
    "activations_total",
    "activation_failures_total",
    "active_actors",
    "actors_over_bound",
    "admin_refused_total",
    "call_timeouts_total",
    "cancelled_calls_total",
    "connections",
    "datacenter_controller",
    "datacenter_searches_total",
    "datacenters",
    "datacenters_age_seconds",
    "dead_letters_total",
    "deactivations_total",
    "duplicate_activations_total",
    "handle_seconds",
    "ingress_entries",
    "lane_bytes",
    "lane_calls",
    "lane_waiting",
    "lanes",
    "late_replies_total",
    "members",
    "members_unreachable",
    "messages_total",
    "open_jobs",
    "parked_bytes",
    "parked_messages",
    "pending_calls",
    "placement_lookups_total",
    "placements_total",
    "range_manager",
    "ranges_served",
    "room_looks_total",
    "running_jobs",
    "session_remaining_seconds",
    "shard_coordinator",
    "shard_moves_total",
    "state_loads_total",
    "state_saves_total",
    "stuck_arbiters_total",
];

#[remote]
struct Note;

/// Keeps how much it has noted.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Note), persistent)]
struct Scribe {
    noted: u64,
}

impl Actor for Scribe {
    type Context = Context<Self>;
}

impl Persistent for Scribe {
    type State = u64;

    fn state(&self) -> Option<u64> {
        Some(self.noted)
    }

    fn restore(&mut self, noted: u64) {
        self.noted = noted;
    }
}

impl Handler<Note> for Scribe {
    type Result = ();

    fn handle(&mut self, _: Note, _: &mut Context<Self>) {
        self.noted += 1;
    }
}

/// Is registered nowhere.
#[derive(NamedActor)]
#[named_actor(handles(Note))]
struct Porter;

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Note> for Porter {
    type Result = ();

    fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
}

async fn node_of(datacenter: &str, store: &Arc<EmbeddedStore>, plane: &Arc<dyn ControlPlane>) -> Node {
    let keys = [("datacenter.name", datacenter), ("admin.metrics", "true"), ("datacenter.refresh", "1s")];
    let builder = builder(store, &keys).control_plane(Arc::clone(plane)).actor::<Scribe>();
    builder.start().await.unwrap()
}

/// What `/metrics` answers.
async fn scrape(node: &Node, request: test::TestRequest) -> (StatusCode, String, String) {
    let app = test::init_service(App::new().service(admin(node))).await;
    let response = test::call_service(&app, request.to_request()).await;
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
    let status = response.status();
    let body = test::read_body(response).await;
    (status, kind.unwrap_or_default(), String::from_utf8(body.to_vec()).unwrap())
}

fn metrics() -> test::TestRequest {
    test::TestRequest::get().uri("/metrics")
}

/// Whatever moves the metrics that are to be seen.
async fn work(first: &Node, second: &Node, west: &Node) {
    for number in 0..400 {
        first.actor::<Guest>(format!("guest-{}", number % 40)).send(Greet).await.unwrap();
    }
    let mut ordered = 0;
    for shard in 0..16 {
        // Those that are there already are not moved, and those that nobody has cannot be.
        ordered += usize::from(first.move_shard("Guest", shard, second.id()).await.is_ok());
    }
    assert!(ordered > 0, "some shards have an owner");
    for key in ["a", "z"] {
        first.actor::<Loner>(key).send(Greet).await.unwrap();
        first.actor::<Shelf>(key).send(Greet).await.unwrap();
        let scribe = first.actor::<Scribe>(key);
        scribe.send(Note).await.unwrap();
        let gone = scribe.watch().await.unwrap();
        scribe.deactivate().unwrap();
        gone.await; // and saved
    }
    first.named::<Porter>("/nobody").unwrap().tell(Note).unwrap();
    eventually("the letter is dead", || !first.dead_letters().is_empty()).await;
    eventually("the west knows both", || west.datacenters().entries.len() == 2).await;
    west.actor::<Guest>("guest-1").send(Greet).await.unwrap();
    assert_eq!(get(first, "/v1/nothing").await.0, StatusCode::NOT_FOUND);
}

/// Holds what is shown against what is described; answers the names without their prefix.
fn check(shown: &Shown) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (name, series) in &shown.0 {
        let Some(metric) = METRICS.iter().find(|metric| metric.name == name) else {
            panic!("{name} is not described");
        };
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        assert_eq!(series.kind, kind, "{name}");
        assert_eq!(series.help, metric.says, "{name}");
        let described: BTreeSet<String> = metric.labels.iter().map(|label| (*label).to_owned()).collect();
        for labels in series.values.keys() {
            let shown: BTreeSet<String> = labels.keys().cloned().collect();
            assert_eq!(shown, described, "{name} is shown with {labels:?}");
        }
        names.insert(name["archipelago_".len()..].to_owned());
    }
    names
}

#[actix::test]
async fn what_running_nodes_show_is_what_is_described() {
    let plane = control_plane(Arc::default(), Duration::from_secs(30));
    let (east, west) = (Arc::default(), Arc::default());
    let first = node_of("east", &east, &plane).await;
    let second = node_of("east", &east, &plane).await;
    let third = node_of("west", &west, &plane).await;
    eventually("both are members", || first.members().len() == 2).await;
    work(&first, &second, &third).await;
    let mut missing: Vec<&str> = CORE.to_vec();
    let mut last = String::new();
    for _ in 0..300 {
        let (status, kind, text) = scrape(&first, metrics()).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            actix::clock::sleep(Duration::from_millis(200)).await;
            continue;
        }
        assert_eq!((status, kind.as_str()), (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8"));
        let names = check(&read(&text));
        missing.retain(|name| !names.contains(*name));
        last = text;
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "never shown: {missing:?} in\n{last}");
    let shown = read(&last);
    let of_kind = |name: &str, kind: &str| shown.sum(name, ("kind", kind));
    assert!(of_kind("archipelago_messages_total", "Guest") >= 401.0, "{last}");
    assert!(of_kind("archipelago_handle_seconds", "Guest") >= 1.0, "some were measured");
    assert!(of_kind("archipelago_state_saves_total", "Scribe") >= 2.0, "{last}");
    for node in [third, second, first] {
        node.stop().await.unwrap();
    }
}

#[actix::test]
async fn looks_at_the_metrics_have_a_rate_of_their_own() {
    install_metrics().unwrap();
    let node = node_with(&[("admin.rate", "3"), ("admin.metrics", "true")]).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(get(&node, "/v1/node").await.0.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
    let mut shown = 0;
    for _ in 0..30 {
        let (status, _, text) = scrape(&node, metrics()).await;
        if status == StatusCode::OK {
            shown += 1;
        } else {
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{text}");
        }
    }
    assert!((10..30).contains(&shown), "{shown} of 30 at once");
    node.stop().await.unwrap();
}

#[actix::test]
async fn guarded_metrics_need_the_token() {
    let node = node_with(&[("admin.guard_reads", "true"), ("admin.metrics", "true")]).await;
    assert_eq!(scrape(&node, metrics()).await.0, StatusCode::UNAUTHORIZED);
    let request = metrics().insert_header(("Authorization", format!("Bearer {TOKEN}")));
    assert_eq!(scrape(&node, request).await.0, StatusCode::OK);
    let answer = get(&node, "/metrics").await;
    assert_eq!(code(&answer), (401, "wrong_token"));
    node.stop().await.unwrap();
}
