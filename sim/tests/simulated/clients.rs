//! Light clients of a simulated cluster: shards that move under their messages, contacts that die, connections that break.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::Outcome;
use archipelago::handoff::HandOffOutcome;
use archipelago::identity::{NodeAddress, NodeId};
use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{AskError, Connector, NodeBuilder, NodeSettings, Service};
use archipelago_sim::{Simulation, World};
use bytes::Bytes;
use futures_core::future::BoxFuture;

/// A number, to be written down.
#[remote]
struct Note(u32);

/// Writes into the one notebook of the test.
#[derive(VirtualActor)]
#[virtual_actor(handles(Note))]
struct Scribe(Notebook);

type Notebook = Arc<Mutex<Vec<u32>>>;

impl Actor for Scribe {
    type Context = Context<Self>;
}

impl Handler<Note> for Scribe {
    type Result = ();

    fn handle(&mut self, Note(number): Note, _: &mut Context<Self>) {
        self.0.lock().expect("nobody panicked").push(number);
    }
}

#[remote(u64)]
struct Where;

/// Knows on which node it lives.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Homebody(u64);

impl Actor for Homebody {
    type Context = Context<Self>;
}

impl Handler<Where> for Homebody {
    type Result = u64;

    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

fn address(index: usize) -> NodeAddress {
    NodeAddress::new(&format!("node-{index}"), 7_000).expect("a plain address")
}

fn settings(index: usize) -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.sharding.rebalance = false;
    settings.remote.bind = address(index);
    settings
}

/// Three members, and a client, node 3, that knows some of them.
fn three_and_a_client(seed: u64, contacts: &'static [usize], notebook: &Notebook) -> Simulation {
    let mut simulation = Simulation::new(seed).with_network().without_observer();
    for index in 0..3 {
        let notebook = Arc::clone(notebook);
        simulation = simulation.node(move |builder| {
            let notebook = Arc::clone(&notebook);
            let builder = builder.settings(settings(index)).actor::<Counter>();
            let builder = builder.actor_with(move |_, _| Scribe(Arc::clone(&notebook)));
            builder.actor_with(|_, node| Homebody(node.id().as_u64()))
        });
    }
    simulation.node(move |builder| {
        let builder: NodeBuilder = builder.settings(settings(CLIENT)).remote_actor::<Counter>();
        builder
            .remote_actor::<Scribe>()
            .remote_actor::<Homebody>()
            .client(contacts.iter().map(|index| address(*index)))
    })
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

fn tick(world: &World, key: &str) -> impl Future<Output = Result<u32, CallError>> {
    let counter = node(world, CLIENT).actor::<Counter>(key);
    let options = CallOptions::new().timeout(Duration::from_secs(10));
    from_outside(|| counter.send_with(Tick, options))
}

fn home_of(world: &World, key: &str) -> impl Future<Output = Result<u64, CallError>> {
    let homebody = node(world, CLIENT).actor::<Homebody>(key);
    let options = CallOptions::new().timeout(Duration::from_secs(10));
    from_outside(|| homebody.send_with(Where, options))
}

async fn move_scribe(world: &World, to: usize) -> HandOffOutcome {
    let hash = node(world, 0).actor::<Scribe>("one").id().expect("the key is one").stable_hash();
    let shard = u32::try_from(hash % 256).expect("a shard is a small number");
    let target = node(world, to).id();
    node(world, 0).move_shard("Scribe", shard, target).await.expect("the owner can be asked")
}

/// Proves: R332
#[test]
fn nothing_is_lost_or_overtaken_while_a_shard_moves_under_the_messages_of_a_client() {
    for seed in 1..=10 {
        let notebook = Notebook::default();
        let run = three_and_a_client(seed, &[0, 1], &notebook).run(async |world| {
            world.advance(Duration::from_secs(5)).await;
            let scribe = node(&world, CLIENT).actor::<Scribe>("one");
            from_outside(|| scribe.send(Note(0))).await.expect("somebody serves it");
            let moves = {
                let world = world.clone();
                async move {
                    let mut moved = 0;
                    for round in 0..9 {
                        world.advance(Duration::from_millis(40)).await;
                        let outcome = move_scribe(&world, round % 3).await;
                        moved += u32::from(matches!(outcome, HandOffOutcome::Moved(_)));
                    }
                    moved
                }
            };
            let sends = async {
                for number in 1..=LAST {
                    from_outside(|| scribe.tell(Note(number))).expect("there is room");
                    world.advance(Duration::from_millis(1)).await;
                }
            };
            let (moved, ()) = futures_util::future::join(moves, sends).await;
            world.advance(Duration::from_secs(5)).await;
            moved
        });
        assert!(run.output >= 3, "seed {seed}: the shard moved {} times", run.output);
        let written = notebook.lock().unwrap().clone();
        assert_eq!(written, (0..=LAST).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_client_goes_on_with_another_contact_when_one_dies() {
    for seed in 1..=5 {
        three_and_a_client(seed, &[0, 1], &Notebook::default()).run(async |world| {
            world.advance(Duration::from_secs(5)).await;
            for (n, dies) in [(0, 0), (1, 1)] {
                for key in 0..8 {
                    assert_eq!(tick(&world, &format!("{n}/{key}")).await, Ok(1), "seed {seed}");
                }
                world.crash(dies).await;
                // What the dead node served is served elsewhere once its session has ended.
                world.advance(Duration::from_secs(10)).await;
                if dies == 0 {
                    for key in 0..8 {
                        let ticked = tick(&world, &format!("{n}/{key}")).await;
                        assert!(matches!(ticked, Ok(1 | 2)), "seed {seed}: {ticked:?}");
                    }
                }
            }
        });
    }
}

#[test]
fn without_contacts_known_ways_go_on_and_new_ones_fail_in_time() {
    three_and_a_client(3, &[0], &Notebook::default()).run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        let mut alive = Vec::new();
        for key in 0..30 {
            let key = format!("k{key}");
            let home = home_of(&world, &key).await.expect("somebody serves it");
            alive.extend((home != node(&world, 0).id().as_u64()).then_some((key, home)));
        }
        assert!(alive.len() > 5, "the other members serve most of them");
        world.crash(0).await;
        world.advance(Duration::from_secs(1)).await;
        for (key, home) in &alive {
            assert_eq!(home_of(&world, key).await, Ok(*home), "the way to the owner is known");
        }
        let begun = world.now();
        let error = tick(&world, "never heard of").await.expect_err("nobody says where it is");
        assert_eq!(error.outcome(), Outcome::NotStarted, "{error}");
        assert_eq!((world.now() - begun).as_secs(), 10, "by its deadline");
        // The contact is back at its address, as another node.
        world.restart_at_once(0).await.expect("it starts");
        assert_eq!(tick(&world, "never heard of").await, Ok(1));
    });
}

#[test]
fn a_broken_connection_costs_a_client_nothing_but_time() {
    for seed in 1..=5 {
        let notebook = Notebook::default();
        three_and_a_client(seed, &[0, 1, 2], &notebook).run(async |world| {
            world.advance(Duration::from_secs(5)).await;
            assert_eq!(tick(&world, "a").await, Ok(1));
            for round in 2..=6 {
                world.reset_connections(CLIENT);
                world.advance(Duration::from_millis(200)).await;
                assert_eq!(tick(&world, "a").await, Ok(round), "seed {seed}");
            }
        });
    }
}

/// Answers with what it is asked.
struct Echo;

impl Service for Echo {
    fn serve(&self, _: NodeId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        Box::pin(async move { Ok(request) })
    }
}

#[test]
fn what_nodes_serve_each_other_is_refused_to_clients() {
    let (inside, outside) = (Connector::new(), Connector::new());
    let (member, client) = (inside.clone(), outside.clone());
    let simulation = Simulation::new(2).with_network().without_observer();
    let simulation = simulation.node(|builder| builder.settings(settings(0)).service(1, Arc::new(Echo)));
    let simulation = simulation.node(move |builder| builder.settings(settings(1)).connector(member.clone()));
    let simulation = simulation
        .node(move |builder| builder.settings(settings(2)).client([address(0)]).connector(client.clone()));
    simulation.run(async |world| {
        world.advance(Duration::from_secs(3)).await;
        let ask =
            async |by: &Connector| by.ask(address(0), 1, Bytes::from_static(b"hello"), Millis(2_000)).await;
        assert_eq!(ask(&inside).await, Ok(Bytes::from_static(b"hello")));
        let refused = ask(&outside).await;
        assert!(
            matches!(&refused, Err(AskError::NotSent { reason }) if reason.contains("clients")),
            "{refused:?}"
        );
    });
}

#[test]
fn a_client_that_stops_leaves_nothing_behind() {
    three_and_a_client(1, &[0], &Notebook::default()).run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        let (before, _) = world.network_load();
        for key in 0..30 {
            assert_eq!(tick(&world, &format!("k{key}")).await, Ok(1));
        }
        assert!(world.network_load().0 > before, "the client is connected to the members");
        world.stop(CLIENT).await.expect("it has nothing to finish");
        world.advance(Duration::from_secs(15)).await;
        assert!(world.network_load().0 < before, "{} connections, {before} before", world.network_load().0);
        for index in 0..3 {
            assert_eq!(node(&world, index).members().len(), 3);
        }
    });
}

const CLIENT: usize = 3;
const LAST: u32 = 500;
