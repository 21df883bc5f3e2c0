//! The way between two datacenters is cut and healed: what lives on the other side is out of reach meanwhile, and is found
//! again where it was.

use super::moves::{asked, residents};
use super::*;

const NORTH: [usize; 2] = [0, 1];
const SOUTH: [usize; 2] = [2, 3];

/// What a call that may not leave its datacenter ends with, and how soon at the latest.
const LIMIT: Duration = Duration::from_millis(5_100);

fn turn(world: &World, way: impl Fn(&World, usize, usize)) {
    NORTH.into_iter().for_each(|north| SOUTH.into_iter().for_each(|south| way(world, north, south)));
}

/// A call to somebody who has a home beyond the cut ends by its deadline, and says that nobody was reached.
async fn is_refused(world: &World, index: usize, key: &str) {
    let began = world.now();
    let error = asked(world, index, key).await.expect_err("it is cut off");
    assert!(world.now() - began <= LIMIT, "{error} after {:?}", world.now() - began);
    let typed = matches!(
        error,
        CallError::Unreachable { .. }
            | CallError::Timeout { .. }
            | CallError::ConnectionLost { .. }
            | CallError::NoRoute { .. }
    );
    assert!(typed, "{error:?}");
}

/// What lives here is called all the time, and what was placed abroad ends as documented.
async fn live_apart(world: &World, until: Duration) {
    while world.now() < until {
        for index in NORTH {
            assert_eq!(asked(world, index, "near").await, Ok(0), "work at home goes on");
        }
        for index in SOUTH {
            assert_eq!(asked(world, index, "placed").await, Ok(1), "work at home goes on");
            assert_eq!(asked(world, index, "met").await, Ok(1), "also of who was called from abroad");
        }
        is_refused(world, 0, "placed").await;
        world.advance(Duration::from_secs(1)).await;
    }
}

/// Proves: R407, C55
#[test]
fn what_a_cut_keeps_out_of_reach_is_found_again_where_it_was_when_the_way_is_healed() {
    for seed in 50..58 {
        let islands = Islands(&[2, 2]);
        let (simulation, births) =
            residents(&islands, seed, |_, node| node.homes(Arc::new(Placed("placed", 1))));
        simulation.run(async |world| {
            islands.meet(&world).await;
            assert_eq!(asked(&world, 2, "met").await, Ok(1), "it comes to life there by itself");
            assert_eq!(asked(&world, 0, "near").await, Ok(0));
            for index in NORTH {
                for key in ["placed", "met"] {
                    assert_eq!(asked(&world, index, key).await, Ok(1), "seed {seed}: {key}");
                }
            }
            turn(&world, World::partition);
            let cut = Duration::from_millis(20_000 + world.below(40_000));
            live_apart(&world, world.now() + cut).await;
            turn(&world, World::heal);
            let healed = world.now();
            for index in NORTH {
                while asked(&world, index, "placed").await != Ok(1) {
                    assert!(world.now() - healed < Duration::from_secs(20), "seed {seed}: not found again");
                    world.advance(Duration::from_millis(100)).await;
                }
            }
            // Who was not placed is looked for anew, for which both nodes of the south must have been met again.
            world.advance(Duration::from_secs(15)).await;
            for index in NORTH {
                assert_eq!(asked(&world, index, "met").await, Ok(1), "seed {seed}");
            }
        });
        let mut births = births.lock().expect("nobody panicked").clone();
        births.sort();
        let expected = [("met", 1), ("near", 0), ("placed", 1)].map(|(key, island)| (key.to_owned(), island));
        assert_eq!(births, expected, "seed {seed}: each came to life once");
    }
}
