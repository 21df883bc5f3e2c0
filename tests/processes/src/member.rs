//! Processes that are members of one cluster on a real store.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

use archipelago::prelude::*;
use archipelago::{Builder, Error, Event, Notice};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::MemberEvent;
use rustix::process::{Pid, Signal, kill_process};

use crate::abroad;
use crate::account::Account;
use crate::bell::{Bell, RingCount, Rings, ring_steadily};
use crate::journal;

/// Keys of the configuration and their values.
pub type Settings = Vec<(String, String)>;

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
    /// Its id when it started.
    pub node: NodeId,
}

impl MemberProcess {
    /// Starts the program at `path`, which keeps its journal and its accounts in `folder`, and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start(path: &str, settings: &[(String, String)], folder: &Path) -> Self {
        Self::start_in(&[], path, settings, folder)
    }

    /// The same, with these variables in its environment.
    ///
    /// # Panics
    ///
    /// If it does not serve.
    pub fn start_in(
        environment: &[(String, String)],
        path: &str,
        settings: &[(String, String)],
        folder: &Path,
    ) -> Self {
        let mut process = Command::new(path)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .arg(folder)
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
        self.tell("leave");
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

    /// Its id now: another one after it has lost its session and is back.
    ///
    /// # Panics
    ///
    /// If it does not say.
    pub fn present_id(&mut self) -> NodeId {
        self.tell("who");
        next_line(&mut self.words).parse().expect("a member knows who it is")
    }

    /// Has it ring bells, so many per second.
    ///
    /// # Panics
    ///
    /// If it has gone.
    pub fn ring(&mut self, rate: u64) {
        self.tell(&format!("ring {rate}"));
    }

    /// What became of its rings so far.
    ///
    /// # Panics
    ///
    /// If it does not say.
    pub fn rings(&mut self) -> RingCount {
        self.asked("rings")
    }

    /// The next thing that it says.
    ///
    /// # Panics
    ///
    /// If it cannot be heard.
    pub fn next_word(&mut self) -> String {
        next_line(&mut self.words)
    }

    /// How it has ended, if it has.
    ///
    /// # Panics
    ///
    /// If it cannot be asked.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().expect("it was ours")
    }

    /// Stops it from running, without ending it.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn tell(&mut self, order: &str) {
        let told =
            self.orders.as_mut().and_then(|orders| orders.write_all(format!("{order}\n").as_bytes()).ok());
        told.expect("it listens");
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
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let pair = |argument: String| argument.split_once('=').map(|(key, value)| (key.into(), value.into()));
    let settings: Settings = arguments.filter_map(pair).collect();
    journal::begin(&folder);
    let started =
        member(&settings).actor::<Bell>().actor_with(move |_, _| Account::kept_in(&folder)).start().await;
    let node = started.unwrap_or_else(|error: Error| panic!("the member does not start: {error}"));
    actix::spawn(note_events(node.clone()));
    say(&node.id().to_string());
    obey(&node, orders()).await;
    std::process::exit(0);
}

async fn obey(node: &Node, mut orders: tokio::sync::mpsc::Receiver<String>) {
    let rings = Arc::new(Rings::default());
    while let Some(order) = orders.recv().await {
        match order.trim().split_once(' ').unwrap_or((order.trim(), "")) {
            ("who", _) => say(&node.id().to_string()),
            ("ring", rate) => {
                let rate = rate.parse().expect("a rate is a number");
                actix::spawn(ring_steadily(node.clone(), rate, Arc::clone(&rings)));
            }
            ("rings", _) => abroad::answer(&rings.count()),
            ("leave", _) => return say(&format!("{:?}", node.stop().await)),
            (order, rest) => {
                if !abroad::obey(node, order, rest).await {
                    return;
                }
            }
        }
    }
}

/// The lines of the standard input; an end of it is the last.
fn orders() -> tokio::sync::mpsc::Receiver<String> {
    let (tell, told) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            // The member may have ended.
            let _ = tell.blocking_send(line);
        }
    });
    told
}

/// What the oracle may want to know of the node's life.
async fn note_events(node: Node) {
    let mut events = node.events().subscribe();
    while let Some(notice) = events.next().await {
        match notice {
            Notice::Event(Event::SessionLost { node, reason }) => {
                journal::note_event(&format!("lost {node} {reason}"));
            }
            Notice::Event(Event::Rejoined { before, now }) => {
                journal::note_event(&format!("rejoined {before} {now}"));
            }
            Notice::Event(Event::Membership(MemberEvent::Unreachable(member))) => {
                journal::note_event(&format!("unreachable {}", member.info.id));
            }
            Notice::Event(Event::DataCenterDown { datacenter }) => {
                journal::note_event(&format!("down {datacenter}"));
            }
            Notice::Event(Event::ArbitersStuck { arbiters, .. }) => say(&format!("{arbiters} stuck")),
            Notice::Missed(count) => journal::note_event(&format!("missed {count}")),
            Notice::Event(_) => {}
        }
    }
}

pub(crate) fn say(words: &str) {
    println!("{words}");
    std::io::stdout().flush().expect("somebody listens");
}
