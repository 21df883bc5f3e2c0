//! What stands in etcd, and what one transaction holds together.

use std::collections::BTreeSet;
use std::sync::Arc;

use archipelago_directory::{CasAnswer, Expect, Guard, RecordId, Space, Store, Write};
use archipelago_etcd::directory;
use archipelago_protocol::contract::Directory;
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey};
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;
use archipelago_test_servers::etcd::shared;
use etcd_client::GetOptions;
use futures_util::future::{join, join_all};

use crate::support::{RealTimer, applied, connect, create, operator, owner, put, run, settings};

/// Proves: R173, R489
#[test]
fn people_can_read_the_keys_and_values() {
    let Some(address) = shared() else { return };
    run(async {
        let config = settings(&address);
        let directory = directory(Arc::new(connect(&config).await), RealTimer::new());
        let session = Session { id: NodeId::new(0xab), ttl: Millis(6_000) };
        directory.open_session(session, 7).await.unwrap();
        let info = NodeInfo {
            id: session.id,
            name: "a-1".into(),
            address: NodeAddress::new("10.0.0.1", 4_700).unwrap(),
            roles: BTreeSet::new(),
            version: "0.1.0".into(),
            kinds: Default::default(),
        };
        directory.announce(&info).await.unwrap();
        let key = OwnedKey::shard(Kind::new("Account").unwrap(), 7);
        directory.claim(&key, session, None).await.unwrap();
        let all = GetOptions::new().with_prefix();
        let found = operator(&address).await.get(config.prefix.as_str(), Some(all)).await.unwrap();
        let short = |pair: &etcd_client::KeyValue| pair.key_str().unwrap()[config.prefix.len()..].to_owned();
        let keys: Vec<String> = found.kvs().iter().map(short).collect();
        let node = "00000000000000ab";
        let expected = [
            format!("/by-tag/node/{node}/{node}"),
            format!("/by-tag/own/{node}/{key}"),
            format!("/lease/{node}"),
            format!("/node/{node}"),
            format!("/own/{key}"),
        ];
        assert_eq!(keys, expected);
        for pair in found.kvs() {
            serde_json::from_str::<serde_json::Value>(pair.value_str().unwrap()).unwrap();
        }
        let poster: NodeInfo = serde_json::from_slice(found.kvs()[3].value()).unwrap();
        assert_eq!(poster, info, "the value is the node's info, with a tag beside it");
    });
}

/// The guard is looked at in the transaction that writes: whatever the interleaving, nothing is written after it is gone.
#[test]
fn no_write_comes_after_its_guard_is_gone() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&settings(&address)).await;
        let poster = RecordId::new(Space::NODES, "me");
        for round in 0..10 {
            let standing = create(&store, &poster, "me").await;
            let guard = || Some(Guard { id: poster.clone(), tag: Some("me".into()) });
            let ids: Vec<RecordId> = (0..40).map(|n| owner(&format!("{round}-{n}"))).collect();
            let writes =
                join_all(ids.iter().map(|id| store.cas(id, Expect::Absent, put("me", "{}"), guard())));
            let seen = archipelago_directory::Seen { version: standing, tag: Some("me".into()) };
            let delete = store.cas(&poster, Expect::At(seen), Write::Delete, None);
            let (answers, gone) = join(writes, delete).await;
            let gone = applied(gone);
            for answer in answers {
                match answer.unwrap() {
                    CasAnswer::Applied(version) => {
                        assert!(version < gone, "written after the guard was gone")
                    }
                    CasAnswer::GuardFailed => {}
                    CasAnswer::Conflict(found) => panic!("nobody else writes here: {found:?}"),
                }
            }
        }
    });
}

/// The version is the revision of all of etcd, so it grows across deletes, restarts of clients, and keys.
#[test]
fn versions_are_revisions() {
    let Some(address) = shared() else { return };
    run(async {
        let config = settings(&address);
        let first = connect(&config).await;
        let one = create(&first, &owner("k"), "a").await;
        let other = create(&first, &owner("l"), "a").await;
        let again = connect(&config).await;
        let record = again.get(&owner("k"), archipelago_directory::Read::Any).await.unwrap().unwrap();
        applied(again.cas(&owner("k"), record.expect(), Write::Delete, None).await);
        let two = create(&again, &owner("k"), "a").await;
        assert!(one < other && other < two, "{one:?} {other:?} {two:?}");
    });
}

#[test]
fn long_listings_come_whole_and_dead_nodes_go_in_batches() {
    let Some(address) = shared() else { return };
    run(async {
        let config = settings(&address);
        let store = connect(&config).await;
        let ids: Vec<RecordId> = (0..1_100).map(|n| owner(&format!("{n:04}"))).collect();
        for chunk in ids.chunks(100) {
            join_all(chunk.iter().map(|id| create(&store, id, "dead"))).await;
        }
        create(&store, &owner("other"), "alive").await;
        let listed = store.list(Space::OWNERS, Some("dead")).await.unwrap();
        let found: Vec<&RecordId> = listed.records.iter().map(|record| &record.id).collect();
        assert_eq!(found, ids.iter().collect::<Vec<_>>());
        assert_eq!(store.list(Space::OWNERS, None).await.unwrap().records.len(), 1_101);
        let changed = listed.records[777].expect();
        applied(store.cas(&ids[777], changed, put("alive", "{}"), None).await);
        assert_eq!(store.delete_all(&listed.records).await.unwrap(), 1_099);
        let left = store.list(Space::OWNERS, None).await.unwrap();
        assert_eq!(
            left.records.iter().map(|record| record.id.key.as_str()).collect::<Vec<_>>(),
            ["0777", "other"]
        );
        let below = GetOptions::new().with_prefix().with_count_only();
        let index = format!("{}/by-tag/own/dead/", config.prefix);
        assert_eq!(operator(&address).await.get(index, Some(below)).await.unwrap().count(), 0);
    });
}
