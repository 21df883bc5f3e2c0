//! What the command changes.

use std::time::Duration;

use crate::support::{
    GREET, Greet, Guest, WELCOME, eventually, greet_all, one, run, see_each_other, served, two,
};

#[actix::test]
async fn an_actor_is_called_by_the_name_of_its_message_whatever_its_codec() {
    let (first, second) = two(&[]).await;
    for number in 0..16 {
        let id = format!("Guest/guest-{number}");
        let reply = run(&first, &["call", &id, GREET]).await;
        assert_eq!((reply.code, reply.out.as_str(), reply.err.as_str()), (0, "1\n", ""), "{id}");
    }
    let wish = r#"{"name":"A\u001b[2Jda","after_ms":0}"#;
    let reply = run(&first, &["call", "Guest/guest-1", WELCOME, wish]).await;
    assert_eq!((reply.code, reply.out.as_str()), (0, "\"A\\u001b[2Jda\"\n"), "{reply:?}");
    let slow =
        run(&first, &["call", "Guest/slow", WELCOME, r#"{"name":"","after_ms":1500}"#, "--deadline", "50"])
            .await;
    assert_eq!((slow.code, slow.err.contains("timeout")), (1, true), "{slow:?}");
    for (message, body, word) in [
        ("nothing", "null", "unknown_message"),
        (WELCOME, r#"{"name":1}"#, "bad_message"),
        (GREET, "7", "bad_message"),
    ] {
        let refused = run(&first, &["call", "Guest/guest-1", message, body]).await;
        assert_eq!((refused.code, refused.err.contains(word)), (1, true), "{refused:?}");
    }
    let unknown = run(&first, &["call", "Nobody/a", GREET]).await;
    assert!(unknown.code == 1 && unknown.err.contains("unknown_kind"), "{unknown:?}");
    second.node.stop().await.unwrap();
    first.node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_goes_when_it_is_told_to() {
    let served = one().await;
    let guest = served.node.actor::<Guest>("guest/1");
    assert_eq!((guest.send(Greet).await.unwrap(), guest.send(Greet).await.unwrap()), (1, 2));
    let asked = run(&served, &["deactivate", "Guest/guest/1"]).await;
    assert_eq!((asked.code, asked.err.as_str()), (0, ""), "{asked:?}");
    // The order is served before the message that follows it.
    assert_eq!(guest.send(Greet).await.unwrap(), 1);
    let nobody = run(&served, &["deactivate", "Guest/nobody"]).await;
    assert_eq!((nobody.code, nobody.err.contains("not_active")), (1, true), "{nobody:?}");
    served.node.stop().await.unwrap();
}

#[actix::test]
async fn a_shard_goes_to_the_node_that_is_named_and_ranges_are_changed() {
    let (first, second) = two(&[("sharding.rebalance", "false")]).await;
    greet_all(&first).await;
    let own = run(&first, &["shards", "--kind", "Guest", "--json"]).await.json();
    let north = first.node.id().to_string();
    let shard = own["items"].as_array().unwrap().iter().find(|one| one["node"] == north).unwrap()["shard"]
        .to_string();
    let moved = run(&first, &["move-shard", "Guest", &shard, "south"]).await;
    assert_eq!(moved.code, 0, "{moved:?}");
    assert!(moved.out.contains(&second.node.id().to_string()), "{moved:?}");
    let again = run(&first, &["move-shard", "Guest", &shard, &second.node.id().to_string(), "--json"]).await;
    assert_eq!((again.code, &again.json()["outcome"]["moved"]), (1, &serde_json::json!(false)), "{again:?}");
    let nobody = run(&first, &["move-shard", "Guest", "0", "west"]).await;
    assert_eq!((nobody.code, nobody.err.contains("west")), (1, true), "{nobody:?}");
    eventually("the ranges are there", || first.node.ranges("Shelf").is_some()).await;
    let split = run(&first, &["split", "Shelf", "f"]).await;
    assert_eq!(split.code, 0, "{split:?}");
    let refused = run(&first, &["merge", "Guest", "a"]).await;
    assert_eq!((refused.code, refused.err.contains("no_ranges")), (1, true), "{refused:?}");
    second.node.stop().await.unwrap();
    first.node.stop().await.unwrap();
}

#[actix::test]
async fn shards_are_spread_evenly_where_nobody_does_it_unasked() {
    let (store, off) = (std::sync::Arc::default(), [("sharding.rebalance", "false")]);
    let first = served(&store, "north", &off).await;
    greet_all(&first).await;
    let second = served(&store, "south", &off).await;
    see_each_other(&first, &second).await;
    let spread = run(&second, &["rebalance", "--kind", "Guest", "--within", "30"]).await;
    assert_eq!(spread.code, 0, "{spread:?}");
    assert_eq!(spread.line("Guest"), ["Guest", "0", "0"]);
    assert!(spread.err.contains("shards moved"), "{spread:?}");
    let counts = run(&first, &["shards", "--json"]).await.json();
    let owners = counts["kinds"][0]["owners"].as_array().unwrap().clone();
    assert_eq!(owners.iter().map(|owner| owner["shards"].as_u64().unwrap()).collect::<Vec<_>>(), [8, 8]);
    // One of the two looks after shards, and the other passes it on.
    let mut coordinators = Vec::new();
    for served in [&first, &second] {
        let once = run(served, &["rebalance", "--once", "--json"]).await.json();
        coordinators.push(once["outcome"]["coordinator"].clone());
    }
    assert_eq!(coordinators[0], coordinators[1]);
    assert!([&first, &second].iter().any(|served| coordinators[0] == served.node.id().to_string()));
    second.node.stop().await.unwrap();
    first.node.stop().await.unwrap();
}

#[actix::test]
async fn a_node_that_is_drained_is_followed_until_it_has_gone() {
    let (first, second) = two(&[]).await;
    greet_all(&first).await;
    let drained = run(&first, &["drain", "--within", "60"]).await;
    assert_eq!(drained.code, 0, "{drained:?}");
    assert!(drained.out.contains("has left") && drained.err.contains("the node has gone"), "{drained:?}");
    let gone = first.node.id();
    eventually("it is no member", || second.node.members().iter().all(|member| member.info.id != gone)).await;
    assert_eq!(run(&first, &["members"]).await.code, 3, "its API has gone, too");
    second.node.stop().await.unwrap();
}

#[actix::test]
async fn a_node_that_is_told_to_leave_is_not_waited_for() {
    let served = one().await;
    let told = run(&served, &["leave", "--json"]).await;
    assert_eq!((told.code, told.json()["outcome"].is_string()), (0, true), "{told:?}");
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while run(&served, &["members"]).await.code != 3 {
        assert!(std::time::Instant::now() < until, "it never goes");
    }
    let drained = one().await;
    let refused = run(&drained, &["drain", "--datacenter"]).await;
    assert_eq!(refused.code, 1, "there is no control plane: {refused:?}");
    drained.node.stop().await.unwrap();
}
