//! A node that runs, in a thread, in a process or in a container, and the datacenters that they form.

use archipelago::datacenter::DataCenterState;
use archipelago::prelude::*;

use crate::node::{Failed, Placed, Refused, Report, Touched, Why};
use crate::orders::Line;
use crate::process::NodeProcess;
use crate::thread::NodeThread;

/// One node.
pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) body: Body,
    /// Part of every key, so that a store which has seen an earlier run knows none of them.
    pub(crate) run: u64,
}

/// Where it runs.
pub(crate) enum Body {
    Thread(NodeThread),
    Process(NodeProcess),
    /// Dropped, it ends the container.
    Container(Line),
}

/// A datacenter of two nodes.
pub(crate) struct Town {
    pub(crate) name: &'static str,
    pub(crate) tier: &'static str,
    pub(crate) nodes: Vec<Running>,
}

impl Running {
    /// Touches a ledger from here.
    pub(crate) async fn touch(&self, key: &str) -> Touched {
        let key = self.key(key);
        match &self.body {
            Body::Thread(thread) => thread.node.touch(&key).await,
            Body::Process(NodeProcess { line, .. }) | Body::Container(line) => {
                let gone = |error: BoxError| Failed { out_of_reach: false, said: error.to_string() };
                line.touch(&key).unwrap_or_else(|error| (Err(gone(error)), std::time::Duration::ZERO))
            }
        }
    }

    /// Places a ledger.
    pub(crate) async fn place(&self, target: &str, key: &str) -> Placed {
        let key = self.key(key);
        match &self.body {
            Body::Thread(thread) => thread.node.place(target, &key).await,
            Body::Process(NodeProcess { line, .. }) | Body::Container(line) => {
                let gone = |error: BoxError| Err(Refused { why: Why::Another, said: error.to_string() });
                line.place(target, &key).unwrap_or_else(gone)
            }
        }
    }

    /// What it sees; nothing if it is gone.
    pub(crate) fn report(&self) -> Report {
        match &self.body {
            Body::Thread(thread) => thread.node.report(),
            Body::Process(NodeProcess { line, .. }) | Body::Container(line) => {
                line.report().unwrap_or_default()
            }
        }
    }

    pub(crate) fn sees(&self, town: &str, standing: DataCenterState) -> bool {
        self.report().standing(town) == Some(standing)
    }

    /// Drains its datacenter.
    pub(crate) async fn drain(&self) -> Result<(), String> {
        match &self.body {
            Body::Thread(thread) => {
                thread.node.node.drain_datacenter().await.map_err(|error| error.to_string())
            }
            Body::Process(NodeProcess { line, .. }) | Body::Container(line) => {
                line.drain().unwrap_or_else(|error| Err(error.to_string()))
            }
        }
    }

    /// Lets it leave in good order.
    pub(crate) async fn stop(self) -> Result<(), BoxError> {
        match self.body {
            Body::Thread(thread) => {
                let stopped = thread.node.node.stop().await;
                thread.kill();
                Ok(stopped?)
            }
            Body::Process(process) => process.stop(),
            Body::Container(line) => line.stop(),
        }
    }

    /// Kills it, as a power cut would.
    pub(crate) fn kill(self) {
        match self.body {
            Body::Thread(thread) => thread.kill(),
            Body::Process(process) => drop(process),
            Body::Container(line) => drop(line),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{key}-{:x}", self.run)
    }
}
