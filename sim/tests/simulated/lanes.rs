//! One lane between two nodes: large messages keep their place on it, and a receiver that stands still fills it. What becomes
//! of what is sent to that one, by each of the strategies for a full lane.

use std::time::Duration;

use archipelago::prelude::*;
use archipelago_memory::NetworkSettings;
use archipelago_protocol::call::Queue;
use archipelago_protocol::link::Overflow;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeBuilder, NodeSettings, RemoteSettings};
use archipelago_sim::{Link, Simulation, World, bind_of};
use futures_util::future::join_all;

/// A number, and something to carry.
#[remote(())]
struct Note(u32, Vec<u8>);

#[remote(Vec<u32>)]
struct Notes;

/// Notes the numbers down.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Note, Notes))]
struct Scribe(Vec<u32>);

impl Actor for Scribe {
    type Context = Context<Self>;
}

impl Handler<Note> for Scribe {
    type Result = ();

    fn handle(&mut self, Note(number, _): Note, _: &mut Context<Self>) {
        self.0.push(number);
    }
}

impl Handler<Notes> for Scribe {
    type Result = MessageResult<Notes>;

    fn handle(&mut self, _: Notes, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.0.clone())
    }
}

/// Node 0 hosts the scribe, node 1 writes to it, over a network that takes little of what is not read.
fn two_nodes(change: impl Fn(&mut RemoteSettings) + 'static) -> Simulation {
    let network = NetworkSettings { lane_window: 1 << 10, ..NetworkSettings::default() };
    let settings = |index| {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(1);
        settings.remote.bind = bind_of(index);
        settings
    };
    let host = move |builder: NodeBuilder| builder.settings(settings(0)).actor::<Scribe>();
    let caller = move |builder: NodeBuilder| {
        let mut settings = settings(1);
        change(&mut settings.remote);
        builder.settings(settings).remote_actor::<Scribe>()
    };
    Simulation::new(23).with_network_of(network).node(host).node(caller)
}

fn scribe(world: &World) -> ActorRef<Scribe> {
    world.node(1).expect("node 1 is up").actor::<Scribe>("one")
}

fn ask(
    world: &World,
    number: u32,
    (length, millis): (usize, u64),
) -> impl Future<Output = Result<(), CallError>> + use<> {
    let (scribe, options) = (scribe(world), CallOptions::new().timeout(Duration::from_millis(millis)));
    from_outside(|| scribe.send_with(Note(number, vec![7; length]), options))
}

fn tell(world: &World, number: u32, length: usize) {
    let scribe = scribe(world);
    from_outside(|| scribe.tell(Note(number, vec![7; length]))).expect("whether there is room shows later");
}

async fn notes(world: &World) -> Vec<u32> {
    let (scribe, options) = (scribe(world), CallOptions::new().timeout(Duration::from_secs(20)));
    from_outside(|| scribe.send_with(Notes, options)).await.expect("the scribe answers")
}

/// Node 1 has spoken to the scribe, whose node stands still from now on.
async fn stall(world: &World) {
    ask(world, 0, (0, 5_000)).await.expect("the scribe answers");
    world.pause(0, STILL);
}

/// What node 1 shows shortly after it has sent something.
async fn shown(world: &World, gauge: &str) -> usize {
    world.advance(Duration::from_millis(100)).await;
    world.gauge(1, gauge) as usize
}

fn lost(world: &World) -> u64 {
    world.counter(1, "archipelago_dead_letters_total")
        + world.counter(1, "archipelago_remote_dead_letters_total")
}

fn full(bound: usize) -> Result<(), CallError> {
    Err(CallError::Overloaded { queue: Queue::Lane, bound: bound as u32 })
}

/// Large messages travel on streams of their own, which no transport orders against its lane.
#[test]
fn large_keeps_order() {
    let large = |remote: &mut RemoteSettings| remote.frame = 4 << 10;
    two_nodes(large).run(async |world| {
        ask(&world, 0, (0, 5_000)).await.expect("the scribe answers");
        world.slow_link(
            1,
            0,
            Link { latency: Millis(2), jitter: Millis(40), loss_per_mille: 50, duplicate_per_mille: 0 },
        );
        let mut asks = Vec::new();
        for number in 1..40 {
            let length = if number % 13 == 2 { 30 << 10 } else { 100 };
            match number % 3 {
                0 => tell(&world, number, length),
                _ => asks.push(ask(&world, number, (length, 60_000))),
            }
        }
        assert!(join_all(asks).await.iter().all(Result::is_ok));
        assert_eq!(notes(&world).await, (0..40).collect::<Vec<_>>());
    });
}

/// Proves: R123, R124, R433
#[test]
fn a_full_lane_that_fails_refuses_what_it_has_no_room_for() {
    two_nodes(|remote| remote.lane_bytes = BOUND).run(async |world| {
        stall(&world).await;
        let mut asks = Vec::new();
        for wave in 0..3 {
            asks.extend((1..=20).map(|number| ask(&world, 20 * wave + number, (LOAD, 20_000))));
            // What the network is given now counts as long as it does not take all of it.
            assert!(shown(&world, BYTES).await <= BOUND);
        }
        let answers = join_all(asks).await;
        let taken: Vec<u32> =
            (1..=60).zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(number, _)| number).collect();
        assert!(answers.iter().all(|answer| answer.is_ok() || *answer == full(BOUND)), "{answers:?}");
        assert!(taken.len() > 5 && taken.len() * LOAD <= BOUND, "{taken:?}");
        assert_eq!(notes(&world).await[1..], taken);
    });
}

/// Proves: R123, R124, R433
#[test]
fn asks_wait_for_room_in_a_full_lane_in_order_and_no_tell_overtakes_them() {
    let waits = |remote: &mut RemoteSettings| {
        (remote.lane_bytes, remote.overflow) = (2 * BOUND, Overflow::Wait);
    };
    two_nodes(waits).run(async |world| {
        stall(&world).await;
        let mut asks: Vec<_> = (1..=40).map(|number| ask(&world, number, (LOAD, 20_000))).collect();
        tell(&world, 99, 0);
        asks.extend((41..=44).map(|number| ask(&world, number, (LOAD, 20_000))));
        let answers = async { join_all(asks).await };
        let (answers, waiting) = futures_util::future::join(answers, shown(&world, WAITING)).await;
        assert!(waiting > 0, "they do not fit all at once");
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(notes(&world).await, (0..=44).collect::<Vec<_>>());
        assert_eq!(lost(&world), 1, "the tell");
        assert_eq!(shown(&world, WAITING).await, 0);
    });
}

/// Proves: R124, R433
#[test]
fn an_ask_waits_for_room_until_its_deadline_and_only_so_many_may() {
    let waits = |remote: &mut RemoteSettings| {
        (remote.lane_bytes, remote.overflow, remote.lane_waiting) = (2 * BOUND, Overflow::Wait, 4);
    };
    two_nodes(waits).run(async |world| {
        stall(&world).await;
        let mut asks: Vec<_> = (1..=50).map(|number| ask(&world, number, (LOAD, 20_000))).collect();
        // Some of those who wait have room when it is known how much the first batch takes.
        assert!((1..4).contains(&shown(&world, WAITING).await));
        let hasty = ask(&world, 999, (LOAD, 500));
        asks.extend((51..=60).map(|number| ask(&world, number, (LOAD, 20_000))));
        assert_eq!(shown(&world, WAITING).await, 4);
        assert_eq!(hasty.await, Err(CallError::Timeout { started: false }));
        let answers = join_all(asks).await;
        assert!(answers.iter().all(|answer| answer.is_ok() || *answer == full(4)), "{answers:?}");
        let taken = (1..=60).zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(number, _)| number);
        assert_eq!(notes(&world).await[1..], taken.collect::<Vec<_>>(), "what has not started never does");
    });
}

/// Proves: R124, R433
#[test]
fn an_ask_beyond_the_bound_of_calls_waits_for_the_answer_to_another() {
    let waits = |remote: &mut RemoteSettings| {
        (remote.lane_calls, remote.lane_waiting, remote.overflow) = (8, 4, Overflow::Wait);
    };
    two_nodes(waits).run(async |world| {
        stall(&world).await;
        let asks: Vec<_> = (1..=12).map(|number| ask(&world, number, (0, 20_000))).collect();
        let (answers, waiting) = futures_util::future::join(join_all(asks), shown(&world, WAITING)).await;
        assert_eq!(waiting, 4, "four are on their way");
        assert!(answers[..8].iter().all(Result::is_ok), "{answers:?}");
        assert!(answers[8..].iter().all(|answer| *answer == full(8)), "{answers:?}");
        assert_eq!(notes(&world).await, (0..=8).collect::<Vec<_>>());
    });
}

/// Proves: R123, R124, R433
#[test]
fn a_full_lane_that_drops_the_oldest_keeps_the_newest_and_says_what_it_has_lost() {
    let drops = |remote: &mut RemoteSettings| {
        (remote.lane_bytes, remote.overflow) = (2 * BOUND, Overflow::DropOldest);
    };
    two_nodes(drops).run(async |world| {
        stall(&world).await;
        for wave in 0..3 {
            (1..=20).for_each(|number| tell(&world, 20 * wave + number, LOAD));
            let held = shown(&world, BYTES).await;
            assert!(held <= BOUND, "{held} bytes wait, half of the bound may");
        }
        world.advance(STILL).await;
        let noted = notes(&world).await;
        assert!(noted.is_sorted() && noted.last() == Some(&60), "{noted:?}");
        assert!(noted.len() > 20 && noted.len() * LOAD <= 2 * BOUND, "{noted:?}");
        assert_eq!(noted.len() as u64 - 1 + lost(&world), 60, "each has arrived or is a dead letter");
        world.pause(0, STILL);
        let asks: Vec<_> = (101..=160).map(|number| ask(&world, number, (LOAD, 20_000))).collect();
        let answers = join_all(asks).await;
        let kept = (101..=160).zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(number, _)| number);
        let kept: Vec<u32> = noted.into_iter().chain(kept).collect();
        assert!(answers.iter().all(|answer| answer.is_ok() || *answer == full(2 * BOUND)), "{answers:?}");
        assert!(answers[59].is_ok() && answers[30].is_err(), "{answers:?}");
        assert_eq!(notes(&world).await, kept);
    });
}

/// How long node 0 stands still.
const STILL: Duration = Duration::from_secs(2);
/// A bound that some of the messages fit into.
const BOUND: usize = 4 << 10;
/// What a message carries.
const LOAD: usize = 200;
const BYTES: &str = "archipelago_lane_bytes";
const WAITING: &str = "archipelago_lane_waiting";
