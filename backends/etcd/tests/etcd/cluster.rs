//! Three members, of which one is killed.

use std::time::{Duration, Instant};

use archipelago_directory::{CasAnswer, Expect, Space, Store, StoreError};
use archipelago_etcd::EtcdConfig;
use archipelago_test_servers::etcd::EtcdServer;

use crate::support::{connect, create, owner, put, run, settings};

/// Proves: R373
#[test]
fn writes_go_on_when_any_one_of_three_members_is_killed() {
    let Some(mut members) = EtcdServer::cluster(3) else { return };
    run(async {
        let endpoints: Vec<String> = members.iter().map(EtcdServer::address).collect();
        let request_timeout = Duration::from_secs(2);
        let config = EtcdConfig { endpoints, request_timeout, ..settings(&members[0].address()) };
        let store = connect(&config).await;
        let mut acknowledged = vec![(owner("before"), create(&store, &owner("before"), "a").await)];
        for (n, member) in members.iter_mut().enumerate() {
            member.kill();
            let id = owner(&format!("after {n}"));
            let killed = Instant::now();
            let version = loop {
                match store.cas(&id, Expect::Absent, put("a", "{}"), None).await {
                    Ok(CasAnswer::Applied(version)) => break version,
                    // Its answer was lost with the member that should have given it.
                    Ok(CasAnswer::Conflict(Some(record))) => break record.version,
                    Err(StoreError::Unknown { .. } | StoreError::Unavailable { .. }) => {}
                    other => panic!("{other:?}"),
                }
                assert!(killed.elapsed() < ELECTION, "no write after {:?}", killed.elapsed());
            };
            eprintln!("member {n} killed: writes go on after {:?}", killed.elapsed());
            acknowledged.push((id, version));
            member.restart();
        }
        let listed = store.list(Space::OWNERS, Some("a")).await.unwrap().records;
        let stands: Vec<_> = listed.into_iter().map(|record| (record.id, record.version)).collect();
        acknowledged.sort();
        assert_eq!(stands, acknowledged, "nothing is lost");
    });
}

/// One second and a half of silence, the votes, and a busy machine.
const ELECTION: Duration = Duration::from_secs(10);
