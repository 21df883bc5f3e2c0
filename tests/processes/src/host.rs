//! The other process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use archipelago_protocol::identity::NodeAddress;
use archipelago_runtime::{Event, Node, Notice};
use rustix::process::{Pid, Signal, kill_process};

use crate::road::{Papers, Road, hosting};

/// What a host is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Over what it talks.
    pub road: Road,
    /// What it proves itself with.
    pub papers: Papers,
    /// The namespace of its actors.
    pub namespace: String,
}

/// A process that hosts the scribes. Killed when it is dropped.
#[derive(Debug)]
pub struct Host {
    process: Child,
    /// What it prints, line by line.
    said: Receiver<String>,
    /// Where it listens.
    pub address: NodeAddress,
}

impl Host {
    /// Starts the program at `path` and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start(path: &str, orders: &Orders) -> Self {
        let mut process = Command::new(path)
            .args([orders.road.name(), &orders.namespace])
            .envs(PEMS.into_iter().zip(&orders.papers.pems))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the host can be started");
        let said = lines(process.stdout.take().expect("its output is piped"));
        let line = said.recv().expect("the host says where it is");
        let address = line.parse().unwrap_or_else(|_| panic!("the host said {line:?}"));
        Self { process, said, address }
    }

    /// Why it did not let somebody in: the next time that it says so.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn refusal(&self) -> String {
        let line = self.said.recv_timeout(Duration::from_secs(20)).expect("the host says whom it refuses");
        line.strip_prefix(REFUSED).unwrap_or_else(|| panic!("the host said {line:?}")).to_owned()
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

    /// Stops it from running, without ending it; waits until every thread of it stands still.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        while !self.stands_still() {
            std::thread::yield_now();
        }
    }

    fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it runs");
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which ends with the last bracket.
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
        })
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

impl Drop for Host {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a process prints. What nobody asks for is forgotten, so that it never waits.
fn lines(out: ChildStdout) -> Receiver<String> {
    let (say, said) = sync_channel(64);
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let _ = say.try_send(line);
        }
    });
    said
}

/// The program: hosts the scribes until whoever started it is gone.
///
/// # Panics
///
/// If it is not told what it needs, or cannot start.
pub async fn run_host() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut arguments = std::env::args().skip(1);
    let road = arguments.next().and_then(|name| Road::named(&name)).expect("the first argument is a road");
    let namespace = arguments.next().expect("the second argument is a namespace");
    let papers =
        Papers { pems: PEMS.map(|name| std::env::var(name).expect("papers come by the environment")) };
    let node = hosting(road, &papers, &namespace).await.expect("the host starts");
    println!("{}", node.address());
    std::io::stdout().flush().expect("somebody listens");
    say_whom_it_refuses(&node).await;
}

async fn say_whom_it_refuses(node: &Node) {
    let mut events = node.events().subscribe();
    while let Some(notice) = events.next().await {
        if let Notice::Event(Event::PeerRefused { reason, .. }) = notice {
            println!("{REFUSED}{reason}");
        }
    }
}

const REFUSED: &str = "refused: ";

const PEMS: [&str; 3] = ["ARCHIPELAGO_TEST_CA", "ARCHIPELAGO_TEST_CERTIFICATE", "ARCHIPELAGO_TEST_KEY"];
