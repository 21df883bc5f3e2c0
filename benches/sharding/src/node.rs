//! The nodes that are measured, all over plain TCP on loopback with one data arbiter each.

use archipelago::Builder;
use archipelago::identity::NodeId;
use archipelago::prelude::*;

/// Says on which node it lives.
#[remote(u64)]
pub(crate) struct Where;

/// As small as an actor can be.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
pub(crate) struct Target(NodeId);

impl Actor for Target {
    type Context = Context<Self>;
}

impl Handler<Where> for Target {
    type Result = u64;

    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u64 {
        self.0.as_u64()
    }
}

/// A node with these settings that listens at `bind`.
pub(crate) fn node(bind: &str, settings: &[(String, String)]) -> Builder {
    let builder = Node::builder()
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", bind)
        .set("node.data_arbiters", "1")
        .set("actors.idle_after", "10m");
    settings.iter().fold(builder, |builder, (key, value)| builder.set(key, value))
}

/// The same, and it hosts the targets.
pub(crate) fn host(bind: &str, settings: &[(String, String)]) -> Builder {
    node(bind, settings).actor_with(|_, node| Target(node.id()))
}

/// A free port, as far as that can be known.
pub(crate) fn free_address() -> String {
    let bound = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.expect("loopback has free ports").to_string()
}
