//! A node in a process of its own: this program once more. It is told what to do on its standard input and answers on its
//! standard output. It ends when nobody is left to tell it anything.

use std::io::BufReader;
use std::process::{Child, Command, ExitCode, Stdio};

use archipelago::prelude::*;

use crate::node::Settings;
use crate::orders::{Line, obey};

/// The first argument of a process that is a node; the others are its settings, `key=value`.
pub(crate) const NODE: &str = "--node";

/// Somebody else's node, seen from the process that tells the story. Killed when it is dropped.
pub(crate) struct NodeProcess {
    process: Child,
    pub(crate) line: Line,
}

impl NodeProcess {
    /// Starts it, and waits until it serves.
    pub(crate) fn start(settings: &Settings) -> Result<Self, BoxError> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(NODE)
            .args(settings.iter().map(|(key, value)| format!("{key}={value}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (orders, answers) = pipes.ok_or("the process has no pipes")?;
        let line = Line::to(orders, BufReader::new(answers));
        if line.is_err() {
            end(&mut process);
        }
        Ok(Self { process, line: line? })
    }

    /// Lets it leave in good order.
    pub(crate) fn stop(mut self) -> Result<(), BoxError> {
        self.line.stop()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

fn end(process: &mut Child) {
    // It may be gone already.
    drop(process.kill());
    drop(process.wait());
}

/// What the process of a node does.
pub(crate) async fn run(arguments: &[String]) -> ExitCode {
    let pairs = arguments.iter().filter_map(|argument| argument.split_once('='));
    let settings: Settings = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    obey(&settings, BufReader::new(std::io::stdin()), &mut std::io::stdout()).await
}
