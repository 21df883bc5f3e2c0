//! Controllers of several datacenters, with leaders that die at any moment, two of them at once, a control plane that goes
//! away, and clocks that differ.

use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago::{Event, Notice, Subscription};
use archipelago_protocol::datacenter::{DataCenterId, DataCenterInfo, DataCenterRecord, DataCenterState};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Faults, SimControlPlane, Simulation, World};

const NAMES: [&str; 3] = ["north", "south", "west"];
/// Nodes of each datacenter.
const EACH: usize = 2;

fn id(name: &str) -> DataCenterId {
    DataCenterId::new(name).expect("an id")
}

fn settings() -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.session_heartbeat = Millis(1_000);
    settings
}

/// Leases of six seconds, and everything else in proportion.
fn hurried() -> NodeSettings {
    let mut settings = settings();
    let controller = &mut settings.datacenter.controller;
    (controller.heartbeat, controller.refresh) = (Millis(2_000), Millis(2_000));
    (controller.leader_check, controller.lease_ttl) = (Millis(300), Millis(6_000));
    settings
}

/// Three datacenters of two nodes each: nodes 0 and 1 are in the north, 2 and 3 in the south, 4 and 5 in the west.
fn world_of(seed: u64, plane: &SimControlPlane, settings: &NodeSettings) -> Simulation {
    NAMES.iter().fold(Simulation::new(seed), |world, name| {
        let info = DataCenterInfo::new(name, "", "").expect("a name");
        world.datacenter(plane, &info, EACH, settings, |node| node.actor::<Counter>())
    })
}

fn standing(node: &Node, name: &str) -> Option<DataCenterState> {
    node.datacenters().get(&id(name)).map(|entry| entry.standing)
}

async fn record(plane: &SimControlPlane, name: &str) -> Option<DataCenterRecord> {
    plane.records().await.into_iter().find(|record| *record.id() == id(name))
}

/// Waits until `holds`, so many seconds at most; how long it took.
async fn until(world: &World, seconds: u64, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = world.now();
    while !holds() {
        assert!(world.now() - began < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        world.advance(Duration::from_millis(50)).await;
    }
    world.now() - began
}

fn up(world: &World) -> Vec<Node> {
    (0..world.node_count()).filter_map(|index| world.node(index)).collect()
}

/// Every node knows every datacenter as active, with all its endpoints.
async fn all_active(world: &World) {
    until(world, 60, "every node knows all datacenters", || {
        up(world).iter().all(|node| {
            let map = node.datacenters();
            let complete = |name: &&str| {
                map.get(&id(name)).is_some_and(|entry| {
                    entry.standing == DataCenterState::Active && entry.info.endpoints().len() == EACH
                })
            };
            NAMES.iter().all(complete) && !map.stale
        })
    })
    .await;
}

/// The events about datacenters that have come since.
fn told(events: &mut Subscription) -> Vec<Event> {
    let mut told = Vec::new();
    while let Some(notice) = events.try_next() {
        if let Notice::Event(
            event @ (Event::DataCenterDown { .. }
            | Event::DataCenterUp { .. }
            | Event::DataCenterDraining { .. }
            | Event::DataCentersStale
            | Event::DataCentersFresh),
        ) = notice
        {
            told.push(event);
        }
    }
    told
}

fn downs(told: &[Event]) -> usize {
    told.iter().filter(|event| matches!(event, Event::DataCenterDown { .. })).count()
}

/// The number of the node that speaks for a datacenter, found by its leader.
fn leader_of(world: &World, first: usize) -> usize {
    let members = first..first + EACH;
    let leader = members.clone().find_map(|index| world.node(index)).and_then(|node| node.leader());
    members.into_iter().find(|index| world.node(*index).map(|node| node.id()) == leader).expect("leads")
}

async fn tick(node: &Node, key: &str) -> Result<u32, CallError> {
    let counter = node.actor::<Counter>(key);
    from_outside(|| counter.send(Tick)).await
}

/// Proves: R340, R342, R344, R355, R386, R390, R394, R413, C28
#[test]
fn every_node_of_every_datacenter_learns_of_all_of_them() {
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(30_000));
        world_of(seed, &plane, &settings()).run(async |world| {
            all_active(&world).await;
            for node in up(&world) {
                assert_eq!(node.members().len(), EACH, "no cluster state is shared");
            }
            let epochs: Vec<_> = plane.records().await.iter().map(|record| record.state).collect();
            assert_eq!(epochs, [DataCenterState::Active; 3]);
        });
    }
}

/// A node that has just come asks, and does not wait to be told.
///
/// Proves: C28
#[test]
fn a_follower_without_a_map_asks_its_leader() {
    let mut settings = hurried();
    settings.datacenter.controller.refresh = Millis(3_600_000);
    settings.datacenter.controller.lease_ttl = Millis(36_000_000);
    let plane = SimControlPlane::new(Millis(36_000_000));
    world_of(4, &plane, &settings).run(async |world| {
        all_active(&world).await;
        let follower = 1 - leader_of(&world, 0);
        world.crash(follower).await;
        world.advance(Duration::from_secs(10)).await;
        let back = world.restart_at_once(follower).await.expect("it starts");
        until(&world, 15, "the follower knows the others", || {
            standing(&back, "south") == Some(DataCenterState::Active)
        })
        .await;
    });
}

/// Proves: R343, R349, R361, R364, R385, R392, R393, R396
#[test]
fn a_dead_datacenter_is_out_of_every_map_within_its_lease_and_two_seconds() {
    for (seed, settings, lease) in [
        (1, settings(), 30_u64),
        (2, settings(), 30),
        (3, hurried(), 6),
        (4, hurried(), 6),
        (5, hurried(), 6),
    ] {
        let plane = SimControlPlane::new(Millis(lease * 1_000));
        world_of(seed, &plane, &settings).run(async |world| {
            all_active(&world).await;
            world.advance(Duration::from_millis(world.below(20_000))).await;
            world.crash(4).await;
            world.crash(5).await;
            let took = until(&world, 60, "the west is out", || {
                up(&world).iter().all(|node| standing(node, "west") == Some(DataCenterState::Inactive))
            })
            .await;
            let limit = Duration::from_secs(lease + 2);
            assert!(took <= limit, "seed {seed}: {took:?}");
            let others =
                up(&world).iter().all(|node| standing(node, "south") == Some(DataCenterState::Active));
            assert!(others, "seed {seed}: nobody else is out");
        });
    }
}

/// Proves: R346, R397
#[test]
fn a_leader_killed_at_any_moment_is_replaced_and_nobody_sees_its_datacenter_down() {
    for seed in 1..=8 {
        let plane = SimControlPlane::new(Millis(30_000));
        world_of(seed, &plane, &settings()).run(async |world| {
            all_active(&world).await;
            world.advance(Duration::from_millis(world.below(15_000))).await;
            let before = record(&plane, "north").await.expect("is there");
            let mut events = world.node(2).expect("is up").events().subscribe();
            world.crash(leader_of(&world, 0)).await;
            for _ in 0..600 {
                world.advance(Duration::from_millis(100)).await;
                let now = record(&plane, "north").await.expect("stays there");
                assert_eq!(now.state, DataCenterState::Active, "seed {seed}");
            }
            let after = record(&plane, "north").await.expect("is there");
            assert!(
                after.epoch > before.epoch && after.version > before.version,
                "seed {seed}: somebody goes on"
            );
            assert_eq!(downs(&told(&mut events)), 0, "seed {seed}");
        });
    }
}

/// A leader that stood still wakes up and still thinks that it leads.
///
/// Proves: R347, R376
#[test]
fn two_leaders_at_once_do_no_harm() {
    for seed in 1..=5 {
        let plane = SimControlPlane::new(Millis(30_000));
        world_of(seed, &plane, &settings()).run(async |world| {
            all_active(&world).await;
            let leader = leader_of(&world, 0);
            let mut events = world.node(2).expect("is up").events().subscribe();
            let mut epoch = record(&plane, "north").await.expect("is there").epoch;
            // Writes that were under way land whenever they like.
            plane.set_faults(Faults { late: 300, lost_reply: 200, ..Faults::default() });
            world.pause(leader, Duration::from_secs(9));
            for _ in 0..400 {
                world.advance(Duration::from_millis(100)).await;
                if world.chance(20) {
                    plane.flush_late().await;
                }
                let now = record(&plane, "north").await.expect("stays there");
                assert_eq!(now.state, DataCenterState::Active, "seed {seed}");
                assert!(now.epoch >= epoch, "seed {seed}: an epoch fell");
                epoch = now.epoch;
            }
            assert_eq!(downs(&told(&mut events)), 0, "seed {seed}");
        });
    }
}

/// Proves: R346, R381, R388, R440, R441, R488
#[test]
fn an_outage_of_the_control_plane_leaves_the_map_in_force_and_calls_at_home_and_abroad_alone() {
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(30_000));
        world_of(seed, &plane, &settings()).run(async |world| {
            all_active(&world).await;
            let (node, south) = (world.node(1).expect("is up"), world.node(3).expect("is up"));
            assert_eq!(tick(&south, "far").await, Ok(1), "it lives in the south");
            let mut events = node.events().subscribe();
            plane.set_faults(Faults { unavailable: 1_000, ..Faults::default() });
            for second in 0..300 {
                world.advance(Duration::from_secs(1)).await;
                assert!(tick(&node, "a").await.is_ok(), "seed {seed}: local work at second {second}");
                assert_eq!(
                    tick(&node, "far").await,
                    Ok(second + 2),
                    "seed {seed}: abroad at second {second}"
                );
                for other in NAMES {
                    assert_eq!(standing(&node, other), Some(DataCenterState::Active), "second {second}");
                }
            }
            assert!(up(&world).iter().all(|node| node.datacenters().stale), "seed {seed}: everybody knows");
            plane.set_faults(Faults::default());
            all_active(&world).await;
            world.advance(Duration::from_secs(60)).await;
            let told = told(&mut events);
            assert_eq!(told, [Event::DataCentersStale, Event::DataCentersFresh], "seed {seed}");
        });
    }
}

/// The wall clock decides nothing, and clocks that are not equally fast are allowed for.
#[test]
fn clocks_that_differ_end_no_lease() {
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(6_000));
        world_of(seed, &plane, &hurried()).run(async |world| {
            all_active(&world).await;
            let mut events: Vec<_> = up(&world).iter().map(|node| node.events().subscribe()).collect();
            for (index, ppm) in [(0, 15_000), (1, 15_000), (2, -15_000), (3, -15_000)] {
                world.skew(index, ppm);
            }
            world.advance(Duration::from_secs(300)).await;
            for events in &mut events {
                assert_eq!(told(events), [], "seed {seed}");
            }
        });
    }
}

/// Proves: R360, R363, R365, R366, C29
#[test]
fn a_datacenter_is_drained_on_request_and_its_last_node_disables_it() {
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(30_000));
        world_of(seed, &plane, &settings()).run(async |world| {
            all_active(&world).await;
            let leader = leader_of(&world, 0);
            let follower = world.node(1 - leader).expect("is up");
            from_outside(|| follower.drain_datacenter()).await.expect("it drains");
            until(&world, 15, "everybody knows", || {
                up(&world).iter().all(|node| standing(node, "north") == Some(DataCenterState::Draining))
            })
            .await;
            assert!(tick(&follower, "b").await.is_ok(), "what is there goes on");
            // The new leader goes on with what its predecessor was asked for.
            world.stop(leader).await.expect("stops");
            world.advance(Duration::from_secs(30)).await;
            let state = record(&plane, "north").await.expect("is there").state;
            assert_eq!(state, DataCenterState::Draining, "seed {seed}");
            world.stop(1 - leader).await.expect("stops");
            let state = record(&plane, "north").await.expect("is there").state;
            assert_eq!(state, DataCenterState::Inactive, "seed {seed}");
        });
    }
}

/// Proves: R456
#[test]
fn a_datacenter_that_dies_while_it_drains_is_out_by_its_lease() {
    let plane = SimControlPlane::new(Millis(6_000));
    world_of(7, &plane, &hurried()).run(async |world| {
        all_active(&world).await;
        let node = world.node(0).expect("is up");
        from_outside(|| node.drain_datacenter()).await.expect("it drains");
        world.crash(0).await;
        world.crash(1).await;
        until(&world, 10, "the north is out", || {
            up(&world).iter().all(|node| standing(node, "north") == Some(DataCenterState::Inactive))
        })
        .await;
        assert_eq!(record(&plane, "north").await.expect("is there").state, DataCenterState::Draining);
    });
}

/// Proves: R397
#[test]
fn a_node_that_leaves_does_not_drain_its_datacenter() {
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(30_000));
        world_of(seed, &plane, &settings()).run(async |world| {
            all_active(&world).await;
            let mut events = world.node(2).expect("is up").events().subscribe();
            let before = record(&plane, "north").await.expect("is there").epoch;
            world.stop(leader_of(&world, 0)).await.expect("stops");
            world.advance(Duration::from_secs(60)).await;
            let after = record(&plane, "north").await.expect("is there");
            assert_eq!(after.state, DataCenterState::Active, "seed {seed}");
            assert!(after.epoch > before, "seed {seed}: the other node speaks now");
            assert_eq!(told(&mut events), [], "seed {seed}");
        });
    }
}
