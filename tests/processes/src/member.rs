//! Processes that are members of one cluster on a real store.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use archipelago::prelude::*;
use archipelago::{Builder, Error};
use archipelago_protocol::identity::{Generation, NodeId};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// Is counted, and answered with who counts.
#[remote(Visited)]
pub struct Visit;

/// Where a visit was counted, and the how-manieth it was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The node.
    pub node: NodeId,
    /// The generation under which it owns the visited.
    pub generation: Generation,
    /// The visits to this activation.
    pub count: u64,
}

/// An actor that counts its visits, as long as it lives.
#[derive(VirtualActor)]
#[virtual_actor(handles(Visit), lifecycle)]
pub struct Sight {
    at: Option<(NodeId, Generation)>,
    count: u64,
}

impl Actor for Sight {
    type Context = Context<Self>;
}

impl Lifecycle for Sight {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.at = Some((here.node_id(), here.generation()));
        Ok(())
    }
}

impl Handler<Visit> for Sight {
    type Result = actix::MessageResult<Visit>;

    fn handle(&mut self, _: Visit, _: &mut Context<Self>) -> Self::Result {
        self.count += 1;
        let (node, generation) = self.at.expect("it was activated");
        actix::MessageResult(Visited { node, generation, count: self.count })
    }
}

/// A node in the making with these settings, that talks over plain TCP.
pub fn member(settings: &[(String, String)]) -> Builder {
    let builder = Node::builder()
        .set("node.data_arbiters", "1")
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0");
    settings.iter().fold(builder, |builder, (key, value)| builder.set(key, value))
}

/// One node in a process of its own. Killed when it is dropped.
#[derive(Debug)]
pub struct MemberProcess {
    process: Child,
    orders: Option<ChildStdin>,
    words: BufReader<ChildStdout>,
    /// Its id.
    pub node: NodeId,
}

impl MemberProcess {
    /// Starts the program at `path` and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start(path: &str, settings: &[(String, String)]) -> Self {
        let mut process = Command::new(path)
            .args(settings.iter().map(|(key, value)| format!("{key}={value}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a member can be started");
        let orders = process.stdin.take();
        let mut words = BufReader::new(process.stdout.take().expect("its output is piped"));
        let line = next_line(&mut words);
        let node = line.parse().unwrap_or_else(|_| panic!("the member said {line:?}"));
        Self { process, orders, words, node }
    }

    /// Kills it, as a power failure would.
    ///
    /// # Panics
    ///
    /// If it cannot be.
    pub fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it was ours");
    }

    /// Asks it to leave; [`left`](Self::left) waits until it has.
    ///
    /// # Panics
    ///
    /// If it has gone already.
    pub fn leave(&mut self) {
        self.orders.as_mut().and_then(|orders| orders.write_all(b"leave\n").ok()).expect("it listens");
    }

    /// Waits until it has left, and says how that went.
    ///
    /// # Panics
    ///
    /// If it cannot be waited for.
    pub fn left(&mut self) -> String {
        let line = next_line(&mut self.words);
        self.process.wait().expect("it was ours");
        line
    }

    /// Stops it from running, without ending it.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).expect("a process has an id");
        kill_process(pid, signal).expect("it is ours");
    }
}

impl Drop for MemberProcess {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next_line(words: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    words.read_line(&mut line).expect("the member speaks");
    line.trim().to_owned()
}

/// The program: a node with the settings that are its arguments, until it is told to leave or whoever started it is gone.
///
/// # Panics
///
/// If it cannot start.
pub async fn run_member() {
    let settings: Vec<(String, String)> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.split_once('=').map(|(key, value)| (key.into(), value.into())))
        .collect();
    let started = member(&settings).actor_with(|_, _| Sight { at: None, count: 0 }).start().await;
    let node = started.unwrap_or_else(|error: Error| panic!("the member does not start: {error}"));
    say(&node.id().to_string());
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        // The member may have ended.
        let _ = tell.blocking_send(line);
    });
    if told.recv().await.is_some_and(|order| order.trim() == "leave") {
        say(&format!("{:?}", node.stop().await));
    }
    std::process::exit(0);
}

fn say(words: &str) {
    println!("{words}");
    std::io::stdout().flush().expect("somebody listens");
}
