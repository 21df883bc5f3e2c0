//! Shards that move while other calls of the same lane are under way: whatever takes its time must not cost those calls their
//! connection.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::sync::Arc;
use std::time::Duration;

use archipelago::handoff::HandOffOutcome;
use archipelago::prelude::*;
use archipelago_protocol::placement::Local;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Link, Simulation, World};

/// Takes its time, and as many bytes as it is told to.
#[remote(u32)]
struct Ponder {
    millis: u64,
    load: Vec<u8>,
}

/// Does one thing after the other.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Ponder))]
struct Thinker(u32);

impl Actor for Thinker {
    type Context = Context<Self>;
}

impl Handler<Ponder> for Thinker {
    type Result = ResponseFuture<u32>;

    fn handle(&mut self, Ponder { millis, .. }: Ponder, _: &mut Context<Self>) -> ResponseFuture<u32> {
        self.0 += 1;
        let count = self.0;
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(millis)).await;
            count
        })
    }
}

/// Whoever asks first owns the shard.
fn three_hosts() -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.sharding.rebalance = false;
    settings.placement = Arc::new(Local);
    Simulation::new(17).nodes(3, &settings, |node| node.actor::<Thinker>())
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

fn ponder(
    world: &World,
    (from, key): (usize, &str),
    millis: u64,
    load: usize,
) -> impl Future<Output = Result<u32, CallError>> + use<> {
    let thinker = node(world, from).actor::<Thinker>(key);
    let options = CallOptions::new().timeout(Duration::from_secs(20));
    from_outside(|| thinker.send_with(Ponder { millis, load: vec![7; load] }, options))
}

fn shard_of(world: &World, key: &str) -> u32 {
    let hash = node(world, 0).actor::<Thinker>(key).id().expect("a plain key").stable_hash();
    u32::try_from(hash % 256).expect("a shard is a small number")
}

async fn move_to(world: &World, key: &str, to: usize) {
    let target = node(world, to).id();
    let outcome = node(world, 0).move_shard("Thinker", shard_of(world, key), target).await;
    assert!(matches!(outcome, Ok(HandOffOutcome::Moved(_))), "{outcome:?}");
}

/// Node 0 owns both shards, and node 1 has spoken to them.
async fn begin(world: &World) {
    world.advance(Duration::from_secs(5)).await;
    assert_ne!(shard_of(world, "a"), shard_of(world, "b"));
    for key in ["a", "b"] {
        assert_eq!(ponder(world, (0, key), 0, 0).await, Ok(1));
        assert_eq!(ponder(world, (1, key), 0, 0).await, Ok(2));
    }
}

#[test]
fn a_shard_moves_at_once_while_a_large_call_to_another_runs() {
    three_hosts().run(async |world| {
        begin(&world).await;
        let large = ponder(&world, (1, "a"), 4_000, LARGE);
        let moved = async {
            world.advance(Duration::from_millis(500)).await;
            move_to(&world, "b", 2).await;
            let began = world.now();
            assert_eq!(ponder(&world, (1, "b"), 0, 0).await, Ok(1), "the new owner counts anew");
            world.now() - began
        };
        let (large, took) = futures_util::future::join(large, moved).await;
        assert_eq!(large, Ok(3), "its connection must stay");
        assert!(took < Duration::from_millis(500), "{took:?}");
    });
}

#[test]
fn a_shard_moves_at_once_while_a_large_message_to_another_is_on_its_way() {
    three_hosts().run(async |world| {
        begin(&world).await;
        // Only so much is under way at once, so that the whole takes some seconds.
        let slow = Link { latency: Millis(20), jitter: Millis(0), loss_per_mille: 0, duplicate_per_mille: 0 };
        world.slow_link(1, 0, slow);
        let large = ponder(&world, (1, "a"), 0, 16 * LARGE);
        let moved = async {
            world.advance(Duration::from_millis(50)).await;
            move_to(&world, "b", 2).await;
            assert_eq!(ponder(&world, (1, "b"), 0, 0).await, Ok(1), "the new owner counts anew");
        };
        let (large, ()) = futures_util::future::join(large, moved).await;
        assert_eq!(large, Ok(3), "its connection must stay");
    });
}

#[test]
fn what_cannot_go_back_may_wait_for_a_long_handler_without_costing_others_their_connection() {
    three_hosts().run(async |world| {
        begin(&world).await;
        let (first, other) = (ponder(&world, (1, "a"), 1_800, 0), ponder(&world, (1, "b"), 1_700, 0));
        let behind = async {
            world.advance(Duration::from_millis(50)).await;
            ponder(&world, (1, "a"), 0, LARGE).await
        };
        let moved = async {
            world.advance(Duration::from_millis(200)).await;
            move_to(&world, "a", 2).await;
        };
        // It comes back, because the shard is on its way; so node 1 asks node 0 to settle.
        let late = async {
            world.advance(Duration::from_millis(400)).await;
            ponder(&world, (1, "a"), 0, 0).await
        };
        let all = futures_util::future::join5(first, other, behind, moved, late).await;
        assert_eq!(all, (Ok(3), Ok(3), Ok(4), (), Ok(1)), "all are answered, and the new owner counts anew");
    });
}

/// More than fits into a frame.
const LARGE: usize = 2 << 20;
