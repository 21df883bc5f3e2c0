//! What a program may plug into a node: a placement and a transport of its own.
#![cfg(feature = "tcp")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use crate::support::eventually;
use archipelago::embedded::EmbeddedStore;
use archipelago::membership::MemberStatus;
use archipelago::placement::{Candidate, ChooseNode, NodeId, Wanted};
use archipelago::prelude::*;
use archipelago::{Builder, CallOptions};
use archipelago_tcp::{Security, TcpSettings, TcpTransport};

/// Answers with the id of the node that hosts the actor.
#[remote(u64)]
struct Where;

#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Guest(NodeId);

impl Actor for Guest {
    type Context = Context<Self>;
}

impl Handler<Where> for Guest {
    type Result = u64;
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u64 {
        self.0.as_u64()
    }
}

fn over_tcp() -> Builder {
    Node::builder()
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "1")
}

fn hosting(builder: Builder) -> Builder {
    builder.actor_with(|_, node| Guest(node.id()))
}

fn patient() -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(20))
}

/// Two nodes on one store that have found each other.
async fn pair(of: impl Fn() -> Builder) -> [Node; 2] {
    let store = Arc::new(EmbeddedStore::default());
    let first = of().embedded_store(Arc::clone(&store)).start().await.unwrap();
    let second = of().embedded_store(store).start().await.unwrap();
    let nodes = [first, second];
    let up = |node: &Node| node.members().iter().filter(|member| member.status == MemberStatus::Up).count();
    eventually("the nodes have found each other", || nodes.iter().all(|node| up(node) == 2)).await;
    nodes
}

async fn stop(nodes: [Node; 2]) {
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// Everything goes to the greatest node.
#[derive(Debug)]
struct Greatest;

impl ChooseNode for Greatest {
    fn order(&self, _: &Wanted<'_>, candidates: &[Candidate]) -> Vec<NodeId> {
        candidates.iter().map(|candidate| candidate.node).max().into_iter().collect()
    }
}

#[actix::test]
async fn a_placement_of_ones_own_says_where_actors_live() {
    let nodes = pair(|| hosting(over_tcp().placement(Greatest))).await;
    let greatest = nodes.iter().map(Node::id).max().unwrap().as_u64();
    for key in 0..8 {
        let at = nodes[key % 2].actor::<Guest>(format!("g{key}")).send_with(Where, patient()).await;
        assert_eq!(at, Ok(greatest), "guest {key}");
    }
    stop(nodes).await;
}

#[actix::test]
async fn nodes_reach_each_other_over_a_transport_of_ones_own() {
    let own = || {
        let transport = Arc::new(TcpTransport::new(TcpSettings::default(), Security::Insecure));
        let builder = Node::builder().transport(transport).set("transport.bind", "127.0.0.1:0");
        hosting(builder.set("node.data_arbiters", "1").placement(Greatest))
    };
    let nodes = pair(own).await;
    let greatest = nodes.iter().map(Node::id).max().unwrap().as_u64();
    for node in &nodes {
        assert_eq!(node.actor::<Guest>("g").send_with(Where, patient()).await, Ok(greatest));
    }
    stop(nodes).await;
}
