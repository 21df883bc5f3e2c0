//! A node in a process of its own: this program once more. It is told what to do on its standard input and answers on its
//! standard output, one line of JSON each. It ends when nobody is left to tell it anything.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use archipelago::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::node::{Placed, Report, Touched, Watched, builder};

/// The first argument of a process that is a node; the others are its settings, `key=value`.
pub(crate) const NODE: &str = "--node";

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Touch(String),
    Place(String, String),
    Report,
    Drain,
    Stop,
}

/// Somebody else's node, seen from the process that tells the story. Killed when it is dropped.
pub(crate) struct NodeProcess {
    process: Child,
    line: RefCell<Line>,
}

struct Line {
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl NodeProcess {
    /// Starts it, and waits until it serves.
    pub(crate) fn start(settings: &[(String, String)]) -> Result<Self, BoxError> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(NODE)
            .args(settings.iter().map(|(key, value)| format!("{key}={value}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (orders, answers) = pipes.ok_or("the process has no pipes")?;
        let line = Line { orders, answers: BufReader::new(answers) };
        let started = Self { process, line: RefCell::new(line) };
        let said: Result<(), String> = started.line.borrow_mut().hear()?;
        said?;
        Ok(started)
    }

    pub(crate) fn touch(&self, key: &str) -> Result<Touched, BoxError> {
        self.asked(&Order::Touch(key.to_owned()))
    }

    pub(crate) fn place(&self, target: &str, key: &str) -> Result<Placed, BoxError> {
        self.asked(&Order::Place(target.to_owned(), key.to_owned()))
    }

    pub(crate) fn report(&self) -> Result<Report, BoxError> {
        self.asked(&Order::Report)
    }

    pub(crate) fn drain(&self) -> Result<Result<(), String>, BoxError> {
        self.asked(&Order::Drain)
    }

    /// Lets it leave in good order.
    pub(crate) fn stop(mut self) -> Result<(), BoxError> {
        let stopped: Result<(), String> = self.asked(&Order::Stop)?;
        self.process.wait()?;
        Ok(stopped?)
    }

    fn asked<T: DeserializeOwned>(&self, order: &Order) -> Result<T, BoxError> {
        let mut line = self.line.borrow_mut();
        writeln!(line.orders, "{}", serde_json::to_string(order)?)?;
        line.hear()
    }
}

impl Line {
    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, BoxError> {
        let mut text = String::new();
        if self.answers.read_line(&mut text)? == 0 {
            return Err("the process of a node has ended".into());
        }
        Ok(serde_json::from_str(&text)?)
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What the process of a node does.
pub(crate) async fn run(arguments: &[String]) -> ExitCode {
    let pairs = arguments.iter().filter_map(|argument| argument.split_once('='));
    let settings: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let node = match builder(&settings).set("node.data_arbiters", "1").start().await {
        Ok(node) => Watched::new(node),
        Err(error) => {
            answer(&Err::<(), _>(error.to_string()));
            return ExitCode::FAILURE;
        }
    };
    answer(&Ok::<(), String>(()));
    let mut orders = orders();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Touch(key) => answer(&node.touch(&key).await),
            Order::Place(target, key) => answer(&node.place(&target, &key).await),
            Order::Report => answer(&node.report()),
            Order::Drain => {
                answer(&node.node.drain_datacenter().await.map_err(|error| error.to_string()));
            }
            Order::Stop => {
                answer(&node.node.stop().await.map_err(|error| error.to_string()));
                return ExitCode::SUCCESS;
            }
        }
    }
    // Whoever told the story is gone: so is the node, at once.
    std::process::exit(1)
}

fn orders() -> tokio::sync::mpsc::Receiver<Order> {
    let (tell, told) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        let lines = std::io::stdin().lines().map_while(Result::ok);
        for order in lines.map_while(|line| serde_json::from_str(&line).ok()) {
            if tell.blocking_send(order).is_err() {
                return;
            }
        }
    });
    told
}

fn answer(what: &impl Serialize) {
    let text = serde_json::to_string(what).unwrap_or_else(|error| format!("\"{error}\""));
    println!("{text}");
    // If nobody listens, the next order does not come either.
    drop(std::io::stdout().flush());
}
