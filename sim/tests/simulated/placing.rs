//! Actors that are placed in another datacenter: by id, by label, past dead endpoints, and for good.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use archipelago::datacenter::NoCandidate;
use archipelago::prelude::*;
use archipelago::{PlaceError, PlacedActor};
use archipelago_protocol::datacenter::{DataCenterId, DataCenterInfo, DataCenterState};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{Faults, SimControlPlane, Simulation, World};

/// Answers with the node that it runs on.
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

/// Nodes 0 and 1 are in the north, 2 and 3 in the south, 4 and 5 in the west, which alone is golden.
fn three(seed: u64, plane: &SimControlPlane) -> Simulation {
    three_for(seed, plane, Millis(6_000))
}

/// The same, with leases of another length.
fn three_for(seed: u64, plane: &SimControlPlane, lease: Millis) -> Simulation {
    three_of(seed, plane, lease, |_, node| node.actor_with(|_, node| Settler(node.id().as_u64())))
}

/// The same, with nodes that are built by the name of their datacenter.
fn three_of(
    seed: u64,
    plane: &SimControlPlane,
    lease: Millis,
    build: impl Fn(&str, NodeBuilder) -> NodeBuilder + Copy + 'static,
) -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.idle_after = Millis(4_000);
    let controller = &mut settings.datacenter.controller;
    (controller.heartbeat, controller.refresh) = (Millis(2_000), Millis(2_000));
    (controller.leader_check, controller.lease_ttl) = (Millis(300), lease);
    [("north", "silver"), ("south", "silver"), ("west", "gold")].into_iter().fold(
        Simulation::new(seed),
        |world, (name, tier)| {
            let labels = BTreeMap::from([("tier".to_owned(), tier.to_owned())]);
            let info =
                DataCenterInfo::new(name, "", "").expect("a name").with_labels(labels).expect("labels");
            world.datacenter(plane, &info, 2, &settings, move |node| build(name, node))
        },
    )
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

fn stands(node: &Node, name: &str, standing: DataCenterState) -> bool {
    let id = DataCenterId::new(name).expect("an id");
    node.datacenters()
        .get(&id)
        .is_some_and(|entry| entry.standing == standing && !entry.info.endpoints().is_empty())
}

async fn all_active(world: &World) {
    until(world, 60, "all datacenters are active", || {
        (0..world.node_count()).filter_map(|index| world.node(index)).all(|node| {
            ["north", "south", "west"].iter().all(|name| stands(&node, name, DataCenterState::Active))
        })
    })
    .await;
    // Also the second node of each is told to the others.
    world.advance(Duration::from_secs(10)).await;
}

async fn spawn(world: &World, from: usize, target: &str, key: &str) -> Result<PlacedActor, PlaceError> {
    let node = node(world, from);
    from_outside(|| node.spawn_in(target, Settler::KIND, key)).await
}

async fn ask(world: &World, from: usize, key: &str) -> Result<u64, CallError> {
    let settler = node(world, from).actor::<Settler>(key);
    from_outside(|| settler.send(Where)).await
}

fn in_west(world: &World, id: u64) -> bool {
    [4, 5].into_iter().filter_map(|index| world.node(index)).any(|node| node.id().as_u64() == id)
}

/// Proves: R351, R410, R411, R503
#[test]
fn an_actor_placed_by_label_lives_there_for_everybody_and_outlives_its_activation() {
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(6_000));
        three(seed, &plane).run(async |world| {
            all_active(&world).await;
            let placed = spawn(&world, 0, "tier=gold", "gold").await.expect("it is placed");
            assert_eq!(placed.datacenter.as_str(), "west", "seed {seed}");
            assert!(placed.spawned.is_some_and(|spawned| in_west(&world, spawned.node.as_u64())), "seed {seed}");
            for round in 0..2 {
                for from in 0..6 {
                    let at = ask(&world, from, "gold").await.expect("it answers");
                    assert!(in_west(&world, at), "seed {seed}, round {round}, from node {from}");
                }
                // Longer than it may be idle, and than anybody remembers where it was.
                world.advance(Duration::from_secs(30)).await;
            }
            // It does not move.
            let again = spawn(&world, 2, "tier=gold", "gold").await.expect("it is there already");
            assert_eq!(again.datacenter.as_str(), "west");
            let moved = spawn(&world, 0, "south", "gold").await;
            assert!(matches!(&moved, Err(PlaceError::HomedElsewhere { datacenter }) if datacenter.as_str() == "west"));
        });
    }
}

/// Proves: R410, R414
#[test]
fn an_actor_that_lives_here_stays_here() {
    let plane = SimControlPlane::new(Millis(6_000));
    three(4, &plane).run(async |world| {
        all_active(&world).await;
        ask(&world, 0, "native").await.expect("it comes to life");
        let placed = spawn(&world, 0, "west", "native").await;
        assert!(
            matches!(&placed, Err(PlaceError::HomedElsewhere { datacenter }) if datacenter.as_str() == "north"),
            "{placed:?}"
        );
    });
}

/// Proves: R410
#[test]
fn a_message_can_be_sent_into_a_datacenter() {
    let plane = SimControlPlane::new(Millis(6_000));
    three(5, &plane).run(async |world| {
        all_active(&world).await;
        let here = node(&world, 1);
        let at =
            from_outside(|| here.send_in::<Settler, _>("west", "sent", Where)).await.expect("it answers");
        assert!(in_west(&world, at));
        let own =
            from_outside(|| here.send_in::<Settler, _>("north", "own", Where)).await.expect("it answers");
        assert!([0, 1].into_iter().any(|index| node(&world, index).id().as_u64() == own));
    });
}

/// Proves: R411, R412
#[test]
fn a_dead_endpoint_is_followed_by_the_next() {
    for seed in 1..=6 {
        let plane = SimControlPlane::new(Millis(6_000));
        three(seed, &plane).run(async |world| {
            all_active(&world).await;
            // Nothing has been placed in the west, so the node that is left can take everything.
            world.crash(4 + usize::from(seed % 2 == 0)).await;
            let placed = spawn(&world, 0, "west", &format!("a{seed}")).await;
            assert!(placed.is_ok(), "seed {seed}: {placed:?}");
        });
    }
}

/// Whoever was reached and has not answered may have taken the actor: nobody else can then, and the caller is told why.
#[test]
fn a_datacenter_that_may_have_taken_an_actor_is_named_as_unreachable() {
    let plane = SimControlPlane::new(Millis(6_000));
    three(9, &plane).run(async |world| {
        all_active(&world).await;
        // Connections stand to all nodes in the north.
        for key in 0..8 {
            spawn(&world, 4, "north", &format!("n{key}")).await.expect("it is placed");
        }
        for north in [0, 1] {
            world.partition(4, north);
        }
        let mut unreachable = 0;
        for key in 0..8 {
            match spawn(&world, 4, "tier=silver", &format!("s{key}")).await {
                Ok(placed) => assert_eq!(placed.datacenter.as_str(), "south"),
                Err(PlaceError::Unreachable { datacenter, .. }) => {
                    assert_eq!(datacenter.as_str(), "north");
                    unreachable += 1;
                    let elsewhere = spawn(&world, 5, "south", &format!("s{key}")).await;
                    assert!(
                        matches!(elsewhere, Err(PlaceError::HomedElsewhere { .. })),
                        "its home stays written down: {elsewhere:?}"
                    );
                }
                Err(error) => panic!("{error}"),
            }
            if unreachable > 0 {
                break;
            }
        }
        assert_eq!(unreachable, 1, "some would have gone to the north first");
    });
}

/// Nothing can have been sent to a datacenter whose connections are known to be lost: its home is taken back, and the next takes the
/// actor.
#[test]
fn a_datacenter_that_was_certainly_never_asked_is_followed_by_the_next() {
    let plane = SimControlPlane::new(Millis(60_000));
    three_for(10, &plane, Millis(60_000)).run(async |world| {
        all_active(&world).await;
        for key in 0..8 {
            spawn(&world, 4, "north", &format!("n{key}")).await.expect("it is placed");
        }
        world.crash(0).await;
        world.crash(1).await;
        // The connections are lost by then, and the map still has the north.
        world.advance(Duration::from_secs(12)).await;
        assert!(stands(&node(&world, 4), "north", DataCenterState::Active), "nobody has noticed yet");
        for key in 0..8 {
            let (key, began) = (format!("s{key}"), world.now());
            let placed = spawn(&world, 4, "tier=silver", &key).await;
            assert!(placed.as_ref().is_ok_and(|placed| placed.datacenter.as_str() == "south"), "{placed:?}");
            assert!(world.now() - began <= Duration::from_millis(5_100), "within the deadline");
            let again = spawn(&world, 5, "south", &key).await;
            assert!(again.is_ok(), "the record says the same: {again:?}");
        }
        // Who lived there before keeps its home, though nothing can be sent.
        let stays = spawn(&world, 4, "tier=silver", "n0").await;
        assert!(matches!(stays, Err(PlaceError::Unreachable { .. })), "{stays:?}");
        let stays = spawn(&world, 5, "south", "n0").await;
        assert!(matches!(stays, Err(PlaceError::HomedElsewhere { .. })), "{stays:?}");
    });
}

/// Proves: R415, C33
#[test]
fn a_draining_datacenter_and_a_stale_map_take_nothing() {
    let plane = SimControlPlane::new(Millis(6_000));
    three(7, &plane).run(async |world| {
        all_active(&world).await;
        let west = node(&world, 4);
        from_outside(|| west.drain_datacenter()).await.expect("it drains");
        until(&world, 15, "the north knows", || stands(&node(&world, 0), "west", DataCenterState::Draining))
            .await;
        let refused = spawn(&world, 0, "tier=gold", "late").await;
        let drains = matches!(&refused, Err(PlaceError::NoCandidate(NoCandidate::NotActive { .. })));
        assert!(drains, "{refused:?}");
        plane.set_faults(Faults { unavailable: 1_000, ..Faults::default() });
        until(&world, 60, "the map is stale", || node(&world, 0).datacenters().stale).await;
        let refused = spawn(&world, 0, "south", "stale").await;
        assert!(matches!(&refused, Err(PlaceError::NoCandidate(NoCandidate::Stale))), "{refused:?}");
    });
}

fn in_north(world: &World, id: u64) -> bool {
    [0, 1].into_iter().filter_map(|index| world.node(index)).any(|node| node.id().as_u64() == id)
}

/// A datacenter that drains refuses before anything is written there, also if the caller has not heard that it does.
#[test]
fn a_datacenter_that_refuses_an_actor_is_followed_by_the_next_and_nothing_stays_written_down() {
    let plane = SimControlPlane::new(Millis(6_000));
    three(11, &plane).run(async |world| {
        all_active(&world).await;
        let before: Vec<_> = [0, 4].map(|index| node(&world, index).datacenters()).into();
        for (drained, placer) in [(4, 0), (2, 4)] {
            let leaves = node(&world, drained);
            from_outside(|| leaves.drain_datacenter()).await.expect("it drains");
            let name = if drained == 4 { "west" } else { "south" };
            until(&world, 15, "everybody knows", || {
                (0..6).all(|index| stands(&node(&world, index), name, DataCenterState::Draining))
            })
            .await;
            if drained == 4 {
                node(&world, placer).show_datacenters((*before[0]).clone());
                let refused = spawn(&world, placer, "tier=gold", "late").await;
                let unreachable = matches!(&refused, Err(PlaceError::Unreachable { datacenter, .. })
                    if datacenter.as_str() == "west");
                assert!(unreachable, "{refused:?}");
                let at = ask(&world, 1, "late").await.expect("it is free to live anywhere");
                assert!(in_north(&world, at), "nothing says that it belongs to the west");
            } else {
                for key in 0..8 {
                    node(&world, placer).show_datacenters((*before[1]).clone());
                    let placed = spawn(&world, placer, "tier=silver", &format!("s{key}")).await;
                    let north = placed.as_ref().is_ok_and(|placed| placed.datacenter.as_str() == "north");
                    assert!(north, "the south refuses, so the north takes it: {placed:?}");
                }
            }
        }
    });
}

#[test]
fn a_datacenter_that_does_not_know_the_kind_takes_no_home() {
    let plane = SimControlPlane::new(Millis(6_000));
    let build = |name: &str, node: NodeBuilder| {
        if name == "west" {
            return node;
        }
        node.actor_with(|_, node| Settler(node.id().as_u64()))
    };
    three_of(12, &plane, Millis(6_000), build).run(async |world| {
        all_active(&world).await;
        let refused = spawn(&world, 0, "west", "lost").await;
        let why =
            matches!(&refused, Err(PlaceError::Unreachable { last: CallError::UnknownKind { .. }, .. }));
        assert!(why, "{refused:?}");
        let at = ask(&world, 0, "lost").await.expect("it is free to live anywhere");
        assert!(in_north(&world, at));
        let placed = spawn(&world, 1, "north", "lost").await.expect("it lives here");
        assert_eq!(placed.datacenter.as_str(), "north");
    });
}

/// A node that does not know the kind refuses it; that says nothing about its datacenter, where the actor lives by an ordinary message.
#[test]
fn an_actor_that_lives_here_is_placed_nowhere_else_by_a_node_that_does_not_know_its_kind() {
    let plane = SimControlPlane::new(Millis(6_000));
    let built: &'static Cell<usize> = Box::leak(Box::default());
    let build = move |_: &str, node: NodeBuilder| {
        if built.replace(built.get() + 1) == 0 {
            return node;
        }
        node.actor_with(|_, node| Settler(node.id().as_u64()))
    };
    three_of(13, &plane, Millis(6_000), build).run(async |world| {
        all_active(&world).await;
        for key in (0..8).map(|number| format!("g{number}")) {
            let at = ask(&world, 1, &key).await.expect("it may live anywhere");
            assert!(in_north(&world, at));
            let placed = spawn(&world, 0, "tier=silver", &key).await;
            let elsewhere = placed.as_ref().is_ok_and(|placed| placed.datacenter.as_str() != "north");
            assert!(!elsewhere, "it lives in the north: {placed:?}");
            let again = ask(&world, 2, &key).await.expect("it is found");
            assert_eq!(again, at, "there is one of it");
        }
    });
}

/// Whoever was placed abroad belongs there: also when nobody else is left, and to nodes that have heard no map.
///
/// Proves: C55
#[test]
fn who_was_placed_abroad_does_not_come_to_life_at_home_when_nobody_abroad_is_known() {
    let plane = SimControlPlane::new(Millis(6_000));
    three(13, &plane).run(async |world| {
        all_active(&world).await;
        spawn(&world, 0, "west", "placed").await.expect("it is placed");
        for index in 2..6 {
            world.crash(index).await;
        }
        until(&world, 30, "the others are gone", || {
            [0, 1].into_iter().all(|index| {
                ["south", "west"]
                    .iter()
                    .all(|name| stands(&node(&world, index), name, DataCenterState::Inactive))
            })
        })
        .await;
        for index in [0, 1] {
            let refused = ask(&world, index, "placed").await;
            assert!(matches!(refused, Err(CallError::Unreachable { .. })), "{refused:?}");
        }
        plane.set_faults(Faults { unavailable: 1_000, ..Faults::default() });
        for index in [0, 1] {
            world.crash(index).await;
        }
        world.advance(Duration::from_secs(10)).await;
        for index in [0, 1] {
            world.restart(index).await.expect("it starts without the registry");
        }
        for _ in 0..20 {
            let refused = ask(&world, 0, "placed").await;
            assert!(refused.is_err(), "no map was heard: {refused:?}");
            world.advance(Duration::from_secs(1)).await;
        }
        assert!(node(&world, 0).datacenters().entries.is_empty(), "the registry is away");
        let refused = ask(&world, 0, "placed").await;
        assert!(matches!(refused, Err(CallError::Unreachable { .. })), "{refused:?}");
        let at = ask(&world, 0, "new").await.expect("who was placed nowhere comes to life");
        assert!(in_north(&world, at));
    });
}
