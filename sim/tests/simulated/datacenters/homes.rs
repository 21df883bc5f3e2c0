//! An actor that belongs to a datacenter belongs to nobody else, whatever becomes of that datacenter: it drains, its lease ends, or
//! nobody has said yet that it is there.

use archipelago_protocol::call::CallError::Unreachable;
use archipelago_sim::{Faults, SimControlPlane};

use super::moves::{Births, Resident, Where, asked, residents};
use super::*;

use DataCenterState::{Active, Draining, Inactive};

fn born_in(births: &Births, island: usize) -> Vec<String> {
    let births = births.lock().expect("nobody panicked");
    births.iter().filter(|birth| birth.1 == island).map(|birth| birth.0.clone()).collect()
}

/// Nobody remembers any more where an actor was.
async fn forget(world: &World) {
    world.advance(Duration::from_secs(11)).await;
}

/// Proves: C55
#[test]
fn who_was_placed_in_a_datacenter_that_is_gone_comes_to_life_nowhere_else() {
    let islands = Islands(&[1, 1]);
    let (simulation, births) = residents(&islands, 80, |_, node| node.homes(Arc::new(Placed("placed", 1))));
    simulation.run(async |world| {
        islands.meet(&world).await;
        assert_eq!(asked(&world, 0, "placed").await, Ok(1));
        islands.show(&world, &[Active, Inactive]);
        for _ in 0..2 {
            let refused = asked(&world, 0, "placed").await;
            assert!(matches!(refused, Err(Unreachable { .. })), "no other datacenter is left: {refused:?}");
            assert_eq!(asked(&world, 0, "new").await, Ok(0), "who was placed nowhere is at home");
            forget(&world).await;
        }
        islands.show(&world, &[Active, Active]);
        assert_eq!(asked(&world, 0, "placed").await, Ok(1));
    });
    assert_eq!(born_in(&births, 0), ["new"]);
}

/// Proves: R503, C55
#[test]
fn the_home_of_a_key_is_the_same_while_its_datacenter_drains_and_after_its_lease_has_ended() {
    let islands = Islands(&[1, 1, 1]);
    let reach = || Reach::Home(Arc::new(HomeByKey));
    let (simulation, births) = residents(&islands, 81, move |_, node| node.reach::<Resident>(reach()));
    let mut keys = Vec::new();
    simulation.run(async |world| {
        islands.meet(&world).await;
        for n in 0..12 {
            let key = format!("k{n}");
            if asked(&world, 0, &key).await == Ok(2) {
                keys.push(key);
            }
        }
        assert!(!keys.is_empty(), "some live in the third");
        islands.show(&world, &[Active, Active, Draining]);
        forget(&world).await;
        for (key, from) in keys.iter().flat_map(|key| [(key, 0), (key, 1), (key, 2)]) {
            assert_eq!(asked(&world, from, key).await, Ok(2), "{key} goes on there, from {from}");
        }
        islands.show(&world, &[Active, Active, Inactive]);
        forget(&world).await;
        for key in &keys {
            for from in [0, 1] {
                let refused = asked(&world, from, key).await;
                assert!(matches!(refused, Err(Unreachable { .. })), "{key} from {from}: {refused:?}");
            }
            assert_eq!(asked(&world, 2, key).await, Ok(2), "it still lives there");
        }
    });
    for island in [0, 1] {
        let elsewhere = born_in(&births, island);
        assert!(!elsewhere.iter().any(|key| keys.contains(key)), "in {island}: {elsewhere:?}");
    }
}

/// Nobody has told the node of any datacenter, its own included: it cannot say whose an actor with a home is.
#[test]
fn before_the_first_map_nobody_who_has_a_home_comes_to_life() {
    let plane = SimControlPlane::new(Millis(30_000));
    plane.set_faults(Faults { unavailable: 1_000, ..Faults::default() });
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    let info = DataCenterInfo::new("north", "", "").expect("a name");
    let build = |node: NodeBuilder| {
        let node = node.actor_with(|_: &ActorId, _: &Node| Resident(0)).actor::<Counter>();
        node.reach::<Resident>(Reach::Home(Arc::new(HomeByKey)))
    };
    Simulation::new(82).datacenter(&plane, &info, 2, &settings, build).run(async |world| {
        world.advance(Duration::from_secs(10)).await;
        let refused = asked(&world, 0, "homed").await;
        assert!(matches!(refused, Err(Unreachable { .. })), "{refused:?}");
        assert_eq!(tick(&world, 0, "found").await, Ok(1), "who lives where it is found is at home");
        plane.set_faults(Faults::default());
        world.advance(Duration::from_secs(60)).await;
        let homed = node(&world, 0).actor::<Resident>("homed");
        assert_eq!(from_outside(|| homed.send(Where)).await, Ok(0), "there is nobody else");
    });
}

#[test]
fn an_actor_on_another_node_at_home_that_is_spoken_to_is_not_looked_for_again() {
    let islands = Islands(&[2, 1]);
    let long = |settings: &mut NodeSettings| settings.session_ttl = Millis(60_000);
    islands.simulation(83, long, |_, node| node.actor::<Counter>()).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 0, "warm").await, Ok(1));
        assert_eq!(tick(&world, 1, "warm").await, Ok(2), "the other node finds it");
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        for count in 3..=15 {
            world.advance(Duration::from_secs(2)).await;
            assert_eq!(tick(&world, 1, "warm").await, Ok(count), "nobody asks the store");
        }
    });
}

/// Who asks, and the datacenter of the actor, have not heard that it was placed; a third one has.
#[test]
fn a_datacenter_that_knows_where_an_actor_was_placed_is_believed() {
    let islands = Islands(&[1, 1, 1]);
    let knows =
        |island, node: NodeBuilder| node.homes(Arc::new(Placed(if island == 1 { "placed" } else { "" }, 2)));
    for gone in [false, true] {
        let (simulation, births) = residents(&islands, 84, knows);
        simulation.run(async |world| {
            islands.meet(&world).await;
            if gone {
                islands.show(&world, &[Active, Active, Inactive]);
                let refused = asked(&world, 0, "placed").await;
                assert!(matches!(refused, Err(Unreachable { .. })), "{refused:?}");
            } else {
                assert_eq!(asked(&world, 0, "placed").await, Ok(2));
            }
            assert_eq!(asked(&world, 0, "new").await, Ok(0));
        });
        assert_eq!(born_in(&births, 0), ["new"]);
        assert_eq!(born_in(&births, 1), [""; 0]);
    }
}
