//! The control plane is away for minutes: whoever comes to life meanwhile lives in one datacenter, and is found there.

use archipelago_sim::SimControlPlane;

use super::moves::{Births, Where};
use super::*;
use archipelago_sim::Faults;

const NAMES: [&str; 3] = ["north", "south", "west"];

/// Says in which datacenter it lives. The shards of a kind lie where its name says, and with this name one is moved at the wrong
/// moment.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Counter(u32);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Where> for Counter {
    type Result = u32;
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u32 {
        self.0
    }
}

/// Three datacenters of two nodes each, whose shards are moved from node to node as it pleases their coordinators.
fn three(seed: u64, plane: &SimControlPlane) -> (Simulation, Births) {
    let births = Births::default();
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.session_heartbeat = Millis(1_000);
    let simulation = (0..3).zip(NAMES).fold(Simulation::new(seed), |world, (island, name)| {
        let (info, log) = (DataCenterInfo::new(name, "", "").expect("a name"), Arc::clone(&births));
        world.datacenter(plane, &info, 2, &settings, move |node| {
            let log = Arc::clone(&log);
            node.actor_with(move |id: &ActorId, _: &Node| {
                log.lock().expect("nobody panicked").push((id.key().as_str().to_owned(), island));
                Counter(u32::try_from(island).expect("a small number"))
            })
        })
    });
    (simulation, births)
}

async fn asked(node: &Node, key: &str) -> Result<u32, CallError> {
    let counter = node.actor::<Counter>(key);
    from_outside(|| counter.send(Where)).await
}

/// In seed 1 the shard of an actor was moved between its first call and one from abroad: it began anew on another node of its own
/// datacenter, and was taken for one that had come to life abroad.
#[test]
fn who_comes_to_life_while_the_control_plane_is_away_lives_in_one_datacenter() {
    let mut moved = 0;
    for seed in 1..=3 {
        let plane = SimControlPlane::new(Millis(30_000));
        let (simulation, births) = three(seed, &plane);
        simulation.run(async |world| {
            world.advance(Duration::from_secs(60)).await;
            let (north, south) = (node(&world, 1), node(&world, 3));
            plane.set_faults(Faults { unavailable: 1_000, ..Faults::default() });
            for second in 0..300 {
                world.advance(Duration::from_secs(1)).await;
                let key = format!("cold {second}");
                assert_eq!(asked(&south, &key).await, Ok(1), "seed {seed}: {key} at home");
                assert_eq!(asked(&north, &key).await, Ok(1), "seed {seed}: {key} from abroad");
            }
            assert!(north.datacenters().stale, "seed {seed}: the outage was one");
        });
        let births = births.lock().expect("nobody panicked").clone();
        moved += births.len() - 300;
        let abroad: Vec<_> = births.iter().filter(|birth| birth.1 != 1).collect();
        assert!(abroad.is_empty(), "seed {seed}: {abroad:?}");
    }
    assert!(moved > 0, "the shard of some actor is moved between its two calls");
}
