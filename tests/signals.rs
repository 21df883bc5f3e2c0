//! A whole process: it serves until SIGTERM or SIGINT comes, then drains, runs its hooks and ends well.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used, clippy::print_stdout)]
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use archipelago::config::Settings;
use archipelago::prelude::*;
use futures_util::future::join;
use support::{Log, Probe, SayLater, builder, say};

/// The process that is told to end: this very test, started again.
fn serve() {
    actix::System::new().block_on(async {
        let log = Log::default();
        let probe_log = log.clone();
        let node = builder().actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap();
        node.actor::<Probe>("alice").send(say("hello")).await.unwrap();
        let slow = node.actor::<Probe>("alice").send(SayLater { what: "finished".to_owned(), ms: 300 });
        let door = log.clone();
        let close = async || door.note("door closed");
        // It is polled first, so it listens for signals when this line is printed.
        let (ran, ()) = join(node.run_closing(close), async { println!("\nready") }).await;
        ran.unwrap();
        slow.await.unwrap();
        println!("\nlog {}", log.lines().join(" "));
    });
}

/// Starts `test` again as a process that serves, sends it `signal`, and looks at how it ends.
fn drains(test: &str, signal: &str) {
    if std::env::var_os("ARCHIPELAGO_TEST_CHILD").is_some() {
        return serve();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("ARCHIPELAGO_TEST_CHILD", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "ready"), "the child never became ready");
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let log = lines.find(|line| line.starts_with("log ")).expect("the child ended early");
    assert!(log.contains("finished"), "the running handler was cut off: {log}");
    let closed = log.find("door closed").expect("the door is closed first");
    assert!(closed < log.find("deactivate").unwrap(), "the door is closed before any actor goes: {log}");
    assert!(log.ends_with("deactivate NodeStopping gone"), "the hook did not run: {log}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn sigterm_drains_a_serving_process() {
    drains("sigterm_drains_a_serving_process", "-TERM");
}

#[test]
fn sigint_drains_a_serving_process() {
    drains("sigint_drains_a_serving_process", "-INT");
}

/// Whoever stops the actix system under a node is told what that means.
#[test]
fn a_node_whose_system_was_stopped_says_so_when_it_stops() {
    actix::System::new().block_on(async {
        let node = Node::builder().settings(Settings::default()).start().await.unwrap();
        actix::System::current().stop();
        // The arbiters end one after the other.
        actix::clock::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(node.stop().await, Err(archipelago::StopError::SystemStopped));
    });
}
