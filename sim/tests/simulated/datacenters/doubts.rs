//! A datacenter that cannot say whether it has an actor is never taken for one that has not.

use super::moves::{asked, residents};
use super::*;

/// Home records that nobody can read while they are away; one actor was placed.
struct Away {
    placed: Placed,
    away: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Homes for Away {
    async fn home_of(&self, actor: &ActorId) -> Result<Option<DataCenterId>, DirectoryError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(DirectoryError::Unavailable { backend: "simulated", source: "it is away".into() });
        }
        self.placed.home_of(actor).await
    }

    async fn settle_home(&self, actor: &ActorId, home: &DataCenterId) -> Result<SettledHome, DirectoryError> {
        self.placed.settle_home(actor, home).await
    }

    async fn forget_home(&self, actor: &ActorId, made: HomeStamp) -> Result<bool, DirectoryError> {
        self.placed.forget_home(actor, made).await
    }
}

fn is_unreachable(answer: &Result<u32, CallError>) -> bool {
    matches!(answer, Err(CallError::Unreachable { .. }))
}

/// An actor was placed abroad, its datacenter is out of reach, and the own one cannot read that: it comes to life nowhere.
///
/// Proves: C55
#[test]
fn a_node_that_cannot_read_homes_brings_nobody_to_life() {
    let islands = Islands(&[1, 1, 1]);
    let away = Arc::new(AtomicBool::new(false));
    let homes: Arc<dyn Homes> = Arc::new(Away { placed: Placed("placed", 1), away: Arc::clone(&away) });
    let (simulation, births) = residents(&islands, 70, move |island, node| {
        if island == 0 { node.homes(Arc::clone(&homes)) } else { node.homes(Arc::new(Placed("placed", 1))) }
    });
    simulation.run(async |world| {
        islands.meet(&world).await;
        assert_eq!(asked(&world, 0, "warm").await, Ok(0));
        away.store(true, Ordering::Relaxed);
        world.partition(0, 1);
        let refused = asked(&world, 0, "placed").await;
        assert!(is_unreachable(&refused), "{refused:?}");
        assert_eq!(asked(&world, 0, "warm").await, Ok(0), "who lives here needs no record");
        world.heal(0, 1);
        world.advance(Duration::from_secs(12)).await;
        assert_eq!(asked(&world, 0, "placed").await, Ok(1), "its own datacenter says that it belongs there");
        let late = node(&world, 0).actor::<super::moves::Resident>("late");
        let back = Arc::clone(&away);
        world.spawn({
            let world = world.clone();
            async move {
                world.advance(Duration::from_millis(700)).await;
                back.store(false, Ordering::Relaxed);
            }
        });
        let found = from_outside(|| late.send(super::moves::Where)).await;
        assert_eq!(found, Ok(0), "the call waits until the records are back");
    });
    let births = births.lock().expect("nobody panicked").clone();
    assert!(!births.contains(&("placed".to_owned(), 0)), "{births:?}");
}

/// The datacenter has answered, and its records are out of reach: it may have been given the actor.
#[test]
fn a_datacenter_whose_records_are_out_of_reach_has_not_said_no() {
    let islands = Islands(&[1, 2]);
    let away = Arc::new(AtomicBool::new(false));
    let homes: Arc<dyn Homes> = Arc::new(Away { placed: Placed("", 0), away: Arc::clone(&away) });
    let (simulation, births) =
        residents(
            &islands,
            71,
            move |island, node| {
                if island == 1 { node.homes(Arc::clone(&homes)) } else { node }
            },
        );
    simulation.run(async |world| {
        islands.meet(&world).await;
        assert_eq!(asked(&world, 1, "warm").await, Ok(1));
        away.store(true, Ordering::Relaxed);
        let refused = asked(&world, 0, "new").await;
        assert!(is_unreachable(&refused), "{refused:?}");
        assert_eq!(asked(&world, 0, "warm").await, Ok(1), "who is active is found without a record");
        away.store(false, Ordering::Relaxed);
        assert_eq!(asked(&world, 0, "new").await, Ok(0), "and it is asked again at once");
    });
    assert_eq!(births.lock().expect("nobody panicked").len(), 2);
}

/// With `on_silence = "fail"` also a datacenter that says nothing at all is not taken for one that has not.
#[test]
fn silence_is_no_answer_where_that_is_configured() {
    let islands = Islands(&[1, 1]);
    let strict = |settings: &mut NodeSettings| settings.discovery.on_silence = OnSilence::Fail;
    islands.simulation(72, strict, |_, node| node.actor::<Counter>()).run(async |world| {
        islands.meet(&world).await;
        assert_eq!(tick(&world, 1, "far").await, Ok(1));
        assert_eq!(tick(&world, 0, "near").await, Ok(1));
        world.partition(0, 1);
        for key in ["far", "new"] {
            let refused = tick(&world, 0, key).await;
            assert!(is_unreachable(&refused), "{key}: {refused:?}");
        }
        assert_eq!(tick(&world, 0, "near").await, Ok(2), "who is known to live here goes on");
        world.heal(0, 1);
        world.advance(Duration::from_secs(12)).await;
        assert_eq!(tick(&world, 0, "far").await, Ok(2));
        assert_eq!(tick(&world, 0, "new").await, Ok(1));
    });
}

/// A node that does not know a kind says so, and another one of its datacenter is asked.
#[test]
fn a_node_without_the_kind_does_not_speak_for_one_that_has_it() {
    let islands = Islands(&[1, 3]);
    for seed in 73..79 {
        let own = |island| {
            let mut own = settings(island);
            own.data_arbiters = Some(1);
            own
        };
        let simulation = Simulation::new(seed)
            .nodes(1, &own(0), |node| node.actor::<Counter>().datacenters(only(0)))
            .another_datacenter()
            .nodes(1, &own(1), |node| node.actor::<Counter>().datacenters(only(1)))
            .nodes(2, &own(1), |node| node.actor::<Clerk>().datacenters(only(1)));
        simulation.run(async |world| {
            islands.meet(&world).await;
            for n in 0..6 {
                let key = format!("k{n}");
                assert_eq!(tick(&world, 1, &key).await, Ok(1));
                assert_eq!(tick(&world, 0, &key).await, Ok(2), "seed {seed}: {key} is found where it lives");
            }
        });
    }
}
