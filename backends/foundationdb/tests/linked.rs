//! The real client, linked against a `libfdb_c` that has no database: it links, and every failure is a typed error in time.
//!
//! `cargo xtask test --only foundationdb` makes the library from `tests/stub` and runs this. The client can be started only
//! once per process, so each way to fail has a process of its own: this program again, with `ARCHIPELAGO_FDB_STUB` set.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "tests run in real time")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{Sleep, Timer};
use archipelago_foundationdb::{FoundationDbConfig, FoundationDbError, FoundationDbStore};
use archipelago_protocol::time::Millis;

struct RealTimer(Instant);

impl Timer for RealTimer {
    fn now(&self) -> Millis {
        Millis::from_duration(self.0.elapsed())
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(tokio::time::sleep(length.to_duration()))
    }
}

fn connect() -> FoundationDbError {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = FoundationDbConfig {
        connect_timeout: Duration::from_millis(300),
        request_timeout: Duration::from_millis(100),
        ..FoundationDbConfig::default()
    };
    let timer = Arc::new(RealTimer(Instant::now()));
    runtime.block_on(FoundationDbStore::connect(&config, timer)).err().expect("there is no database")
}

/// A second try in the same process ends as the first did, although the client cannot be started twice.
#[test]
fn a_client_without_a_database_is_refused_again_and_again() {
    for _ in 0..2 {
        let error = connect();
        eprintln!("said: {error}");
        let refused = matches!(error, FoundationDbError::Refused { .. });
        assert!(refused || std::env::var_os("ARCHIPELAGO_FDB_STUB").is_some(), "{error:?}");
    }
}

/// What is said by the first try of a process where the library fails like this, and whether its network was stopped.
fn said(mode: &str) -> (String, bool) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "a_client_without_a_database_is_refused_again_and_again", "--nocapture"]);
    let output = program.env("ARCHIPELAGO_FDB_STUB", mode).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{mode}: {}\n{text}", output.status);
    let mut said = text.lines().filter_map(|line| line.strip_prefix("said: "));
    let (first, second) = (said.next().expect("says something"), said.next().expect("says it again"));
    assert_eq!(first, second, "{mode}");
    (first.to_owned(), text.contains("the stub's network has ended"))
}

#[test]
fn a_library_that_is_too_old_is_named_with_both_versions() {
    let expected = "libfdb_c is too old: it speaks API version 510, and 730 is needed";
    assert_eq!(said("old"), (expected.to_owned(), false));
}

#[test]
fn a_network_that_cannot_be_set_up_is_refused_with_its_code() {
    let (said, _) = said("network");
    assert_eq!(said, "FoundationDB cannot be used: The stub does nothing (2008)");
}

#[test]
fn a_database_that_cannot_be_opened_is_refused_and_the_network_is_stopped_at_exit() {
    let expected = "FoundationDB cannot be used: Operation is not supported (2108)";
    assert_eq!(said("database"), (expected.to_owned(), true));
}

#[test]
fn a_database_that_never_answers_is_unreachable_in_time() {
    let began = Instant::now();
    let (said, stopped) = said("silent");
    assert!(said.starts_with("no FoundationDB at ") && said.contains("fdb.cluster"), "{said}");
    assert!(said.contains(" within 300ms: "), "{said}");
    assert!(stopped && began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_database_that_answers_with_errors_is_refused() {
    let (said, _) = said("failing");
    assert_eq!(said, "FoundationDB cannot be used: FoundationDB error 2000");
}

#[test]
fn a_cluster_file_that_cannot_be_read_is_named() {
    let config =
        FoundationDbConfig { cluster_file: Some("/no/such/file".into()), ..FoundationDbConfig::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let timer = Arc::new(RealTimer(Instant::now()));
    let error = runtime.block_on(FoundationDbStore::connect(&config, timer)).err().unwrap();
    assert!(
        error.to_string().starts_with("foundationdb.cluster_file: cannot read /no/such/file: "),
        "{error}"
    );
}
