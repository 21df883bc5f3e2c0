//! Three servers that keep three replicas, of which the stream's leader is killed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{CasAnswer, Expect, Read, RecordId, Store, StoreError, Version};
use archipelago_nats::NatsConfig;
use archipelago_test_servers::{ServerProcess, nats};
use futures_util::future::join_all;

use crate::rig::{block_on, connect, owner, put, until};

fn config(members: &[ServerProcess]) -> NatsConfig {
    let mut config = NatsConfig::default();
    config.urls = members.iter().map(|member| nats::url(member).try_into().expect("an address")).collect();
    config.connect_timeout = Duration::from_secs(20);
    config.settle = Duration::ZERO;
    config
}

/// The place among the members of the one that leads the stream.
async fn leader(config: &NatsConfig) -> usize {
    let url = config.urls.last().expect("there is one").as_str().to_owned();
    let client = async_nats::connect(url).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream(config.stream.to_string()).await.unwrap();
    let leader = stream.cached_info().cluster.as_ref().and_then(|cluster| cluster.leader.clone()).unwrap();
    leader.strip_prefix("member").unwrap().parse().unwrap()
}

/// Creates a record, however long it takes; `Unknown` is settled by making the same write again.
async fn create(store: &dyn Store, id: &RecordId) -> Version {
    let started = Instant::now();
    loop {
        match store.cas(id, Expect::Absent, put("a", "x"), None).await {
            Ok(CasAnswer::Applied(version)) => return version,
            Ok(CasAnswer::Conflict(Some(record))) => return record.version,
            Err(StoreError::Unknown { .. } | StoreError::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
        assert!(started.elapsed() < ELECTION, "no write after {:?}", started.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// While a clustered leader has not decided about a write, it refuses others to the same subject (error 10164, or 10071 once
/// it has): all of that is read again until it is clear who won.
///
/// Proves: R220, R221, R373
#[test]
fn writes_resume_after_the_leader_is_killed_and_races_have_one_winner() {
    let Some(program) = nats::program() else { return };
    let mut members = nats::start_cluster(&program, 3);
    block_on(async {
        let config = config(&members);
        let stores = [connect(config.clone()).await, connect(config.clone()).await];
        race(&stores, "before").await;
        let mut acknowledged = Vec::new();
        for n in 0..50 {
            let id = owner(&format!("k{n}"));
            acknowledged.push((id.clone(), create(&*stores[0], &id).await));
        }
        members[leader(&config).await].kill();
        let killed = Instant::now();
        for (n, store) in stores.iter().enumerate() {
            let id = owner(&format!("after {n}"));
            acknowledged.push((id.clone(), create(&**store, &id).await));
            eprintln!("leader killed: store {n} writes after {:?}", killed.elapsed());
        }
        race(&stores, "after").await;
        for (id, version) in acknowledged {
            let found =
                until("an answer", || async { stores[1].get(&id, Read::Linearizable).await.ok() }).await;
            let found = found.expect("is not lost");
            assert_eq!(found.version, version, "{id}");
        }
    });
}

/// Several writers want each of some new records at the same moment. A loser may be told that it was not decided in time,
/// but nobody is told so often, and never are there two winners.
async fn race(stores: &[Arc<archipelago_nats::NatsStore>; 2], when: &str) {
    let mut clear = 0;
    for round in 0..ROUNDS {
        let id = owner(&format!("race {when} {round}"));
        let writers = (0..6).map(|n| {
            let (store, id) = (&stores[n % 2], &id);
            async move { store.cas(id, Expect::Absent, put(&n.to_string(), "x"), None).await }
        });
        let answers = join_all(writers).await;
        let won = answers.iter().filter(|answer| matches!(answer, Ok(CasAnswer::Applied(_)))).count();
        let lost = answers.iter().filter(|answer| matches!(answer, Ok(CasAnswer::Conflict(Some(_))))).count();
        let undecided = |answer: &Result<CasAnswer, StoreError>| {
            matches!(answer, Err(StoreError::Unavailable { .. } | StoreError::Unknown { .. }))
        };
        let open = answers.iter().filter(|answer| undecided(answer)).count();
        assert!(won <= 1 && won + lost + open == 6, "{when}, round {round}: {answers:?}");
        clear += u32::from((won, lost) == (1, 5));
    }
    assert!(clear > ROUNDS / 2, "{when}: {clear} of {ROUNDS} races were decided at once");
}

const ROUNDS: u32 = 40;
/// Nine seconds at most, says the server's source, and a busy machine.
const ELECTION: Duration = Duration::from_secs(20);
