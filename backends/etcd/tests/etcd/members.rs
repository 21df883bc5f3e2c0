//! Several endpoints: any that answers will do.

use std::time::Duration;

use archipelago_directory::{Expect, Space, Store, StoreError};
use archipelago_etcd::EtcdConfig;
use archipelago_test_servers::etcd::EtcdServer;
use futures_util::future::join;

use crate::support::{Road, connect, create, current, hasty, owner, put, run, settings};

#[test]
fn endpoints_that_are_not_there_are_passed_over() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = format!("http://{}", gone.local_addr().unwrap());
        let endpoints = vec![gone.clone(), server.address(), gone];
        let store = connect(&EtcdConfig { endpoints, ..settings(&server.address()) }).await;
        for n in 0..20 {
            create(&store, &owner(&n.to_string()), "a").await;
        }
        assert_eq!(store.list(Space::OWNERS, Some("a")).await.unwrap().records.len(), 20);
    });
}

#[test]
fn an_endpoint_that_has_gone_silent_is_left_for_the_next() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let (first, second) = (Road::to(&server.address()).await, Road::to(&server.address()).await);
        let endpoints = vec![first.address.clone(), second.address.clone()];
        let store = connect(&EtcdConfig { endpoints, ..hasty(&first.address) }).await;
        create(&store, &owner("before"), "a").await;
        assert_eq!((first.accepted(), second.accepted()), (1, 0));
        first.block();
        let answer = store.cas(&owner("lost"), Expect::Absent, put("a", "{}"), None).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        create(&store, &owner("after"), "a").await;
        assert_eq!((first.accepted(), second.accepted()), (1, 1));
    });
}

/// A write that may have been taken is never sent to another member: it would be applied twice, or be refused as a
/// conflict with itself.
#[test]
fn only_what_was_certainly_not_taken_goes_to_the_next_endpoint() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    run(async {
        let road = Road::to(&server.address()).await;
        let (lost, other) = (road.address.clone(), server.address());
        let endpoints = vec![lost, other];
        let store = connect(&EtcdConfig { endpoints, ..settings(&server.address()) }).await;
        create(&store, &owner("before"), "a").await;
        server.pause();
        let id = owner("k");
        let write = store.cas(&id, Expect::Absent, put("a", "{}"), None);
        let sent = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            server.restart();
        };
        let (answer, ()) = join(write, sent).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        assert_eq!(current(&store, &id).await.unwrap(), None, "it died with the server");
    });
}
