//! The datacenters of the example. Each node has a thread of its own, on which everything of it runs: ending the thread kills
//! the node as a power cut would, without a word to anybody.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use archipelago::Builder;
use archipelago::datacenter::ControlPlane;
use archipelago::embedded::EmbeddedStore;
use archipelago::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::plane::Switched;

/// Counts, and answers with the count and with who has counted.
#[remote(Answer)]
pub(crate) struct Touch;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) count: u64,
    pub(crate) node: String,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Touch))]
pub(crate) struct Ledger {
    count: u64,
    node: String,
}

impl Actor for Ledger {
    type Context = Context<Self>;
}

impl Handler<Touch> for Ledger {
    type Result = MessageResult<Touch>;

    fn handle(&mut self, _: Touch, _: &mut Context<Self>) -> Self::Result {
        self.count += 1;
        MessageResult(Answer { count: self.count, node: self.node.clone() })
    }
}

/// One node on its thread.
pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) node: Node,
    /// Dropped, it ends the thread.
    power: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A datacenter of two nodes with a store of their own.
pub(crate) struct Town {
    pub(crate) name: &'static str,
    pub(crate) tier: &'static str,
    pub(crate) nodes: Vec<Running>,
}

impl Town {
    /// Starts the nodes, one after the other: the first leads.
    pub(crate) async fn found(
        name: &'static str,
        tier: &'static str,
        plane: &Arc<Switched>,
        certificates: &Path,
    ) -> Result<Self, BoxError> {
        let (store, mut nodes) = (Arc::new(EmbeddedStore::default()), Vec::new());
        for number in 1..=2 {
            let node = format!("{name}-{number}");
            let plane = Arc::clone(plane) as Arc<dyn ControlPlane>;
            let (own, store, certificates) = (node.clone(), Arc::clone(&store), certificates.to_owned());
            let build = move || {
                let builder = builder(name, tier, &own, &certificates);
                builder.embedded_store(store).control_plane(plane)
            };
            nodes.push(Running::start(node, build).await?);
        }
        Ok(Self { name, tier, nodes })
    }
}

fn builder(town: &str, tier: &str, node: &str, certificates: &Path) -> Builder {
    let name = node.to_owned();
    Node::builder()
        .namespace("atlas")
        .set("node.name", node)
        .set("transport.kind", "quic")
        .set("transport.bind", "127.0.0.1:0")
        .set("transport.development", &certificates.display().to_string())
        .set("datacenter.name", town)
        .set("datacenter.labels.tier", tier)
        .set("control_plane.kind", "embedded")
        .set("control_plane.lease_ttl", "6s")
        .set("datacenter.heartbeat", "2s")
        .set("datacenter.refresh", "2s")
        .set("datacenter.leader_check", "300ms")
        .set("datacenter.max_staleness", "4s")
        .set("session.ttl", "3s")
        .set("session.heartbeat", "1s")
        .set("membership.leader", "oldest")
        .set("fence.on_stuck", "report")
        .on_current_arbiter()
        .actor_with(move |_, _| Ledger { count: 0, node: name.clone() })
}

impl Running {
    async fn start(name: String, build: impl FnOnce() -> Builder + Send + 'static) -> Result<Self, BoxError> {
        let (tell, told) = oneshot::channel::<Result<Node, String>>();
        let (power, cut) = oneshot::channel::<()>();
        let main = move || {
            let system = actix::System::new();
            system.block_on(async move {
                let started = build().start().await.map_err(|error| error.to_string());
                let runs = started.is_ok();
                if tell.send(started).is_ok() && runs {
                    // Never sent, only dropped.
                    cut.await.unwrap_or_default();
                }
            });
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(main)?;
        let node = told.await.map_err(|_| format!("the thread of {name} has ended"))??;
        Ok(Self { name, node, power: Some(power), thread: Some(thread) })
    }

    /// Cuts the power.
    pub(crate) fn kill(mut self) {
        drop(self.power.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked is as dead as one that ended.
            drop(thread.join());
        }
    }
}
