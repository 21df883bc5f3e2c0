//! A child process that runs beside others until its standard input is closed.
//!
//! Whatever it does, it is gone when this is: it is asked to end by its input, and killed when its time is over.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A process under way. All it may take, from its start to its end, is `limit`.
pub(crate) struct Background {
    name: &'static str,
    child: Child,
    said: Receiver<String>,
    deadline: Instant,
    limit: Duration,
}

impl Background {
    /// Starts `command`, whose output is shown and can be waited for.
    pub(crate) fn start(name: &'static str, command: &mut Command, limit: Duration) -> Result<Self, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the {name} does not start: {error}"))?;
        let out = child.stdout.take().ok_or_else(|| format!("the {name} has no output"))?;
        let (says, said) = sync_channel(LINES);
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                println!("{name}: {line}");
                // Nobody waits for more than the first lines.
                let _ = says.try_send(line);
            }
        });
        Ok(Self { name, child, said, deadline: Instant::now() + limit, limit })
    }

    /// Waits until it says a line that begins like this, and gives it out.
    pub(crate) fn wait_for(&self, begin: &str) -> Result<String, String> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(line) if line.starts_with(begin) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("the {} ended before it said {begin:?}", self.name));
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!(
                        "the {} did not say {begin:?} within {} s",
                        self.name,
                        self.limit.as_secs()
                    ));
                }
            }
        }
    }

    /// Closes its input, and waits for its end.
    pub(crate) fn end(mut self) -> Result<(), String> {
        drop(self.child.stdin.take());
        let failed = |error: std::io::Error| format!("the {} cannot be waited for: {error}", self.name);
        while Instant::now() < self.deadline {
            match self.child.try_wait().map_err(failed)? {
                Some(status) => return well(self.name, status),
                None => thread::sleep(LOOK),
            }
        }
        Err(format!("the {} did not end within {} s and was killed", self.name, self.limit.as_secs()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // An error only says that it has ended meanwhile.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn well(name: &str, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("the {name} ended with {status}")) }
}

/// How many lines may wait for whoever waits for one.
const LINES: usize = 1024;
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Background {
        Background::start("shell", Command::new("sh").args(["-c", script]), limit).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(200);

    #[test]
    fn a_process_ends_when_its_input_does() {
        let shell = shell("echo first; echo ready 7; cat", LONG);
        assert_eq!(shell.wait_for("ready").as_deref(), Ok("ready 7"));
        assert_eq!(shell.end(), Ok(()));
    }

    #[test]
    fn a_process_that_says_nothing_or_does_not_end_is_killed() {
        let silent = shell("exec sleep 60", SHORT);
        let id = silent.child.id();
        assert!(silent.wait_for("ready").unwrap_err().contains("did not say \"ready\""));
        assert!(silent.end().unwrap_err().contains("was killed"));
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists(), "it still runs");
    }

    #[test]
    fn how_a_process_ended_is_told() {
        assert!(shell("exit 3", LONG).end().unwrap_err().contains('3'));
        assert!(shell("exit 0", LONG).wait_for("ready").unwrap_err().contains("ended before"));
    }
}
