//! Events as they happen.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{one, program, run, run_beside, token_file};

#[actix::test]
async fn events_come_as_lines_of_json_until_the_node_goes() {
    let served = one().await;
    let arguments = ["--api", &served.api, "events", "--follow", "--json"];
    let mut child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (lines, mut err) = (BufReader::new(child.stdout.take().unwrap()), child.stderr.take().unwrap());
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let into = Arc::clone(&seen);
    let reader = actix_rt::task::spawn_blocking(move || {
        for line in lines.lines() {
            into.lock().unwrap().push(serde_json::from_str(&line.unwrap()).unwrap());
        }
    });
    let operated = |event: &Value| event["type"] == "operated" && event["act"] == "deactivate";
    let until = Instant::now() + Duration::from_secs(20);
    // Whoever follows is let in some time; what happens until then goes unheard.
    while !seen.lock().unwrap().iter().any(operated) {
        assert!(Instant::now() < until, "no event came");
        run(&served, &["deactivate", "Guest/nobody"]).await;
    }
    served.node.stop().await.unwrap();
    reader.await.unwrap();
    let mut words = String::new();
    err.read_to_string(&mut words).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{words}");
    assert!(words.contains("the node has gone"), "{words}");
}

#[actix::test]
async fn without_being_told_to_follow_it_ends_by_itself() {
    let served = one().await;
    let looked = run(&served, &["events", "--seconds", "1"]).await;
    assert_eq!((looked.code, looked.err.as_str()), (0, ""), "{looked:?}");
    served.node.stop().await.unwrap();
}

#[actix::test]
async fn a_reader_who_has_had_enough_ends_it_quietly() {
    let served = one().await;
    let token = token_file();
    for arguments in [
        vec!["completions", "zsh"],
        vec!["--api", &served.api, "members"],
        vec!["--api", &served.api, "config", "show", "--json"],
    ] {
        let mut child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = actix_rt::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
    let followed =
        ["--api", &served.api, "--token-file", token.to_str().unwrap(), "events", "--follow", "--count", "0"];
    assert_eq!(run_beside(followed.map(str::to_owned).into()).await.code, 0);
    served.node.stop().await.unwrap();
}
