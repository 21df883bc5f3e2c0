//! How fast claims are, against the same transactions by etcd's client alone.

use std::time::Instant;

use archipelago_directory::Store;
use archipelago_directory::{Expect, Guard, RecordId, Space};
use archipelago_test_servers::etcd::EtcdServer;
use etcd_client::{Compare, CompareOp, KvClient, Txn, TxnOp};
use futures_util::stream::{self, StreamExt};

use crate::support::{applied, connect, create, operator, owner, put, run, settings};

#[test]
#[ignore = "measures: run alone, in release"]
fn claims_are_nearly_as_fast_as_the_client_alone() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let config = settings(&server.address());
        let store = connect(&config).await;
        let kv = operator(&server.address()).await.kv_client();
        let poster = RecordId::new(Space::NODES, "me");
        create(&store, &poster, "me").await;
        let mut best = [f64::MAX; 2];
        for round in 0..5 {
            let start = Instant::now();
            let ours = stream::iter(0..CLAIMS).for_each_concurrent(64, |n| {
                let (id, store) = (owner(&format!("ours-{round}-{n}")), &store);
                let guard = Some(Guard { id: poster.clone(), tag: Some("me".into()) });
                async move {
                    applied(store.cas(&id, Expect::Absent, put("me", VALUE), guard).await);
                }
            });
            ours.await;
            best[0] = best[0].min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let raw = stream::iter(0..CLAIMS).for_each_concurrent(64, |n| {
                raw_claim(kv.clone(), &config.prefix, format!("raw-{round}-{n}"))
            });
            raw.await;
            best[1] = best[1].min(start.elapsed().as_secs_f64());
        }
        let [ours, raw] = best.map(|seconds| CLAIMS as f64 / seconds);
        eprintln!("claims per second: ours {ours:.0}, client alone {raw:.0}, ratio {:.2}", ours / raw);
        assert!(ours >= 0.8 * raw);
    });
}

async fn raw_claim(mut kv: KvClient, prefix: &str, key: String) {
    let (record, index) = (format!("{prefix}/own/{key}"), format!("{prefix}/by-tag/own/me/{key}"));
    let guard = format!("{prefix}/by-tag/node/me/me");
    let txn = Txn::new()
        .when([
            Compare::mod_revision(record.as_str(), CompareOp::Equal, 0),
            Compare::create_revision(guard, CompareOp::Greater, 0),
        ])
        .and_then([TxnOp::put(record.as_str(), VALUE, None), TxnOp::put(index, VALUE, None)])
        .or_else([TxnOp::get(record, None)]);
    assert!(kv.txn(txn).await.unwrap().succeeded());
}

const CLAIMS: usize = 600;
const VALUE: &str = r#"{"session":"00000000000000ab","ttl_ms":6000}"#;
