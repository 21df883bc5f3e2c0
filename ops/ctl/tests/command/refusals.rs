//! What the command refuses, what the node refuses, and the exit codes that tell the two apart.

use std::path::Path;

use crate::support::{GREET, Greet, Guest, one, run, run_beside, run_here, token_file};

/// Every act, with arguments that would do.
fn acts() -> Vec<Vec<&'static str>> {
    let node = "0000000000000001";
    vec![
        vec!["leave"],
        vec!["drain"],
        vec!["drain", "--datacenter"],
        vec!["rebalance"],
        vec!["move-shard", "Guest", "0", node],
        vec!["split", "Shelf", "a"],
        vec!["merge", "Shelf", "a"],
        vec!["move-range", "Shelf", "a", node],
        vec!["deactivate", "Guest/guest"],
        vec!["call", "Guest/guest", GREET],
    ]
}

fn written(name: &str, content: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[actix::test]
async fn nothing_can_be_done_without_the_token() {
    let served = one().await;
    served.node.actor::<Guest>("guest").send(Greet).await.unwrap();
    let wrong = written("wrong-token", "another-token-altogether\n");
    for act in acts() {
        for token in [vec![], vec!["--token-file", wrong.as_str()]] {
            let whole = ["--api", &served.api].into_iter().chain(token).chain(act.iter().copied());
            let refused = run_beside(whole.map(str::to_owned).collect()).await;
            assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{act:?}: {refused:?}");
            assert!(refused.err.contains("wrong_token"), "{act:?}: {refused:?}");
            assert!(!refused.err.contains("another-token"), "no token is shown: {refused:?}");
        }
    }
    assert!(served.node.session().is_ready(), "it has not left");
    assert_eq!(served.node.actor::<Guest>("guest").send(Greet).await.unwrap(), 2, "nobody has called it");
    served.node.stop().await.unwrap();
}

#[actix::test]
async fn the_token_is_taken_from_the_environment_and_reads_that_are_guarded_need_it() {
    let served =
        crate::support::served(&std::sync::Arc::default(), "north", &[("admin.guard_reads", "true")]).await;
    let api = served.api.clone();
    let with = move |token: Option<&Path>| {
        let mut program = crate::support::program(&["members"]);
        program.env("ARCHIPELAGO_API", &api);
        if let Some(token) = token {
            program.env("ARCHIPELAGO_TOKEN_FILE", token);
        }
        crate::support::ran(program)
    };
    let both = actix_rt::task::spawn_blocking(move || (with(None), with(Some(&token_file()))));
    let (without, with) = both.await.unwrap();
    assert_eq!((without.code, without.err.contains("wrong_token")), (1, true), "{without:?}");
    assert_eq!(with.code, 0, "{with:?}");
    served.node.stop().await.unwrap();
}

#[actix::test]
async fn hostile_ids_and_bodies_that_are_too_large_are_refused() {
    let served = one().await;
    let long = format!("Guest/{}", "k".repeat(4_000));
    let body = format!("\"{}\"", "b".repeat(20 << 10));
    let refused: [(&[&str], i32, &str); 9] = [
        (&["actor", "Nobody/a"], 1, "unknown_kind"),
        (&["actor", "Guest/a\nb"], 1, "invalid_id"),
        (&["actor", &long], 1, "invalid_id"),
        (&["actor", "Guest"], 2, "no actor"),
        (&["actor", "a::b::Guest/%zz"], 2, "no actor"),
        (&["call", "Guest/a", GREET, &body], 1, "too_large"),
        (&["call", "Guest/a", GREET, "{"], 2, "no JSON"),
        (&["shards", "--kind", "No\u{1b}[2Jbody"], 1, "no_shards"),
        (&["actors", "--prefix", "a&limit=0#"], 0, ""),
    ];
    for (arguments, code, word) in refused {
        let ran = run(&served, arguments).await;
        let shown: String = arguments.join(" ").chars().take(60).collect();
        assert_eq!(ran.code, code, "{shown}: {ran:?}");
        assert!(ran.err.contains(word), "{shown}: {ran:?}");
        assert!(!ran.err.contains('\u{1b}'), "{shown}: {ran:?}");
    }
    // What looks like a path is a key like any other.
    let key = run(&served, &["actor", "Guest/../../node"]).await;
    assert_eq!(key.line("actor"), ["actor", "default::Guest/..%2F..%2Fnode"]);
    served.node.stop().await.unwrap();
}

#[test]
fn a_command_that_makes_no_sense_is_told_apart_from_a_node_that_does_not_answer() {
    let empty = written("empty-token", "\n");
    let spaced = written("spaced-token", "with spaces in it, and more\n");
    for arguments in [
        &["nothing"][..],
        &[],
        &["actor"],
        &["--api", "https://127.0.0.1:1", "members"],
        &["--api", "127.0.0.1:1", "members"],
        &["--api", "http://me:secret@127.0.0.1:1", "members"],
        &["--token-file", "/no/such/file", "members"],
        &["--token-file", &empty, "members"],
        &["--token-file", &spaced, "members"],
        &["--timeout", "0", "members"],
        &["move-shard", "Guest", "-1", "north"],
        &["call", "Guest/a", "m", "null", "--deadline", "0"],
    ] {
        let ran = run_here(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {ran:?}");
        assert!(!ran.err.is_empty() && !ran.err.contains("with spaces in it"), "{arguments:?}: {ran:?}");
    }
    for act in acts().into_iter().chain([vec!["members"], vec!["top", "--once"], vec!["events", "--follow"]])
    {
        let ran = run_here(&[&["--api", "http://127.0.0.1:1"], act.as_slice()].concat());
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{act:?}: {ran:?}");
        assert!(ran.err.contains("http://127.0.0.1:1"), "{act:?}: {ran:?}");
    }
    for good in ["--help", "--version"] {
        assert_eq!(run_here(&[good]).code, 0);
    }
}
