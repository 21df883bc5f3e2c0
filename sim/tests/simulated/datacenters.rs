//! Several datacenters, each with a store and a cluster of its own: messages find their actors wherever these live.

mod cuts;
mod doubts;
mod homes;
mod moves;
mod outages;
mod sweep;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::handoff::HandOffOutcome;
use archipelago::prelude::*;
use archipelago_protocol::contract::{DirectoryError, HomeStamp, Homes, SettledHome};
use archipelago_protocol::datacenter::{
    DataCenterId, DataCenterInfo, DataCenterMap, DataCenterState, HomeByKey, MapEntry, OnSilence, OnStale,
};
use archipelago_protocol::identity::{ActorId, NodeId};
use archipelago_protocol::placement::{KindLayout, ShardCount};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{AskError, Connector, NodeBuilder, NodeSettings, Reach, Service};
use archipelago_sim::{Link, Simulation, World};
use bytes::Bytes;
use futures_util::future::BoxFuture;

// ---- the islands ----

/// What each datacenter is like: how many nodes it has.
struct Islands<'a>(&'a [usize]);

fn id(island: usize) -> DataCenterId {
    DataCenterId::new(&format!("dc{island}")).expect("a plain name is an id")
}

fn settings(island: usize) -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(2);
    settings.remote.datacenter = id(island).to_string();
    settings.placement = Arc::new(archipelago_protocol::placement::Local);
    settings.sharding.rebalance = false;
    settings
}

/// A map in which nothing is known but our own name.
fn only(island: usize) -> DataCenterMap {
    DataCenterMap::new(Some(id(island)), Vec::new())
}

impl Islands<'_> {
    fn simulation(
        &self,
        seed: u64,
        tune: impl Fn(&mut NodeSettings),
        build: impl Fn(usize, NodeBuilder) -> NodeBuilder + Clone + 'static,
    ) -> Simulation {
        let mut simulation = Simulation::new(seed);
        for (island, count) in self.0.iter().copied().enumerate() {
            let (build, mut own) = (build.clone(), settings(island));
            tune(&mut own);
            simulation = simulation
                .nodes(count, &own, move |node| build(island, node).datacenters(only(island)))
                .another_datacenter();
        }
        simulation
    }

    /// Every node hosts the counters and logs.
    fn of_counters(&self, seed: u64) -> Simulation {
        self.simulation(seed, |_| (), |_, node| node.actor::<Counter>().actor::<Clerk>())
    }

    fn first_of(&self, island: usize) -> usize {
        self.0[..island].iter().sum()
    }

    /// The map as everybody with these standings would see it from `own`.
    fn map(&self, world: &World, own: usize, standings: &[DataCenterState]) -> DataCenterMap {
        let entry = |(island, standing): (usize, &DataCenterState)| {
            let nodes = self.first_of(island)..self.first_of(island) + self.0[island];
            let endpoints = nodes.filter_map(|index| Some(world.node(index)?.address())).collect();
            let info = DataCenterInfo::new(id(island).as_str(), "", "").expect("a plain name will do");
            MapEntry { info: info.with_endpoints(endpoints).expect("they are few"), standing: *standing }
        };
        DataCenterMap::new(Some(id(own)), standings.iter().enumerate().map(entry).collect())
    }

    fn show(&self, world: &World, standings: &[DataCenterState]) {
        for island in 0..self.0.len() {
            let map = self.map(world, island, standings);
            for index in self.first_of(island)..self.first_of(island) + self.0[island] {
                if let Some(node) = world.node(index) {
                    node.show_datacenters(map.clone());
                }
            }
        }
    }

    /// Waits until the clusters have come together, and lets them know of each other.
    async fn meet(&self, world: &World) {
        world.advance(Duration::from_secs(5)).await;
        self.show(world, &vec![DataCenterState::Active; self.0.len()]);
    }
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

async fn tick(world: &World, index: usize, key: &str) -> Result<u32, CallError> {
    let counter = node(world, index).actor::<Counter>(key);
    from_outside(|| counter.send(Tick)).await
}

#[test]
fn an_actor_abroad_that_is_spoken_to_is_not_looked_for_again() {
    let islands = Islands(&[1, 1]);
    islands.of_counters(3).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 0, "a").await, Ok(1));
        for count in 2..=20 {
            assert_eq!(tick(&world, 1, "a").await, Ok(count));
            world.advance(Duration::from_secs(2)).await;
        }
        assert_eq!(world.counter(1, "archipelago_datacenter_searches_total"), 1);
    });
}

#[test]
fn an_actor_that_is_not_where_it_was_found_is_looked_for_again() {
    let islands = Islands(&[1, 1, 1]);
    let long = |settings: &mut NodeSettings| settings.discovery.positive_life = Millis(120_000);
    islands.simulation(11, long, |_, node| node.actor::<Counter>()).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 0, "a").await, Ok(1));
        assert_eq!(tick(&world, 1, "a").await, Ok(2));
        world.crash(0).await;
        assert_eq!(tick(&world, 2, "a").await, Ok(1), "it comes to life again in another datacenter");
        let crashed = world.now();
        let mut found = tick(&world, 1, "a").await;
        while found.is_err() && world.now() - crashed < Duration::from_secs(60) {
            found = tick(&world, 1, "a").await;
        }
        assert_eq!(found, Ok(2), "long before what was found is forgotten by itself");
    });
}

// ---- an actor that writes down what it hears ----

#[remote(())]
struct Note(u32);

#[remote(Vec<u32>)]
struct Read;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Note, Read))]
struct Clerk {
    heard: Vec<u32>,
}

impl Actor for Clerk {
    type Context = Context<Self>;
}

impl Handler<Note> for Clerk {
    type Result = ();
    fn handle(&mut self, Note(number): Note, _: &mut Context<Self>) {
        self.heard.push(number);
    }
}

impl Handler<Read> for Clerk {
    type Result = Vec<u32>;
    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> Vec<u32> {
        self.heard.clone()
    }
}

// ---- finding ----

/// Proves: R398, R399, R405, R406, R409, R417, C36, C55
#[test]
fn a_call_without_a_datacenter_reaches_the_actor_wherever_it_lives() {
    let islands = Islands(&[1, 2, 1]);
    islands.of_counters(1).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 2, "one").await, Ok(1), "it comes to life where it is called first");
        assert_eq!(tick(&world, 0, "one").await, Ok(2), "another datacenter finds it there");
        assert_eq!(tick(&world, 3, "one").await, Ok(3));
        assert_eq!(tick(&world, 1, "one").await, Ok(4), "and so does another node of its own");
        assert_eq!(tick(&world, 0, "one").await, Ok(5));
    });
}

/// Proves: R400, C36
#[test]
fn an_actor_that_lives_nowhere_comes_to_life_at_home_and_one_that_lives_here_is_not_looked_for() {
    let islands = Islands(&[1, 1]);
    islands.of_counters(2).run(async |world| {
        // Both begin before they know of each other: the same id may live in two datacenters.
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(1));
        islands.meet(&world).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(2));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        assert_eq!(tick(&world, 0, "new").await, Ok(1));
        world.partition(0, 1);
        assert_eq!(tick(&world, 0, "new").await, Ok(2), "what lives here needs nobody else");
    });
}

/// Proves: R398, R399
#[test]
fn tells_and_asks_to_another_datacenter_keep_their_order() {
    let islands = Islands(&[1, 1]);
    islands.of_counters(3).run(async |world| {
        islands.meet(&world).await;
        let there = node(&world, 1).actor::<Clerk>("c");
        from_outside(|| there.send(Read)).await.expect("it comes to life there");
        let clerk = node(&world, 0).actor::<Clerk>("c");
        for number in 0..200 {
            from_outside(|| clerk.tell(Note(number))).expect("there is room");
        }
        let heard = from_outside(|| clerk.send(Read)).await;
        assert_eq!(heard, Ok((0..200).collect()));
        assert_eq!(from_outside(|| there.send(Read)).await, Ok((0..200).collect()), "it is the same actor");
    });
}

/// Proves: R403, R455
#[test]
fn the_first_answer_wins_whatever_the_slowest_datacenter_does() {
    let islands = Islands(&[1, 1, 1]);
    islands.of_counters(4).run(async |world| {
        islands.meet(&world).await;
        for key in ["one", "two", "three"] {
            assert_eq!(tick(&world, 1, key).await, Ok(1));
        }
        assert_eq!(tick(&world, 0, "one").await, Ok(2), "everybody has met");
        let slow =
            Link { latency: Millis(1_500), jitter: Millis(0), loss_per_mille: 0, duplicate_per_mille: 0 };
        world.slow_link(0, 2, slow);
        world.slow_link(2, 0, slow);
        let asked = world.now();
        assert_eq!(tick(&world, 0, "two").await, Ok(2));
        assert!(world.now() - asked < Duration::from_millis(300), "{:?}", world.now() - asked);
        world.partition(0, 2);
        let asked = world.now();
        assert_eq!(tick(&world, 0, "three").await, Ok(2));
        assert!(world.now() - asked < Duration::from_millis(300), "{:?}", world.now() - asked);
    });
}

/// Proves: R407, R455
#[test]
fn silence_abroad_delays_one_cold_actor_and_never_warm_ones() {
    let islands = Islands(&[1, 1]);
    islands.of_counters(5).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 0, "warm").await, Ok(1));
        world.partition(0, 1);
        let began = world.now();
        assert_eq!(tick(&world, 0, "cold").await, Ok(1), "it comes to life at home all the same");
        let first = world.now() - began;
        assert!(first >= Duration::from_secs(1) && first <= Duration::from_secs(4), "{first:?}");
        let began = world.now();
        assert_eq!(tick(&world, 0, "colder").await, Ok(1));
        assert_eq!(tick(&world, 0, "warm").await, Ok(2));
        assert!(world.now() - began < Duration::from_millis(50), "{:?}", world.now() - began);
    });
}

// ---- a datacenter that changes ----

/// Proves: R415, R416
#[test]
fn a_draining_datacenter_keeps_its_actors_and_an_inactive_one_is_left_out() {
    use DataCenterState::{Active, Draining, Inactive};
    let islands = Islands(&[1, 1]);
    islands.of_counters(6).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 1, "one").await, Ok(1));
        assert_eq!(tick(&world, 0, "one").await, Ok(2));
        islands.show(&world, &[Active, Draining]);
        assert_eq!(tick(&world, 0, "one").await, Ok(3), "what lives there is finished there");
        islands.show(&world, &[Active, Inactive]);
        assert_eq!(tick(&world, 0, "one").await, Ok(1), "nobody else has it, so it begins at home");
        assert_eq!(tick(&world, 1, "one").await, Ok(4));
    });
}

/// Proves: R408, C33
#[test]
fn a_map_that_is_out_of_date_is_used_or_refused_as_configured() {
    for on_stale in [OnStale::Proceed, OnStale::Fail] {
        let islands = Islands(&[1, 1]);
        let tune = |settings: &mut NodeSettings| settings.discovery.on_stale = on_stale;
        islands.simulation(7, tune, |_, node| node.actor::<Counter>()).run(async |world| {
            islands.meet(&world).await;
            assert_eq!(tick(&world, 1, "far").await, Ok(1));
            assert_eq!(tick(&world, 0, "near").await, Ok(1));
            let mut map = islands.map(&world, 0, &[DataCenterState::Active; 2]);
            map.stale = true;
            node(&world, 0).show_datacenters(map);
            assert_eq!(tick(&world, 0, "near").await, Ok(2), "local work goes on");
            let far = tick(&world, 0, "far").await;
            match on_stale {
                OnStale::Proceed => assert_eq!(far, Ok(2)),
                OnStale::Fail => {
                    assert!(matches!(far, Err(CallError::Unreachable { .. })), "{far:?}");
                    assert!(far.expect_err("it failed").is_not_started());
                }
            }
        });
    }
}

/// Proves: R398, R405
#[test]
fn a_shard_moves_within_its_datacenter_while_another_calls_and_nothing_is_lost_or_overtakes() {
    for seed in 10..20 {
        let islands = Islands(&[1, 2]);
        let heard: Arc<Mutex<Vec<u32>>> = Arc::default();
        let log = Arc::clone(&heard);
        let build = move |_, node: NodeBuilder| {
            let log = Arc::clone(&log);
            node.actor_with(move |_, _| Scribe(Arc::clone(&log)))
        };
        islands.simulation(seed, |_| (), build).run(async |world| {
            islands.meet(&world).await;
            from_outside(|| node(&world, 1).actor::<Scribe>("s").send(Note(0)))
                .await
                .expect("it begins there");
            let scribe = node(&world, 0).actor::<Scribe>("s");
            let (mut next, shard) = (1, shard_of(&scribe));
            for target in [2, 1, 2] {
                let to = node(&world, target).id();
                let moving = node(&world, 1);
                world.spawn(async move {
                    let moved = moving.move_shard("Scribe", shard, to).await;
                    assert!(matches!(moved, Ok(HandOffOutcome::Moved(_))), "{moved:?}");
                });
                for _ in 0..40 {
                    from_outside(|| scribe.tell(Note(next))).expect("there is room");
                    next += 1;
                    world.advance(Duration::from_millis(world.below(8))).await;
                }
                assert_eq!(from_outside(|| scribe.send(Note(next))).await, Ok(()));
                next += 1;
                world.advance(Duration::from_secs(1)).await;
            }
            let heard = heard.lock().expect("nobody panicked").clone();
            assert_eq!(heard, (0..next).collect::<Vec<_>>());
        });
    }
}

fn shard_of(scribe: &ActorRef<Scribe>) -> u32 {
    u32::try_from(scribe.id().expect("the key is one").stable_hash() % 256).expect("a small number")
}

/// Writes down what all its activations hear.
#[derive(VirtualActor)]
#[virtual_actor(handles(Note))]
struct Scribe(Arc<Mutex<Vec<u32>>>);

impl Actor for Scribe {
    type Context = Context<Self>;
}

impl Handler<Note> for Scribe {
    type Result = ();
    fn handle(&mut self, Note(number): Note, _: &mut Context<Self>) {
        self.0.lock().expect("nobody panicked").push(number);
    }
}

/// Proves: R398
#[test]
fn a_datacenter_may_divide_a_kind_in_its_own_way() {
    let islands = Islands(&[1, 1]);
    let tune = |settings: &mut NodeSettings| {
        let shards = if settings.remote.datacenter == "dc0" { 8 } else { 300 };
        let shards = ShardCount::new(shards).expect("a kind may have so many");
        settings.layout_by_kind.insert("Counter".to_owned(), KindLayout::sharded(shards));
    };
    islands.simulation(8, tune, |_, node| node.actor::<Counter>()).run(async |world| {
        islands.meet(&world).await;
        for n in 0..30 {
            let key = format!("k{n}");
            assert_eq!(tick(&world, 1, &key).await, Ok(1));
            assert_eq!(tick(&world, 0, &key).await, Ok(2));
            assert_eq!(tick(&world, 0, &key).await, Ok(3));
        }
    });
}

// ---- reach ----

/// Proves: C55
#[test]
fn a_kind_that_stays_local_never_asks_abroad() {
    let islands = Islands(&[1, 1]);
    let build = |_, node: NodeBuilder| node.actor::<Counter>().reach::<Counter>(Reach::Local);
    islands.simulation(9, |_| (), build).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 1, "one").await, Ok(1));
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
    });
}

/// Proves: R503, C55
#[test]
fn a_kind_with_a_home_policy_has_one_home_per_key_for_everybody() {
    let islands = Islands(&[1, 1, 1]);
    let reach = || Reach::Home(Arc::new(HomeByKey));
    let build = move |_, node: NodeBuilder| node.actor::<Counter>().reach::<Counter>(reach());
    islands.simulation(10, |_| (), build).run(async |world| {
        islands.meet(&world).await;
        for n in 0..12 {
            let key = format!("k{n}");
            for index in 0..3 {
                assert_eq!(tick(&world, index, &key).await, Ok(u32::try_from(index).unwrap() + 1));
            }
        }
    });
}

/// Says that one actor was placed in a datacenter.
struct Placed(&'static str, usize);

#[async_trait::async_trait]
impl Homes for Placed {
    async fn home_of(&self, actor: &ActorId) -> Result<Option<DataCenterId>, DirectoryError> {
        Ok((actor.key().as_str() == self.0).then(|| id(self.1)))
    }

    async fn settle_home(&self, actor: &ActorId, home: &DataCenterId) -> Result<SettledHome, DirectoryError> {
        let home = self.home_of(actor).await?.unwrap_or_else(|| home.clone());
        Ok(SettledHome { home, made: None })
    }

    async fn forget_home(&self, _: &ActorId, _: HomeStamp) -> Result<bool, DirectoryError> {
        Ok(false)
    }
}

/// Proves: C55
#[test]
fn an_actor_that_was_placed_abroad_comes_to_life_there_and_nowhere_else() {
    let islands = Islands(&[1, 1, 1]);
    let build = |_, node: NodeBuilder| node.actor::<Counter>().homes(Arc::new(Placed("one", 2)));
    islands.simulation(11, |_| (), build).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        let home = node(&world, 2).actor::<Counter>("one");
        from_outside(|| home.deactivate()).expect("it is there");
        world.advance(Duration::from_secs(11)).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(1), "again in its own datacenter");
        assert_eq!(tick(&world, 2, "one").await, Ok(2));
        world.partition(0, 2);
        world.advance(Duration::from_secs(11)).await;
        let refused = tick(&world, 0, "one").await;
        assert!(refused.as_ref().is_err_and(CallError::is_not_started), "it has one home: {refused:?}");
    });
}

/// Proves: C35
#[test]
fn a_datacenter_of_another_namespace_is_refused() {
    let islands = Islands(&[1, 1]);
    let build = |island, node: NodeBuilder| {
        node.actor::<Counter>().namespace(if island == 0 { "ours" } else { "theirs" })
    };
    islands.simulation(12, |_| (), build).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 1, "one").await, Ok(1));
        assert_eq!(tick(&world, 0, "one").await, Ok(1), "messages never cross namespaces");
    });
}

// ---- names ----

#[derive(NamedActor)]
#[named_actor(handles(Tick))]
struct Desk(u32);

impl Actor for Desk {
    type Context = Context<Self>;
}

impl Handler<Tick> for Desk {
    type Result = u32;
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}

/// Proves: R399, R400, R402, R405, R406
#[test]
fn a_named_actor_is_found_by_its_path_on_any_node_of_any_datacenter() {
    let islands = Islands(&[2, 2]);
    islands.of_counters(13).run(async |world| {
        islands.meet(&world).await;
        let far = from_outside(|| node(&world, 3).register("/desk", Desk(100).start()));
        far.expect("the path is free");
        let nobody = node(&world, 0).discover_named::<Desk>("/nobody").await;
        assert!(matches!(nobody, Err(CallError::NoSuchActor { .. })), "{nobody:?}");
        let desk = node(&world, 0).discover_named::<Desk>("/desk").await.expect("somebody has it");
        assert_eq!(from_outside(|| desk.send(Tick)).await, Ok(101));
        from_outside(|| node(&world, 1).register("/desk", Desk(0).start())).expect("the path is free here");
        let near = node(&world, 0).discover_named::<Desk>("/desk").await.expect("it is near");
        assert_eq!(from_outside(|| near.send(Tick)).await, Ok(1), "its own datacenter comes first");
        world.partition(0, 2);
        world.partition(0, 3);
        let silent = node(&world, 0).discover_named::<Desk>("/other").await;
        assert!(matches!(silent, Err(CallError::Unreachable { .. })), "{silent:?}");
    });
}

// ---- on the wire ----

/// Never answers, and notes when nobody waits any more.
struct Slow(Arc<AtomicBool>);

struct NotesItsEnd(Arc<AtomicBool>);

impl Drop for NotesItsEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Service for Slow {
    fn serve(&self, _: NodeId, _: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let ends = NotesItsEnd(Arc::clone(&self.0));
        Box::pin(async move {
            let _ends = ends;
            std::future::pending().await
        })
    }
}

/// Proves: R404, R455
#[test]
fn a_question_that_nobody_waits_for_is_cancelled_on_the_wire() {
    let (ended, connector) = (Arc::new(AtomicBool::new(false)), Connector::new());
    let (slow, way) = (Arc::clone(&ended), connector.clone());
    let islands = Islands(&[1, 1]);
    let build = move |island, node: NodeBuilder| {
        let node = node.actor::<Counter>();
        if island == 0 {
            node.connector(way.clone())
        } else {
            node.service(7, Arc::new(Slow(Arc::clone(&slow))))
        }
    };
    islands.simulation(14, |_| (), build).run(async |world| {
        islands.meet(&world).await;
        let address = node(&world, 1).address();
        {
            let asked = connector.ask(address, 7, Bytes::new(), Millis(60_000));
            let mut asked = Box::pin(from_outside(|| asked));
            let waits =
                futures_util::future::select(&mut asked, Box::pin(world.advance(Duration::from_secs(1))))
                    .await;
            assert!(matches!(waits, futures_util::future::Either::Right(_)), "it never answers");
            assert!(!ended.load(Ordering::Relaxed));
        }
        world.advance(Duration::from_millis(200)).await;
        assert!(ended.load(Ordering::Relaxed), "whoever serves it has been told");
        let refused =
            connector.ask(node(&world, 1).address(), u16::MAX - 2, Bytes::new(), Millis(1_000)).await;
        assert!(matches!(refused, Err(AskError::NotSent { .. })), "placing is for members: {refused:?}");
    });
}
