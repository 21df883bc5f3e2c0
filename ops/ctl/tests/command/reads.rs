//! What the command shows: tables for people, the API's own answers for programs.

use std::collections::BTreeSet;

use crate::support::{eventually, greet_all, one, run, run_here, two};

#[actix::test]
async fn every_read_is_a_table_for_people_and_json_for_programs() {
    let (first, second) = two(&[]).await;
    greet_all(&first).await;
    eventually("the ranges are there", || first.node.ranges("Shelf").is_some()).await;
    let (north, south) = (first.node.id().to_string(), second.node.id().to_string());
    let guest = ["actor", "Guest/guest-1"];
    let reads: [(&[&str], &str, &str); 15] = [
        (&["node"], "WHAT", "north"),
        (&["members"], "ID", &south),
        (&["kinds"], "KIND", "Guest"),
        (&["kinds", "--cluster"], "NODE", "Shelf"),
        (&["shards"], "KIND", "Guest"),
        (&["shards", "--kind", "Guest"], "SHARD", "15"),
        (&["actors", "--kind", "Guest", "--prefix", "guest-"], "KIND", "Guest"),
        (&["actors", "--cluster", "--limit", "1000"], "NODE", "guest-63"),
        (&guest, "WHAT", "default::Guest/guest-1"),
        (&["moves"], "KIND", "none"),
        (&["ranges", "Shelf"], "RANGE", "table"),
        (&["peers"], "ID", &south),
        (&["lanes", "--cluster"], "NODE", &north),
        (&["dead-letters"], "NUMBER", "none"),
        (&["config", "show"], "KEY", "admin.serve"),
    ];
    for (arguments, head, word) in reads {
        let shown = run(&first, arguments).await;
        assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{arguments:?}");
        assert!(shown.out.starts_with(head), "{arguments:?}: {}", shown.out);
        shown.line(word);
        let json = [arguments, &["--json"]].concat();
        let answer = run(&first, &json).await;
        assert_eq!(answer.code, 0, "{arguments:?}");
        assert!(answer.json().is_object(), "{arguments:?}");
    }
    second.node.stop().await.unwrap();
    first.node.stop().await.unwrap();
}

#[actix::test]
async fn what_stands_in_a_table_is_what_the_node_says() {
    let served = one().await;
    greet_all(&served).await;
    let members = run(&served, &["members"]).await;
    let id = served.node.id().to_string();
    let row = members.line(&id);
    assert_eq!((row[1], row[3], row[4]), ("north", "up", "yes"), "{members:?}");
    assert_eq!(run(&served, &["kinds"]).await.line("Guest")[1..5], ["16", "shards", "yes", "64"]);
    assert_eq!(run(&served, &["shards"]).await.line("Guest")[1..], ["16", "16", &id, "(north)", "16"]);
    let all = run(&served, &["shards", "--kind", "Guest", "--json"]).await.json();
    assert_eq!((all["items"].as_array().unwrap().len(), &all["next"]), (16, &serde_json::Value::Null));
    let few = run(&served, &["actors", "--limit", "7", "--json"]).await.json();
    assert_eq!(few["actors"].as_array().unwrap().len(), 7);
    let one = run(&served, &["actors", "--prefix", "guest-63"]).await;
    assert_eq!(one.out.lines().count(), 2, "{one:?}");
    let actor = run(&served, &["actor", "default::Guest/guest-63"]).await;
    assert_eq!(actor.line("owner"), ["owner", &id, "(north)"]);
    let messages = run(&served, &["messages"]).await;
    assert!(messages.code == 0 || messages.err.contains("does not count"), "{messages:?}");
    served.node.stop().await.unwrap();
}

#[actix::test]
async fn a_page_after_the_other_is_asked_for_until_there_are_enough() {
    let served = one().await;
    for number in 0..1_100 {
        served
            .node
            .actor::<crate::support::Guest>(format!("{number}"))
            .send(crate::support::Greet)
            .await
            .unwrap();
    }
    let all = run(&served, &["actors", "--limit", "5000", "--json"]).await.json();
    let keys: BTreeSet<_> =
        all["actors"].as_array().unwrap().iter().map(|one| one["key"].to_string()).collect();
    assert_eq!(keys.len(), 1_100);
    served.node.stop().await.unwrap();
}

#[actix::test]
async fn top_shows_one_frame_where_it_is_told_to_and_refuses_to_guess_elsewhere() {
    let served = one().await;
    greet_all(&served).await;
    let frame = run(&served, &["top", "--once"]).await;
    assert_eq!((frame.code, frame.err.as_str()), (0, ""), "{frame:?}");
    assert!(frame.out.starts_with("archipelago, namespace default, seen by"), "{frame:?}");
    assert_eq!(frame.line("Guest")[..2], ["Guest", "64"]);
    let live = run(&served, &["top"]).await;
    assert_eq!((live.code, live.out.as_str()), (2, ""), "{live:?}");
    let json = run(&served, &["top", "--json"]).await.json();
    assert_eq!(json["node"]["name"], "north");
    served.node.stop().await.unwrap();
}

#[test]
fn completions_are_written_for_every_shell_and_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run_here(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (0, ""), "{shell}");
        assert!(script.out.contains("move-shard") && script.out.contains("dead-letters"), "{shell}");
    }
    assert_eq!(run_here(&["completions", "tcsh"]).code, 2);
}
