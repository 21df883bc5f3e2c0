//! Kinds that are divided by ranges of keys: splits, merges and moves under load, and the deaths of owners and of the node
//! that decides.
#![expect(clippy::unwrap_used, reason = "a scenario that cannot go on panics")]

mod pages;
mod storm;
mod tempest;

use std::time::Duration;

use archipelago::identity::{NodeAddress, NodeId};
use archipelago::prelude::*;
use archipelago::{ChangeRefusal, RangeError};
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Simulation, World};
use futures_util::future::join_all;

use pages::{
    Book, KEYS, Page, Put, in_order, met, node, one_at_a_time, owners, pages, put, settings, table, three,
};

/// Proves: R324, R331
#[test]
fn every_key_is_served_by_the_node_that_the_table_names() {
    let book = Book::default();
    three(3, &["h", "q"], &book).run(async |world| {
        met(&world).await;
        assert_eq!(table(&world, 0).table.entries().len(), 3);
        assert_eq!(owners(&world, 1).len(), 3, "the ranges are spread");
        for index in 0..3 {
            for key in KEYS {
                let by = put(&world, index, key, 1).await.unwrap();
                assert_eq!(by, table(&world, index).table.find(key).owner.node.as_u64(), "{key}");
            }
        }
    });
    one_at_a_time(&book);
}

#[test]
fn a_node_alone_serves_its_ranges() {
    let (book, settings) = (Book::default(), settings());
    let host = pages(&[], &book);
    let simulation = Simulation::new(7).node(move |builder| host(builder.settings(settings.clone())));
    simulation.run(async |world| {
        met(&world).await;
        assert!(put(&world, 0, "a", 1).await.is_ok());
        node(&world, 0).split_range("Page", "m").await.unwrap();
        assert!(put(&world, 0, "z", 1).await.is_ok());
        world.advance(Duration::from_secs(3)).await;
        assert_eq!(table(&world, 0).table.entries().len(), 2);
        assert!(put(&world, 0, "a", 2).await.is_ok());
        node(&world, 0).merge_range("Page", "a").await.unwrap();
        assert!(put(&world, 0, "a", 3).await.is_ok());
    });
}

/// Sends to all keys from all nodes, without waiting for one call before the next, until `rounds` are over.
async fn load(world: &World, rounds: u32) -> Vec<Result<u64, CallError>> {
    let mut calls = Vec::new();
    for number in 1..=rounds {
        for index in 0..3 {
            for key in KEYS {
                let node = node(world, index);
                let options = CallOptions::new().timeout(Duration::from_secs(8));
                let (page, put) = (node.actor::<Page>(key), Put { from: node.id().as_u64(), number });
                calls.push(from_outside(|| page.send_with(put, options)));
            }
        }
        world.advance(Duration::from_millis(20)).await;
    }
    join_all(calls).await
}

/// Proves: R330, R331
#[test]
fn nothing_is_lost_or_overtaken_while_ranges_are_split_merged_and_moved() {
    for seed in 1..=6 {
        let book = Book::default();
        let run = three(seed, &[], &book).run(async |world| {
            met(&world).await;
            let changes = {
                let world = world.clone();
                async move {
                    let mut done = 0;
                    for round in 0..12_u64 {
                        world.advance(Duration::from_millis(150)).await;
                        let asker = node(&world, usize::try_from(world.below(3)).unwrap());
                        let at =
                            ["b", "e", "h", "m", "q", "t", "x"][usize::try_from(world.below(7)).unwrap()];
                        let changed = match round % 3 {
                            0 | 1 => asker.split_range("Page", at).await,
                            _ if world.chance(500) => asker.merge_range("Page", at).await,
                            _ => {
                                let to = node(&world, usize::try_from(world.below(3)).unwrap()).id();
                                asker.move_range("Page", at, to).await
                            }
                        };
                        match changed {
                            Ok(_) => done += 1,
                            Err(RangeError::Refused(ChangeRefusal::NotInside)) => {}
                            Err(error) => panic!("seed {seed}: {error}"),
                        }
                    }
                    done
                }
            };
            let (done, answers) = futures_util::future::join(changes, load(&world, 120)).await;
            world.advance(Duration::from_secs(5)).await;
            for answer in answers {
                assert!(answer.is_ok(), "seed {seed}: {answer:?}");
            }
            assert_eq!(table(&world, 0), table(&world, 2), "all nodes end with the same table");
            done
        });
        assert!(run.output >= 5, "seed {seed}: only {} changes", run.output);
        one_at_a_time(&book);
        in_order(&book);
        let written: usize = book.lock().unwrap().values().map(Vec::len).sum();
        assert_eq!(written, 120 * 3 * KEYS.len(), "seed {seed}: each message exactly once");
    }
}

/// Proves: R336
#[test]
fn the_ranges_of_a_node_that_has_gone_are_served_by_others() {
    for crashed in 0..3 {
        let book = Book::default();
        three(11, &["h", "q"], &book).run(async |world| {
            met(&world).await;
            for key in KEYS {
                assert!(put(&world, (crashed + 1) % 3, key, 1).await.is_ok());
            }
            let gone = node(&world, crashed).id().as_u64();
            world.crash(crashed).await;
            world.advance(Duration::from_secs(25)).await;
            let asker = (crashed + 1) % 3;
            assert!(!owners(&world, asker).contains(&gone), "its ranges have other owners");
            for (number, key) in (2..).zip(KEYS) {
                assert!(put(&world, asker, key, number).await.is_ok(), "{key} after the death of {crashed}");
            }
            node(&world, asker).split_range("Page", "d").await.expect("somebody decides");
            assert!(put(&world, asker, "a", 50).await.is_ok());
        });
        one_at_a_time(&book);
    }
}

/// The node that decides dies right after a split was asked for, at different moments of it.
#[test]
fn a_split_whose_manager_dies_is_ended_by_the_next_one() {
    for pause in [0, 2, 5, 10, 20, 40, 80, 160] {
        let book = Book::default();
        three(5, &[], &book).run(async |world| {
            met(&world).await;
            assert!(put(&world, 1, "a", 1).await.is_ok());
            let leader = node(&world, 0).leader().expect("somebody leads");
            let leads = (0..3).find(|index| node(&world, *index).id() == leader).unwrap();
            let asker = node(&world, (leads + 1) % 3);
            let split = async move { asker.split_range("Page", "m").await };
            let crash = async {
                world.advance(Duration::from_millis(pause)).await;
                world.crash(leads).await;
            };
            drop(futures_util::future::join(split, crash).await);
            world.advance(Duration::from_secs(30)).await;
            let asker = (leads + 1) % 3;
            for (number, key) in (2..).zip(KEYS) {
                assert!(put(&world, asker, key, number).await.is_ok(), "{key}, {pause} ms after the split");
            }
            // It came into force, or it did not; either way the next one finds a table without loose ends.
            match node(&world, asker).split_range("Page", "m").await {
                Ok(_) | Err(RangeError::Refused(ChangeRefusal::NotInside)) => {}
                Err(error) => panic!("{pause} ms: {error}"),
            }
            world.advance(Duration::from_secs(5)).await;
            let entries = table(&world, asker).table.entries().to_vec();
            assert_eq!(entries.len(), 2);
            assert!(entries.iter().all(|entry| entry.parents.is_empty()), "{entries:?}");
        });
        one_at_a_time(&book);
    }
}

/// Proves: R336
#[test]
fn a_node_that_leaves_gives_its_ranges_up_and_no_call_fails() {
    let book = Book::default();
    three(9, &["h", "q"], &book).run(async |world| {
        met(&world).await;
        for key in KEYS {
            assert!(put(&world, 1, key, 1).await.is_ok());
        }
        let stopping = world.clone();
        world.spawn(async move { drop(stopping.stop(0).await) });
        for round in 2..60 {
            world.advance(Duration::from_millis(50)).await;
            for key in KEYS {
                let answer = put(&world, 1, key, round).await;
                assert!(answer.is_ok(), "round {round}: {key}: {answer:?}");
            }
        }
    });
    one_at_a_time(&book);
    in_order(&book);
}

/// Proves: R332
#[test]
fn a_light_client_reaches_every_key() {
    let book = Book::default();
    let at = |index: usize| NodeAddress::new(&format!("node-{index}"), 7_000).expect("a plain address");
    let bound = move |index: usize| {
        let mut settings = settings();
        settings.remote.bind = at(index);
        settings
    };
    let host = pages(&["h", "q"], &book);
    let mut simulation = Simulation::new(13).with_network().without_observer();
    for index in 0..3 {
        let host = host.clone();
        simulation = simulation.node(move |builder| host(builder.settings(bound(index))));
    }
    let simulation = simulation
        .node(move |builder| builder.settings(bound(3)).client([at(0), at(1)]).remote_actor::<Page>());
    simulation.run(async |world| {
        met(&world).await;
        for key in KEYS {
            assert!(put(&world, 3, key, 1).await.is_ok(), "{key}");
        }
        node(&world, 1).split_range("Page", "d").await.unwrap();
        for key in KEYS {
            assert!(put(&world, 3, key, 2).await.is_ok(), "{key}");
        }
    });
    one_at_a_time(&book);
    in_order(&book);
}

#[test]
fn a_change_that_makes_no_sense_is_refused() {
    let book = Book::default();
    three(17, &["m"], &book).run(async |world| {
        met(&world).await;
        let one = node(&world, 1);
        let refused = |why| Err(RangeError::Refused(why));
        assert_eq!(one.split_range("Page", "m").await, refused(ChangeRefusal::NotInside), "it begins there");
        assert_eq!(one.merge_range("Page", "z").await, refused(ChangeRefusal::NotInside), "none follows");
        let nobody = NodeId::new(1);
        assert_eq!(one.move_range("Page", "a", nobody).await, refused(ChangeRefusal::UnknownNode));
        let unknown = one.split_range("Moon", "a").await;
        assert_eq!(unknown, Err(RangeError::NotDivided { kind: "Moon".to_owned() }));
        assert!(matches!(one.split_range("Page", "").await, Err(RangeError::InvalidKey(_))));
    });
}
