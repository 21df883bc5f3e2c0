//! Processes whose wall clocks are wrong.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A library that stands before the one of C in a process: whoever asks it what time it is hears something wrong. Clocks that only
/// count are right.
pub struct WrongClocks {
    folder: TempDir,
}

impl WrongClocks {
    /// Makes the library; none if there is no compiler, which has been said.
    ///
    /// # Panics
    ///
    /// If it cannot be made although there is a compiler, or in CI.
    pub fn make() -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("archipelago-test-").tempdir();
        let clocks = Self { folder: folder.expect("the temporary folder can be written") };
        let source = clocks.folder.path().join("clocks.c");
        std::fs::write(&source, SOURCE).expect("the temporary folder can be written");
        let mut compiler = Command::new("cc");
        match compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(clocks.library()).arg(&source).status() {
            Ok(status) => assert!(status.success(), "the library cannot be made: {status}"),
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "no C compiler: {error}");
                eprintln!("skipped: no C compiler: {error}");
                return None;
            }
        }
        Some(clocks)
    }

    /// What a process is started with whose wall clock is `seconds` ahead, or behind if that is negative.
    pub fn ahead_by(&self, seconds: i64) -> Vec<(String, String)> {
        vec![
            ("LD_PRELOAD".to_owned(), self.library().display().to_string()),
            ("ARCHIPELAGO_TEST_CLOCK".to_owned(), seconds.to_string()),
        ]
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("clocks.so")
    }
}

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, clock, at);
    const char *ahead = getenv("ARCHIPELAGO_TEST_CLOCK");
    if (!failed && clock == CLOCK_REALTIME && ahead)
        at->tv_sec += atol(ahead);
    return failed;
}
"#;
