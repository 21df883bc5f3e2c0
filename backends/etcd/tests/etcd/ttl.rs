//! The engine's own time to live.

use std::time::Duration;

use archipelago_directory::{Change, Expect, RecordId, Seen, Space, Store, Version, Write};
use archipelago_protocol::time::Millis;
use archipelago_test_servers::etcd::shared;
use bytes::Bytes;
use futures_util::StreamExt;

use crate::support::{applied, connect, operator, run, settings};

fn lease(name: &str) -> RecordId {
    RecordId::new(Space::LEASES, name)
}

fn put(ttl: Option<u64>) -> Write {
    Write::Put { tag: None, value: Bytes::from_static(b"{}"), ttl: ttl.map(Millis) }
}

fn at(version: Version) -> Expect {
    Expect::At(Seen { version, tag: None })
}

/// Proves: R168, R385
#[test]
fn a_record_that_nobody_writes_any_more_goes_by_itself() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&settings(&address)).await;
        let kept = applied(store.cas(&lease("kept"), Expect::Absent, put(None), None).await);
        let left = applied(store.cas(&lease("left"), Expect::Absent, put(Some(1_000)), None).await);
        let mut watch = store.watch(Space::LEASES, archipelago_directory::Position(left.0)).await.unwrap();
        let change = watch.next().await.unwrap().unwrap();
        assert!(matches!(&change, Change::Deleted { id, .. } if *id == lease("left")), "{change:?}");
        let still = store.get(&lease("kept"), archipelago_directory::Read::Linearizable).await.unwrap();
        assert_eq!(still.map(|record| record.version), Some(kept));
    });
}

#[test]
fn a_record_that_is_written_again_in_time_stays() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&settings(&address)).await;
        let mut version = applied(store.cas(&lease("beats"), Expect::Absent, put(Some(1_000)), None).await);
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            version = applied(store.cas(&lease("beats"), at(version), put(Some(1_000)), None).await);
        }
    });
}

/// The end of a session is written without the engine lease of its beats, so it outlives that.
#[test]
fn a_write_without_a_time_to_live_takes_the_record_off_its_lease() {
    let Some(address) = shared() else { return };
    run(async {
        let config = settings(&address);
        let store = connect(&config).await;
        let version = applied(store.cas(&lease("ended"), Expect::Absent, put(Some(1_000)), None).await);
        let key = format!("{}/lease/ended", config.prefix);
        let mut operator = operator(&address).await;
        let on = operator.get(key.as_str(), None).await.unwrap().kvs()[0].lease();
        assert_ne!(on, 0);
        let version = applied(store.cas(&lease("ended"), at(version), put(None), None).await);
        operator.lease_client().revoke(on).await.unwrap();
        let record = store.get(&lease("ended"), archipelago_directory::Read::Linearizable).await.unwrap();
        assert_eq!(record.map(|record| record.version), Some(version));
    });
}

#[test]
fn a_lease_that_the_server_has_lost_is_replaced() {
    let Some(address) = shared() else { return };
    run(async {
        let config = settings(&address);
        let store = connect(&config).await;
        applied(store.cas(&lease("one"), Expect::Absent, put(Some(60_000)), None).await);
        let mut operator = operator(&address).await;
        let key = |name: &str| format!("{}/lease/{name}", config.prefix);
        let on = operator.get(key("one"), None).await.unwrap().kvs()[0].lease();
        operator.lease_client().revoke(on).await.unwrap();
        applied(store.cas(&lease("two"), Expect::Absent, put(Some(60_000)), None).await);
        applied(store.cas(&lease("three"), Expect::Absent, put(Some(60_000)), None).await);
        let two = operator.get(key("two"), None).await.unwrap().kvs()[0].lease();
        let three = operator.get(key("three"), None).await.unwrap().kvs()[0].lease();
        assert!(two != 0 && two != on, "{two} after {on}");
        assert_eq!(two, three, "one lease serves all writes of one time to live");
        let ttl = operator.lease_client().time_to_live(two, None).await.unwrap();
        assert_eq!(ttl.granted_ttl(), 120);
    });
}
