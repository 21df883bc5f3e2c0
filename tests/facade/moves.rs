//! Shards move between nodes of one store: to a node that joins later, and away from one that leaves.
#![expect(clippy::disallowed_methods, reason = "a test waits in real time")]

use std::time::Duration;

use archipelago::handoff::HandOffOutcome;
use archipelago::identity::NodeId;
use archipelago::prelude::*;
use archipelago::{Builder, CallOptions, Event, Notice, Subscription};

use crate::support::{free_port, on_loopback};

#[remote(u64)]
struct Where;

/// Says on which node it lives.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Dweller(NodeId);

impl Actor for Dweller {
    type Context = Context<Self>;
}

impl Handler<Where> for Dweller {
    type Result = u64;
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u64 {
        self.0.as_u64()
    }
}

fn node(bind: &str) -> Builder {
    on_loopback(bind).actor_with(|_, node| Dweller(node.id()))
}

/// A node that serves its store, and another that joined it.
async fn two_nodes(rebalance: &str) -> (Node, Node) {
    let address = format!("127.0.0.1:{}", free_port());
    let first = node(&address).set("backend.embedded.serve", "true").set("sharding.rebalance", rebalance);
    let first = first.start().await.expect("a node on loopback starts");
    ask_all(&first).await;
    let second = node("127.0.0.1:0").set("backend.embedded.join", &address);
    let second = second.set("sharding.rebalance", rebalance).start().await;
    (first, second.expect("a node on loopback starts"))
}

/// Where every dweller lives, asked through `node`; each must answer.
async fn ask_all(node: &Node) -> Vec<u64> {
    let mut homes = Vec::new();
    for key in 0..DWELLERS {
        let patient = CallOptions::new().timeout(Duration::from_secs(30));
        let home = node.actor::<Dweller>(key.to_string()).send_with(Where, patient).await;
        homes.push(home.expect("every call is answered"));
    }
    homes
}

/// Waits until so many shards have moved to a node.
async fn moved_to(events: &mut Subscription, node: NodeId, count: usize) {
    let mut moved = 0;
    let all = async {
        while moved < count {
            let event = events.next().await.expect("the node is there");
            moved += usize::from(matches!(event, Notice::Event(Event::ShardMoved { to, .. }) if to == node));
        }
    };
    let in_time = actix::clock::timeout(LIMIT, all).await;
    assert!(in_time.is_ok(), "{moved} of {count} shards have moved");
}

fn living_on(homes: &[u64], node: &Node) -> usize {
    homes.iter().filter(|home| **home == node.id().as_u64()).count()
}

/// Proves: R144, R286, R287, R302, R470, R482
#[actix::test]
async fn a_node_that_joins_later_gets_its_share_and_nobody_notices_but_by_the_place() {
    let (first, second) = two_nodes("true").await;
    let mut events = first.events().subscribe();
    moved_to(&mut events, second.id(), DWELLERS / 4).await;
    for node in [&first, &second] {
        let homes = ask_all(node).await;
        assert!(living_on(&homes, &second) >= DWELLERS / 8, "{homes:?}");
        assert_eq!(living_on(&homes, &first) + living_on(&homes, &second), DWELLERS);
    }
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn without_balance_shards_move_by_order_and_away_from_a_node_that_leaves() {
    let (first, second) = two_nodes("false").await;
    let id = first.actor::<Dweller>("7").id().unwrap().stable_hash();
    let shard = u32::try_from(id % 256).unwrap();
    let ordered = async {
        // The node is known to the other one once it has been let in.
        while !matches!(first.move_shard("Dweller", shard, second.id()).await, Ok(HandOffOutcome::Moved(_))) {
            actix::clock::sleep(Duration::from_millis(20)).await;
        }
    };
    actix::clock::timeout(LIMIT, ordered).await.unwrap();
    let homes = ask_all(&first).await;
    assert_eq!(homes[7], second.id().as_u64());
    assert!(living_on(&homes, &first) > DWELLERS / 2, "nothing else has moved");
    let mut events = second.events().subscribe();
    let is_up = || {
        let members = second.members();
        members.iter().filter(|member| member.status == archipelago::membership::MemberStatus::Up).count()
            == 2
    };
    let settled = async {
        while !is_up() {
            actix::clock::sleep(Duration::from_millis(20)).await;
        }
    };
    actix::clock::timeout(LIMIT, settled).await.unwrap();
    second.stop().await.unwrap();
    moved_to(&mut events, first.id(), 1).await;
    assert_eq!(living_on(&ask_all(&first).await, &first), DWELLERS);
    first.stop().await.unwrap();
}

/// How many actors there are, in almost as many shards.
const DWELLERS: usize = 64;
/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
