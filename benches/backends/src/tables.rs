//! The JSON table of a range-partitioned kind: how large it is, how long a save takes and a watch needs to tell it, and at
//! which size each store refuses it.
//!
//! Tables with more partitions than [`RangeTable::MAX_PARTITIONS`] cannot be made by the library, so the bytes are written
//! here and stored as they are; that they are the bytes which the library writes is checked with the smallest one.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{
    CasAnswer, Change, Expect, Read, RecordId, Seen, Space, Store, StoreRoutingTable, Version, Write,
    table_id,
};
use archipelago_protocol::contract::{Epoch, RoutingTable};
use archipelago_protocol::identity::{ActorKey, Kind, NodeAddress, NodeId, PartitionName};
use archipelago_protocol::ranges::{KeyRange, OwnerStatus, RangeTable, RouteEntry, RouteOwner};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::contestant::RealTimer;

/// Measures one engine and prints what was found; how many bars are short.
pub(crate) async fn run(engine: &str, store: Arc<dyn Store>) -> usize {
    check_bytes(&store).await;
    for ranges in RANGES {
        let value = Bytes::from(json(ranges));
        let kib = value.len() as f64 / 1024.0;
        match save_and_watch(&store, value).await {
            Ok((save, watch)) => println!(
                "{engine} table {ranges:>7} ranges {kib:>9.1} KiB: save {:>8.2} ms, watch {:>8.2} ms",
                save.as_secs_f64() * 1e3,
                watch.as_secs_f64() * 1e3
            ),
            Err(why) => println!("{engine} table {ranges:>7} ranges {kib:>9.1} KiB: refused ({why})"),
        }
    }
    let (taken, refused) = limit(&store).await;
    match refused {
        Some(why) => {
            println!("{engine} table: the engine takes {} KiB, and refuses more ({why})", taken >> 10)
        }
        None => println!("{engine} table: the engine takes {} KiB and more", taken >> 10),
    }
    bar(engine, &store)
}

/// How many ranges fit into what we let the engine have.
fn bar(engine: &str, store: &Arc<dyn Store>) -> usize {
    let fits = (1..).map(|n| n * 100).take_while(|n| json(*n).len() <= store.max_value()).last().unwrap_or(0);
    let verdict = if fits >= REQUIRED { "ok" } else { "short" };
    println!("{engine} table: {fits} ranges fit into max_value, {} KiB", store.max_value() >> 10);
    println!("bar backends.tables_{engine}_ranges measured={fits} required={REQUIRED} {verdict}");
    usize::from(fits < REQUIRED)
}

/// The median time of a save, and of the time from its start until a watch shows it.
async fn save_and_watch(store: &Arc<dyn Store>, value: Bytes) -> Result<(Duration, Duration), String> {
    let id = RecordId::new(Space::TABLES, "Bench");
    let position = store.list(Space::TABLES, None).await.map_err(|error| in_words(&error))?.position;
    let mut changes = store.watch(Space::TABLES, position).await.map_err(|error| in_words(&error))?;
    let (mut saves, mut watches) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let version = put(store, &id, value.clone()).await?;
        saves.push(start.elapsed());
        let seen = async {
            while let Some(change) = changes.next().await {
                if let Ok(Change::Put { record, .. }) = &change
                    && record.version == version
                {
                    return record.value.len();
                }
            }
            0
        };
        let len =
            tokio::time::timeout(PATIENCE, seen).await.map_err(|_| "the watch shows nothing".to_owned())?;
        assert_eq!(len, value.len(), "the watch shows the whole table");
        watches.push(start.elapsed());
    }
    saves.sort();
    watches.sort();
    Ok((saves[ROUNDS / 2], watches[ROUNDS / 2]))
}

async fn put(store: &Arc<dyn Store>, id: &RecordId, value: Bytes) -> Result<Version, String> {
    let read = store.get(id, Read::Linearizable).await.map_err(|error| in_words(&error))?;
    let expect =
        read.map_or(Expect::Absent, |record| Expect::At(Seen { version: record.version, tag: record.tag }));
    let write = Write::Put { tag: None, value, ttl: None };
    match store.cas(id, expect, write, None).await {
        Ok(CasAnswer::Applied(version)) => Ok(version),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(in_words(&error)),
    }
}

/// The greatest size that the engine takes, to a KiB, and what it says to more; up to 16 MiB.
async fn limit(store: &Arc<dyn Store>) -> (usize, Option<String>) {
    let id = RecordId::new(Space::TABLES, "Limit");
    let sized = |bytes: usize| Bytes::from(format!("{{\"x\":\"{}\"}}", "a".repeat(bytes.saturating_sub(8))));
    let (mut taken, mut refused, mut why) = (0, MOST, None);
    while refused - taken > 1024 {
        let size = usize::midpoint(taken, refused);
        match put(store, &id, sized(size)).await {
            Ok(_) => taken = size,
            Err(error) => (refused, why) = (size, Some(error)),
        }
    }
    (taken, why)
}

/// What the library stores for a table is what is measured here.
async fn check_bytes(store: &Arc<dyn Store>) {
    let (kind, ranges) = (Kind::new("Check").expect("a name"), 1_000);
    let tables = StoreRoutingTable::new(Arc::clone(store), RealTimer::start());
    let entries = (0..ranges).map(|n| entry(n, ranges)).collect();
    let table = RangeTable::new(entries).expect("every key is in one range");
    tables.save(&kind, &table, None, Epoch(12)).await.expect("a table of a thousand ranges is taken");
    let stored = store.get(&table_id(&kind), Read::Linearizable).await.unwrap().expect("it was just saved");
    assert_eq!(String::from_utf8_lossy(&stored.value), json(ranges));
}

fn entry(n: usize, of: usize) -> RouteEntry {
    let key = |n: usize| (0 < n && n < of).then(|| ActorKey::new(&format!("user-{n:08}")).expect("a key"));
    RouteEntry {
        partition: PartitionName::new(&format!("12-{n}")).expect("a name"),
        range: KeyRange::new(key(n), key(n + 1)).expect("not empty"),
        owner: RouteOwner { node: NodeId::new(node(n)), address: address(n), status: OwnerStatus::Up },
        parents: Vec::new(),
    }
}

fn json(ranges: usize) -> String {
    let mut text = "{\"version\":1,\"epoch\":12,\"entries\":[".to_owned();
    for n in 0..ranges {
        let entry = entry(n, ranges);
        let bound = |key: Option<&ActorKey>| key.map_or(String::new(), |key| key.as_str().to_owned());
        let comma = if n > 0 { "," } else { "" };
        write!(
            text,
            "{comma}{{\"partitionId\":\"{}\",\"keyRangeStart\":\"{}\",\"keyRangeEnd\":\"{}\",\"nodeId\":\"{}\",\
             \"nodeAddress\":\"{}\",\"nodeStatus\":0}}",
            entry.partition,
            bound(entry.range.start()),
            bound(entry.range.end()),
            entry.owner.node,
            entry.owner.address,
        )
        .expect("a text takes everything");
    }
    text + "]}"
}

fn node(n: usize) -> u64 {
    (n as u64 % 300 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn address(n: usize) -> NodeAddress {
    NodeAddress::new(&format!("10.0.3.{}", n % 200), 4_710).expect("an address")
}

fn in_words(error: &dyn std::error::Error) -> String {
    let cause = error.source().map_or_else(String::new, |source| format!(": {source}"));
    format!("{error}{cause}").chars().take(120).collect()
}

const RANGES: [usize; 3] = [1_000, 10_000, 100_000];
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(20);
const MOST: usize = 16 << 20;
/// A range for each of the thousand nodes that a cluster may have.
const REQUIRED: usize = 1_000;

#[cfg(test)]
mod tests {
    use archipelago_embedded::EmbeddedStore;

    use super::*;

    /// Proves: R477
    #[tokio::test]
    async fn size_and_times_of_a_table_are_measured() {
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::default());
        check_bytes(&store).await;
        let value = Bytes::from(json(REQUIRED));
        assert!(value.len() / REQUIRED > 50, "{} bytes for {REQUIRED} ranges", value.len());
        let (save, watch) = save_and_watch(&store, value).await.expect("the store takes it");
        assert!(save <= watch && watch < PATIENCE, "{save:?} {watch:?}");
        assert_eq!(bar("embedded", &store), 0, "a range for each node fits");
    }
}
