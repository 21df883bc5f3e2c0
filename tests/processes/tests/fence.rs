//! A process whose handler blocks its thread when the node loses its session: it aborts, or says so and stays.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, waits, and measures real time"
)]

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use archipelago_process_tests::{Bell, Fleet, MemberProcess, Obstruct, Ring, Scale, Store, figure};
use archipelago_runtime::CallOptions;

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const SIGABRT: i32 = 6;

/// A member with a handler that blocks for twenty seconds, and the node that has asked it to.
async fn obstructed(store: &Store, on_stuck: &str) -> (Fleet, MemberProcess) {
    let mut settings = store.settings(Scale::of_this_run());
    settings.push(("fence.on_stuck".to_owned(), on_stuck.to_owned()));
    let mut fleet = Fleet::start(MEMBER, settings, 1).await;
    let patient = CallOptions::new().timeout(Duration::from_secs(20));
    fleet.node.actor::<Bell>("a").send_with(Ring, patient).await.unwrap();
    fleet.node.actor::<Bell>("a").tell(Obstruct(20_000)).unwrap();
    let process = fleet.members.remove(0);
    let (word, process) = next_word(process).await;
    assert_eq!(word, "obstructed");
    (fleet, process)
}

async fn next_word(mut process: MemberProcess) -> (String, MemberProcess) {
    let heard = tokio::task::spawn_blocking(move || (process.next_word(), process));
    tokio::time::timeout(Duration::from_secs(12), heard).await.expect("it says something").unwrap()
}

#[actix::test]
async fn a_blocked_handler_aborts_the_process_when_the_store_is_gone() {
    let Some(mut store) = Store::etcd() else { return };
    let (_fleet, mut process) = obstructed(&store, "abort").await;
    let since = Instant::now();
    store.server().kill();
    let status = loop {
        if let Some(status) = process.ended() {
            break status;
        }
        assert!(since.elapsed() < Duration::from_secs(12), "it is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    figure("aborted so long after the store was killed, ttl 3 s", format!("{:.1?}", since.elapsed()));
    assert_eq!(status.signal(), Some(SIGABRT), "{status:?}");
}

#[actix::test]
async fn a_process_that_only_reports_stays_and_says_so() {
    let Some(mut store) = Store::etcd() else { return };
    let (_fleet, process) = obstructed(&store, "report").await;
    store.server().kill();
    let (word, mut process) = next_word(process).await;
    assert_eq!(word, "1 stuck");
    assert_eq!(process.ended(), None, "it stays");
}
