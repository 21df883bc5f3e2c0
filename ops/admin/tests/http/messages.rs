//! Which messages are busy and which are slow.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use archipelago::prelude::*;
use archipelago::{Millis, Sharding};
use serde_json::{Value, json};

use crate::support::{builder, code, get, two_nodes};

/// Is handled in a moment.
#[remote]
struct Quick;

/// Is handled slowly.
#[remote]
struct Slow;

/// Is never sent.
#[remote]
struct Unsent;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Unsent, Quick, Slow), interleave)]
struct Clerk;

impl Actor for Clerk {
    type Context = Context<Self>;
}

impl Handler<Quick> for Clerk {
    type Result = ();

    fn handle(&mut self, _: Quick, _: &mut Context<Self>) {}
}

impl Handler<Unsent> for Clerk {
    type Result = ();

    fn handle(&mut self, _: Unsent, _: &mut Context<Self>) {}
}

impl Handler<Slow> for Clerk {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Slow, _: &mut Context<Self>) -> ResponseFuture<()> {
        Box::pin(actix::clock::sleep(SLOWLY))
    }
}

const SLOWLY: Duration = Duration::from_millis(5);

async fn clerks() -> Node {
    builder(&Arc::default(), &[]).shard(Sharding::new(|_, _| Clerk)).start().await.unwrap()
}

/// The names in the answer to a request, with their part before the type left out.
fn names(answer: &Value) -> Vec<String> {
    let short = |message: &Value| message["message"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
    answer["messages"].as_array().unwrap().iter().map(short).collect()
}

fn of<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let messages = answer["messages"].as_array().unwrap();
    messages.iter().find(|message| message["message"].as_str().unwrap().ends_with(name)).unwrap()
}

#[actix::test]
async fn each_start_is_counted_and_some_are_measured() {
    let node = clerks().await;
    // Both arbiters get some, and of each so many that some are measured.
    for number in 0..4 {
        let clerk = node.actor::<Clerk>(format!("clerk-{number}"));
        for _ in 0..200 {
            clerk.send(Quick).await.unwrap();
        }
        futures_util::future::join_all((0..160).map(|_| clerk.send(Slow))).await;
    }
    let (status, answer) = get(&node, "/v1/messages").await;
    assert_eq!((status, &answer["silent"]), (StatusCode::OK, &json!([])));
    let (quick, slow, unsent) = (of(&answer, ".Quick"), of(&answer, ".Slow"), of(&answer, ".Unsent"));
    assert_eq!(
        (&quick["started"], &slow["started"], &unsent["started"]),
        (&json!(800), &json!(640), &json!(0))
    );
    assert_eq!(
        (&quick["kind"], &unsent["sampled"], &unsent["mean_seconds"]),
        (&json!("Clerk"), &json!(0), &json!(0.0))
    );
    let sampled = |message: &Value| message["sampled"].as_u64().unwrap();
    let measured = sampled(quick) + sampled(slow);
    assert!((18..=27).contains(&measured), "one in 64 of 1440, on two arbiters: {measured}");
    let bounds = answer["bounds_seconds"].as_array().unwrap();
    for message in [quick, slow, unsent] {
        let buckets = message["buckets"].as_array().unwrap();
        assert_eq!(buckets.len(), bounds.len() + 1);
        assert_eq!(buckets.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), sampled(message));
    }
    if sampled(slow) > 0 {
        assert!(slow["mean_seconds"].as_f64().unwrap() >= SLOWLY.as_secs_f64(), "{slow}");
        assert!(slow["slowest_seconds"].as_f64() >= slow["mean_seconds"].as_f64(), "{slow}");
    }
    let uptime = answer["uptime_seconds"].as_f64().unwrap();
    assert!(uptime > 0.0 && Millis((uptime * 1e3) as u64) <= node.uptime(), "{uptime}");
    assert!(bounds.is_sorted_by(|one, other| one.as_f64() < other.as_f64()), "{bounds:?}");
    node.stop().await.unwrap();
}

#[actix::test]
async fn they_come_in_the_order_that_was_asked_for_and_no_more_than_that() {
    let node = clerks().await;
    let clerk = node.actor::<Clerk>("clerk");
    let mut slowest = Vec::new();
    // One of 64 is measured, and it is not known which.
    for _ in 0..200 {
        futures_util::future::join_all((0..32).map(|_| clerk.send(Slow))).await;
        for _ in 0..64 {
            clerk.send(Quick).await.unwrap();
        }
        let (_, answer) = get(&node, "/v1/messages?by=slowest&limit=2").await;
        slowest = names(&answer);
        if answer["messages"].as_array().unwrap().iter().all(|message| message["sampled"] != 0) {
            break;
        }
    }
    assert_eq!(slowest, ["Slow", "Quick"]);
    assert_eq!(names(&get(&node, "/v1/messages?by=busiest&limit=2").await.1), ["Quick", "Slow"]);
    assert_eq!(
        names(&get(&node, "/v1/messages?limit=1").await.1),
        ["Quick"],
        "the busiest, if nothing is said"
    );
    let by_name = names(&get(&node, "/v1/messages?by=name").await.1);
    assert_eq!(by_name[..3], ["Quick", "Slow", "Unsent"]);
    for wrong in ["by=loudest", "limit=0", "limit=1001", "limit=many", "kind=Clerk"] {
        let refused = get(&node, &format!("/v1/messages?{wrong}")).await;
        assert_eq!(code(&refused), (400, "invalid_request"), "{wrong}");
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn one_node_tells_of_the_messages_of_all() {
    let (first, second) = two_nodes().await;
    for number in 0..32 {
        let guest = first.actor::<crate::support::Guest>(format!("guest-{number}"));
        guest.send(crate::support::Greet).await.unwrap();
    }
    let (_, cluster) = get(&first, "/v1/cluster/messages?by=busiest&limit=1").await;
    let answers = cluster["answers"].as_array().unwrap();
    let started = answers.iter().map(|answer| answer["answer"]["messages"][0]["started"].as_u64().unwrap());
    assert_eq!((answers.len(), started.sum::<u64>()), (2, 32), "each was handled once: {cluster}");
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}
