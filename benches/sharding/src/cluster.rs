//! A cluster of processes: the same binary again and again, and the parent, which hosts nothing but the store.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use archipelago::identity::NodeId;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;

use crate::node::{Target, free_address, host, node};
use crate::told::{Told, tell};

/// One host in a process of its own; it ends with its value.
pub(crate) struct Host {
    process: Child,
    pub(crate) id: NodeId,
    pub(crate) address: String,
    /// The moves of its shards.
    pub(crate) told: Told,
}

impl Host {
    /// One that listens at `bind` and is told this.
    pub(crate) fn start(bind: &str, settings: &[(String, String)]) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this binary"))
            .env(ROLE, bind)
            .args(settings.iter().map(|(key, value)| format!("{key}={value}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started again");
        let (mut line, told) = (String::new(), Told::default());
        let mut out = BufReader::new(process.stdout.take().expect("the output is piped"));
        out.read_line(&mut line).expect("the host says who it is");
        let id = line.trim().parse().expect("an id");
        told.listen(out);
        Self { process, id, address: bind.to_owned(), told }
    }

    /// One that the parent knows by its address.
    pub(crate) fn alone() -> Self {
        let address = free_address();
        let placed = ("cluster.placed.Target".to_owned(), address.clone());
        Self::start(&address, &[placed])
    }

    /// What the process has in memory.
    pub(crate) fn memory(&self) -> usize {
        memory_of(&self.process.id().to_string())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The parent's node and the hosts.
pub(crate) struct Cluster {
    pub(crate) node: Node,
    pub(crate) hosts: Vec<Host>,
    settings: Vec<(String, String)>,
}

impl Cluster {
    /// So many hosts, all of them up.
    pub(crate) async fn start(hosts: usize, shards: u16, rebalance: bool) -> Self {
        let address = free_address();
        let mut settings = vec![
            ("actors.kinds.Target.shards".to_owned(), shards.to_string()),
            ("sharding.rebalance".to_owned(), rebalance.to_string()),
            ("sharding.moves_per_round".to_owned(), MOVES_PER_ROUND.to_string()),
        ];
        let node = node(&address, &settings).set("backend.embedded.serve", "true").remote_actor::<Target>();
        let node = node.start().await.expect("the parent's node starts");
        settings.push(("backend.embedded.join".to_owned(), address));
        let mut cluster = Self { node, hosts: Vec::new(), settings };
        for _ in 0..hosts {
            cluster.add().await;
        }
        cluster
    }

    /// Adds a host and waits until it is up.
    pub(crate) async fn add(&mut self) {
        self.hosts.push(Host::start("127.0.0.1:0", &self.settings));
        let begun = Instant::now();
        while self.up() <= self.hosts.len() {
            assert!(begun.elapsed() < Duration::from_secs(60), "a host that starts is up soon");
            actix::clock::sleep(Duration::from_millis(10)).await;
        }
    }

    fn up(&self) -> usize {
        self.node.members().iter().filter(|member| member.status == MemberStatus::Up).count()
    }

    /// Ends the cluster.
    pub(crate) async fn stop(self) {
        // Some of what it would hand over has been killed.
        let _ = self.node.stop().await;
    }
}

/// A node that calls the targets of one host, whose address it knows.
pub(crate) async fn caller_of(host: &Host) -> Node {
    let placed = ("cluster.placed.Target".to_owned(), host.address.clone());
    let node = node("127.0.0.1:0", &[placed]).remote_actor::<Target>();
    node.start().await.expect("the caller starts")
}

/// Where this process listens, if it was started as a host.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Hosts targets until the parent is gone.
pub(crate) async fn serve(bind: String) {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let settings: Vec<(String, String)> = std::env::args()
        .skip(1)
        .filter_map(|setting| setting.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let node = host(&bind, &settings).start().await.expect("the host starts");
    let mut out = std::io::stdout();
    writeln!(out, "{}", node.id()).expect("the parent listens");
    out.flush().expect("the parent listens");
    tell(&node).await;
}

/// What a process has in memory.
pub(crate) fn memory_of(process: &str) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("Linux tells");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * 4_096
}

/// So many moves a round may begin, as the hosts are told.
pub(crate) const MOVES_PER_ROUND: usize = 32;

const ROLE: &str = "ARCHIPELAGO_SHARDING_HOST";
