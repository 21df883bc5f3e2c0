//! Which of several datacenters takes an actor that is placed: the policies, and what they are told.

use std::sync::Arc;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{PlaceError, PlacedActor};
use archipelago_protocol::datacenter::{
    ChooseDataCenter, DataCenterCandidate, DataCenterId, DataCenterInfo, DataCenterState, HomeByKey,
    NearestFirst, RegionFirst, WantedDataCenter,
};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Link, SimControlPlane, Simulation, World};

#[remote(u64)]
struct Where;

#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Settler(u64);

impl Actor for Settler {
    type Context = Context<Self>;
}

impl Handler<Where> for Settler {
    type Result = u64;

    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

/// Nodes 0 and 1 are in the north, 2 and 3 in the south, 4 and 5 in the west. North and south are one region. The actors are to
/// live in the south or the west, which alone are `tier=far`, or anywhere (`use=any`).
fn three(seed: u64, policy: impl ChooseDataCenter) -> Simulation {
    let plane = SimControlPlane::new(Millis(6_000));
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.datacenter.placement = Arc::new(policy);
    let controller = &mut settings.datacenter.controller;
    (controller.heartbeat, controller.refresh) = (Millis(2_000), Millis(2_000));
    (controller.leader_check, controller.lease_ttl) = (Millis(300), Millis(6_000));
    let places = [("north", "eu", "near"), ("south", "eu", "far"), ("west", "us", "far")];
    places.into_iter().fold(Simulation::new(seed), |world, (name, region, tier)| {
        let labels = [("tier", tier), ("use", "any")].map(|(label, value)| (label.into(), value.into()));
        let info = DataCenterInfo::new(name, region, "").expect("a name").with_id(id(name));
        let info = info.with_labels(labels.into()).expect("labels");
        world.datacenter(&plane, &info, 2, &settings, |node| {
            node.actor_with(|_, node| Settler(node.id().as_u64()))
        })
    })
}

fn id(name: &str) -> DataCenterId {
    DataCenterId::new(name).expect("a plain name is an id")
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

async fn until(world: &World, seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    let began = world.now();
    while !holds() {
        assert!(world.now() - began < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        world.advance(Duration::from_millis(50)).await;
    }
}

/// Waits until everybody knows of both nodes of all datacenters.
async fn all_active(world: &World) {
    let knows = |node: &Node, name: &str| {
        let map = node.datacenters();
        let entry = map.get(&id(name));
        entry.is_some_and(|one| one.standing == DataCenterState::Active && one.info.endpoints().len() == 2)
    };
    until(world, 60, "all datacenters are active", || {
        let mut nodes = (0..world.node_count()).filter_map(|index| world.node(index));
        nodes.all(|node| ["north", "south", "west"].iter().all(|name| knows(&node, name)))
    })
    .await;
}

/// So long a message needs from one of these nodes to one of those, and back.
fn put_apart(world: &World, these: [usize; 2], those: [usize; 2], one_way: u64) {
    let link =
        Link { latency: Millis(one_way), jitter: Millis(0), loss_per_mille: 0, duplicate_per_mille: 0 };
    for (a, b) in these.into_iter().flat_map(|a| those.map(|b| (a, b))) {
        world.slow_link(a, b, link);
        world.slow_link(b, a, link);
    }
}

async fn spawn(world: &World, from: usize, target: &str, key: &str) -> Result<PlacedActor, PlaceError> {
    let node = node(world, from);
    from_outside(|| node.spawn_in(target, Settler::KIND, key)).await
}

/// In which datacenters so many actors are placed, by node 0.
async fn placed(world: &World, target: &str, keys: &str) -> Vec<String> {
    let mut all = Vec::new();
    for n in 0..8 {
        let placed = spawn(world, 0, target, &format!("{keys}{n}")).await.expect("it is placed");
        all.push(placed.datacenter.to_string());
    }
    all.sort();
    all.dedup();
    all
}

fn round_trip(world: &World, from: usize, name: &str) -> Option<Duration> {
    node(world, from).datacenter_round_trip(&id(name))
}

/// Waits until the round trip from node 0 is about so long.
async fn until_apart(world: &World, name: &str, millis: u64) {
    let about = Duration::from_millis(millis)..=Duration::from_millis(millis + 10);
    let measured = || round_trip(world, 0, name).is_some_and(|trip| about.contains(&trip));
    until(world, 40, &format!("{name} is {millis} ms away"), measured).await;
}

const NORTH: [usize; 2] = [0, 1];
const SOUTH: [usize; 2] = [2, 3];
const WEST: [usize; 2] = [4, 5];

/// Proves: C31
#[test]
fn the_nearest_datacenter_takes_an_actor_also_after_the_distances_have_changed() {
    for seed in 1..=3 {
        three(seed, NearestFirst).run(async |world| {
            all_active(&world).await;
            put_apart(&world, NORTH, SOUTH, 40);
            put_apart(&world, NORTH, WEST, 5);
            until_apart(&world, "south", 80).await;
            until_apart(&world, "west", 10).await;
            assert_eq!(placed(&world, "tier=far", "a").await, ["west"], "seed {seed}");
            put_apart(&world, NORTH, SOUTH, 5);
            put_apart(&world, NORTH, WEST, 40);
            until_apart(&world, "west", 80).await;
            until_apart(&world, "south", 10).await;
            assert_eq!(placed(&world, "tier=far", "b").await, ["south"], "seed {seed}");
            assert_eq!(placed(&world, "use=any", "c").await, ["north"], "nobody is nearer than we are");
            let shown = world.gauge(0, "archipelago_datacenter_round_trip_seconds");
            assert!((0.085..0.115).contains(&shown), "{shown} is the sum of both");
        });
    }
}

#[test]
fn the_own_region_takes_an_actor_before_what_is_nearer() {
    three(4, RegionFirst).run(async |world| {
        all_active(&world).await;
        put_apart(&world, NORTH, SOUTH, 40);
        put_apart(&world, NORTH, WEST, 5);
        until_apart(&world, "south", 80).await;
        until_apart(&world, "west", 10).await;
        assert_eq!(placed(&world, "tier=far", "a").await, ["south"]);
        assert_eq!(placed(&world, "use=any", "b").await, ["north"], "of the own region we are the nearest");
        let from_west = spawn(&world, 4, "use=any", "c").await.expect("it is placed");
        assert_eq!(from_west.datacenter.as_str(), "west");
    });
}

/// Proves: R503
#[test]
fn by_default_the_key_chooses_and_nobody_measures() {
    three(5, HomeByKey).run(async |world| {
        all_active(&world).await;
        put_apart(&world, NORTH, SOUTH, 40);
        world.advance(Duration::from_secs(20)).await;
        assert_eq!(placed(&world, "tier=far", "a").await, ["south", "west"]);
        assert_eq!(["south", "west"].map(|name| round_trip(&world, 0, name)), [None, None]);
    });
}

/// The distance of a datacenter that does not answer is not known, whatever it was before.
#[test]
fn a_datacenter_that_falls_silent_is_not_the_nearest_any_more() {
    three(6, NearestFirst).run(async |world| {
        all_active(&world).await;
        put_apart(&world, NORTH, SOUTH, 40);
        until_apart(&world, "south", 80).await;
        until(&world, 20, "the west is measured", || round_trip(&world, 0, "west").is_some()).await;
        for (a, b) in NORTH.into_iter().flat_map(|a| WEST.map(|b| (a, b))) {
            world.partition(a, b);
        }
        until(&world, 60, "the west is silent", || round_trip(&world, 0, "west").is_none()).await;
        let west = node(&world, 0).datacenters().get(&id("west")).map(|entry| entry.standing);
        assert_eq!(west, Some(DataCenterState::Active), "it still beats");
        assert_eq!(placed(&world, "tier=far", "a").await, ["south"]);
    });
}

/// West, then south; the others never.
#[derive(Debug)]
struct WestThenSouth;

impl ChooseDataCenter for WestThenSouth {
    fn order(&self, _: &WantedDataCenter<'_>, given: &[DataCenterCandidate<'_>]) -> Vec<DataCenterId> {
        let fits = |name: &&str| given.iter().any(|one| one.info.name() == *name);
        ["west", "south"].into_iter().filter(fits).map(id).collect()
    }

    fn measures(&self) -> bool {
        false
    }
}

#[test]
fn a_policy_of_ones_own_says_who_is_chosen_and_may_leave_all_out() {
    three(7, WestThenSouth).run(async |world| {
        all_active(&world).await;
        assert_eq!(placed(&world, "use=any", "a").await, ["west"]);
        let refused = spawn(&world, 0, "tier=near", "b").await;
        let reason = refused.expect_err("the policy leaves the north out").to_string();
        assert_eq!(reason, "the policy chooses none of the datacenters that fit \"tier=near\"");
    });
}

/// Each is nearer to another datacenter, and both place the same actor at once: it has one home.
#[test]
fn nodes_of_one_datacenter_that_choose_differently_settle_on_one() {
    three(8, NearestFirst).run(async |world| {
        all_active(&world).await;
        put_apart(&world, [0, 0], SOUTH, 40);
        put_apart(&world, [1, 1], WEST, 40);
        until_apart(&world, "south", 80).await;
        let far = || round_trip(&world, 1, "west").is_some_and(|trip| trip > Duration::from_millis(70));
        until(&world, 40, "the west is far from node 1", far).await;
        for key in 0..8 {
            let key = format!("k{key}");
            let both = (spawn(&world, 0, "tier=far", &key), spawn(&world, 1, "tier=far", &key));
            let (one, other) = futures_util::future::join(both.0, both.1).await;
            let (one, other) = (one.expect("it is placed"), other.expect("it is placed"));
            assert_eq!(one.datacenter, other.datacenter, "{key}");
        }
    });
}

/// Proves: R414
#[test]
fn an_actor_that_lives_here_stays_though_another_datacenter_would_be_chosen_first() {
    three(9, WestThenSouth).run(async |world| {
        all_active(&world).await;
        let south = node(&world, 2);
        let settler = south.actor::<Settler>("native");
        let lives_at = from_outside(|| settler.send(Where)).await.expect("it comes to life");
        let placed = spawn(&world, 3, "tier=far", "native").await.expect("it is there already");
        assert_eq!(placed.datacenter.as_str(), "south");
        assert_eq!(placed.spawned.map(|spawned| spawned.node.as_u64()), Some(lives_at));
    });
}
