//! The second process: the same binary, hosting the targets.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio, exit};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::{Reason, reason};

/// How a server says that it can be reached.
#[derive(Clone, Copy, Debug)]
pub struct Ready;

impl Ready {
    /// Tells the parent where the targets are: any text that [`crate::Peer::connect`] understands.
    pub fn at(self, address: impl Display) {
        // In one write, and flushed, since the parent waits for the line.
        let mut out = std::io::stdout();
        let said = out.write_all(format!("{AT}{address}\n").as_bytes()).and_then(|()| out.flush());
        if said.is_err() {
            // Nobody listens any more.
            exit(0);
        }
    }
}

/// Starts the server of this process; where it is, and its output, which must stay open as long as it runs.
pub(crate) fn start() -> Result<(String, BufReader<ChildStdout>), Reason> {
    let mut server = Command::new(std::env::current_exe().map_err(reason)?)
        .arg(SERVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(reason)?;
    let out = server.stdout.take();
    *running() = Some(server);
    let mut out = BufReader::new(out.ok_or("the server has no output")?);
    let mut line = String::new();
    loop {
        line.clear();
        if out.read_line(&mut line).map_err(reason)? == 0 {
            return Err("the server ended before it was ready".to_owned());
        }
        // Frameworks may say something, too.
        if let Some(address) = line.strip_prefix(AT) {
            return Ok((address.trim().to_owned(), out));
        }
    }
}

/// Ends the server of this process, if it runs.
pub(crate) fn end() {
    if let Some(mut server) = running().take() {
        // It may have ended by itself.
        let _ = server.kill();
        let _ = server.wait();
    }
}

/// Ends this process when the one that started it is gone, however that ended.
pub(crate) fn end_with_parent() {
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        exit(0);
    });
}

fn running() -> std::sync::MutexGuard<'static, Option<Child>> {
    static SERVER: Mutex<Option<Child>> = Mutex::new(None);
    SERVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The argument that makes a process the server.
pub(crate) const SERVE: &str = "serve";

const AT: &str = "ready at ";
