//! Runs a child process, shows all it says, and keeps the lines that matter.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a child process ended, and the lines kept.
pub(crate) struct Captured {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
}

/// Runs `command` and keeps the lines of either stream that `keep` chooses.
pub(crate) fn capture(command: &mut Command, keep: fn(&str) -> bool) -> Result<Captured, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| format!("cannot run {program}: {error}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let stderr = child.stderr.take();
    let beside = thread::spawn(move || {
        stderr.map(|stream| pass_on(stream, keep, |line| eprintln!("{line}"))).unwrap_or_default()
    });
    let stdout = child.stdout.take();
    let mut lines = stdout.map(|stream| pass_on(stream, keep, |line| println!("{line}"))).unwrap_or_default();
    lines.extend(beside.join().map_err(|_| format!("reading what {program} said failed"))?);
    let status = child.wait().map_err(failed)?;
    Ok(Captured { status, lines })
}

/// Runs `command` for at most `limit`; none if it had to be killed.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| format!("cannot run {program}: {error}");
    let mut child = command.stdin(Stdio::null()).spawn().map_err(failed)?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A line in which cargo or nextest counts tests.
pub(crate) fn counts_tests(line: &str) -> bool {
    let empty = line.contains(" 0 passed; 0 failed; 0 ignored");
    (line.starts_with("test result:") && !empty)
        || line.contains(" tests run: ")
        || line.contains(" test run: ")
}

fn pass_on(stream: impl Read, keep: fn(&str) -> bool, show: fn(&str)) -> Vec<String> {
    let mut kept = Vec::new();
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    while matches!(reader.read_until(b'\n', &mut bytes), Ok(read) if read > 0) {
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end_matches(['\r', '\n']);
        show(line);
        if keep(line) {
            kept.push(line.to_owned());
        }
        bytes.clear();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn chosen_lines_of_both_streams_are_kept() {
        let mut command = shell(
            "echo 'test result: ok. 3 passed; 0 failed'; echo noise; \
                                 echo '     Summary [   0.1s] 12 tests run: 12 passed, 0 skipped' >&2; exit 3",
        );
        let captured = capture(&mut command, counts_tests).unwrap();
        assert_eq!(captured.status.code(), Some(3));
        assert_eq!(captured.lines.len(), 2, "{:?}", captured.lines);
    }

    #[test]
    fn process_that_does_not_end_is_killed_at_its_limit() {
        let ended = run_within(&mut shell("exec sleep 60"), Duration::from_millis(100)).unwrap();
        assert_eq!(ended, None);
        let ended = run_within(&mut shell("exit 7"), Duration::from_secs(60)).unwrap();
        assert_eq!(ended.and_then(|status| status.code()), Some(7));
    }

    #[test]
    fn crates_without_tests_are_not_repeated() {
        assert!(!counts_tests("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured"));
        assert!(counts_tests("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured"));
    }
}
