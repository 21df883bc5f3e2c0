//! Actors are looked for from abroad while their shards move from node to node at home: each of them goes on living in one
//! datacenter.

use super::*;

/// An actor comes to life: which one, and in which datacenter.
pub(super) type Births = Arc<Mutex<Vec<(String, usize)>>>;

/// Says in which datacenter it lives.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
pub(super) struct Resident(pub(super) u32);

#[remote(u32)]
pub(super) struct Where;

impl Actor for Resident {
    type Context = Context<Self>;
}

impl Handler<Where> for Resident {
    type Result = u32;
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u32 {
        self.0
    }
}

/// Every node hosts residents, and is what `more` makes of it.
pub(super) fn residents(
    islands: &Islands<'_>,
    seed: u64,
    more: impl Fn(usize, NodeBuilder) -> NodeBuilder + Clone + 'static,
) -> (Simulation, Births) {
    let births = Births::default();
    let log = Arc::clone(&births);
    let build = move |island: usize, node: NodeBuilder| {
        let log = Arc::clone(&log);
        more(island, node).actor_with(move |id: &ActorId, _: &Node| {
            log.lock().expect("nobody panicked").push((id.key().as_str().to_owned(), island));
            Resident(u32::try_from(island).expect("a small number"))
        })
    };
    (islands.simulation(seed, |_| (), build), births)
}

pub(super) async fn asked(world: &World, index: usize, key: &str) -> Result<u32, CallError> {
    let resident = node(world, index).actor::<Resident>(key);
    from_outside(|| resident.send(Where)).await
}

/// Orders the move of an actor's shard from wherever it is to node `to`; it goes on while others act.
fn move_away(world: &World, key: &str, to: usize) {
    let ordering = node(world, to);
    let hash = ordering.actor::<Resident>(key).id().expect("the key is one").stable_hash();
    let shard = u32::try_from(hash % 256).expect("a small number");
    let to = ordering.id();
    world.spawn(async move {
        let moved = ordering.move_shard("Resident", shard, to).await;
        assert!(matches!(moved, Ok(HandOffOutcome::Moved(_))), "{moved:?}");
    });
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("k{n}")).collect()
}

#[test]
fn an_actor_that_is_looked_for_while_its_shard_moves_is_found_where_it_lives() {
    for seed in 30..42 {
        let islands = Islands(&[1, 2]);
        let (simulation, births) = residents(&islands, seed, |_, node| node);
        simulation.run(async |world| {
            islands.meet(&world).await;
            for key in keys(30) {
                assert_eq!(asked(&world, 1, &key).await, Ok(1));
            }
            for key in keys(30) {
                move_away(&world, &key, 2);
                world.advance(Duration::from_millis(world.below(30))).await;
                assert_eq!(asked(&world, 0, &key).await, Ok(1), "seed {seed}, {key}");
            }
        });
        let abroad: Vec<_> =
            births.lock().expect("nobody panicked").iter().filter(|birth| birth.1 == 0).cloned().collect();
        assert_eq!(abroad, [], "seed {seed}: nobody has come to life abroad");
    }
}

#[test]
fn an_actor_that_has_moved_twice_and_was_not_needed_since_still_lives_in_its_datacenter() {
    let islands = Islands(&[1, 3]);
    let (simulation, births) = residents(&islands, 43, |_, node| node);
    simulation.run(async |world| {
        islands.meet(&world).await;
        for key in keys(10) {
            assert_eq!(asked(&world, 1, &key).await, Ok(1));
            for to in [2, 3] {
                move_away(&world, &key, to);
                world.advance(Duration::from_millis(500)).await;
            }
        }
        let before = births.lock().expect("nobody panicked").len();
        assert_eq!(before, 10, "a move alone brings nobody to life");
        for key in keys(10) {
            assert_eq!(asked(&world, 0, &key).await, Ok(1), "{key}");
        }
        assert_eq!(asked(&world, 0, "new").await, Ok(0), "who never lived comes to life where he is called");
    });
}

#[test]
fn a_search_waits_for_the_heir_of_a_node_that_died_and_the_others_there_are_found_meanwhile() {
    let islands = Islands(&[1, 2]);
    let (simulation, births) = residents(&islands, 44, |_, node| node);
    simulation.run(async |world| {
        islands.meet(&world).await;
        for key in ["one", "two"] {
            assert_eq!(asked(&world, 1, key).await, Ok(1));
        }
        for key in ["three", "four"] {
            assert_eq!(asked(&world, 2, key).await, Ok(1));
        }
        world.crash(2).await;
        let began = world.now();
        assert_eq!(asked(&world, 0, "one").await, Ok(1));
        let lost = node(&world, 0).actor::<Resident>("three");
        world.spawn(async move {
            // Nobody can say whether it lives: either it comes back to life there, or the call fails.
            let _ = from_outside(|| lost.send(Where)).await;
        });
        world.advance(Duration::from_millis(300)).await;
        assert_eq!(
            asked(&world, 0, "two").await,
            Ok(1),
            "who cannot say about one is still asked about others"
        );
        assert!(world.now() - began < Duration::from_secs(2), "{:?}", world.now() - began);
        let refused = asked(&world, 0, "four").await;
        assert!(matches!(refused, Err(CallError::Unreachable { .. })), "nobody can say yet: {refused:?}");
        world.advance(Duration::from_secs(15)).await;
        assert_eq!(asked(&world, 0, "four").await, Ok(0), "its node is known to be dead: it lives nowhere");
    });
    let births = births.lock().expect("nobody panicked").clone();
    let early = births.iter().filter(|birth| birth.1 == 0).count();
    assert_eq!(early, 1, "nobody comes to life abroad as long as nobody can say: {births:?}");
}
