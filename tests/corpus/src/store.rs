//! The messages between a node that serves its store and its clients, and what nodes write into a store.

use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, ControlPlaneConfig, Expect, OwnerValue, Position, Read, Record, RecordId, Sleep, Space, Store,
    StoreControlPlane, StoreHomes, StoreRoutingTable, StoreStateStore, Timer, Version, Write, data_center_id,
    home_id, kind_id, lease_id, node_record_id, owner_id, state_id, table_id,
};
use archipelago_embedded::{
    CarryError, Courier, EmbeddedStore, MAX_MESSAGE, ServedStore, StoreServer, directory,
};
use archipelago_protocol::contract::{
    ControlPlane, ControlPlaneError, Directory, DirectoryError, Homes, PlacementScope, RoutingTable,
    RoutingTableError, StateStore, StateStoreError, WatchScope,
};
use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::identity::{ActorId, Generation, Kind, NodeId, OwnedKey};
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::session::{Lease, Session};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};

use crate::{memory, samples};

/// A request of a client, as the server reads it.
pub(crate) fn store_request(bytes: &[u8]) -> bool {
    let server = StoreServer::new(filled_store(), INSTANCE, Arc::new(Clock::Skips), Millis::ZERO);
    let request = Bytes::copy_from_slice(bytes);
    let serve = || server.serve(request).now_or_never().expect("a request is answered at once");
    let answer = memory::within(bytes.len(), MEMORY, serve);
    assert!(answer.len() <= MAX_MESSAGE);
    // Whatever it says, a client can read it, as an answer to this or to another request.
    if let Err(error) = now(client(answer.clone()).get(&record(), Read::Linearizable)) {
        let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let own_words = ["the message is not", "version ", "a message of "];
        assert!(!own_words.iter().any(|words| why.starts_with(words)), "{answer:?}: {why}");
    }
    answer.get(2) != Some(&MALFORMED)
}

/// An answer of a server, as each of a client's operations reads it.
pub(crate) fn store_answer(bytes: &[u8]) -> bool {
    let answer = Bytes::copy_from_slice(bytes);
    memory::within(bytes.len(), MEMORY, || {
        let store = client(answer);
        let got = now(store.get(&record(), Read::Linearizable));
        if let Ok(Some(record)) = &got {
            assert!(record.id.key.len() <= MAX_KEY && !record.id.key.contains(char::is_control));
        }
        let written = now(store.cas(&record(), Expect::Absent, Write::Delete, None));
        if let Ok(CasAnswer::Applied(version)) = &written {
            let named = postcard::take_from_bytes::<u64>(&bytes[1..]).map(|(instance, _)| instance);
            assert_eq!(named, Ok(INSTANCE), "version {version:?} of another instance");
        }
        let listed = now(store.list(Space::OWNERS, None));
        if let Ok(listed) = &listed {
            assert!(listed.records.is_sorted_by(|one, next| one.id.key < next.id.key));
        }
        let watched = watched(&store);
        let old = Record { id: record(), tag: None, value: Bytes::new(), version: Version(1) };
        let deleted = now(store.delete_all(&[old]));
        watched || got.is_ok() || written.is_ok() || listed.is_ok() || deleted.is_ok()
    })
}

/// Changes come in order, and a watch that finds nothing new waits.
fn watched(store: &ServedStore) -> bool {
    let Ok(mut changes) = now(store.watch(Space::OWNERS, Position(5))) else { return false };
    let mut last = Position(5);
    while let Some(Some(Ok(change))) = changes.next().now_or_never() {
        assert!(change.position() > last && change.id().space == Space::OWNERS);
        last = change.position();
    }
    true
}

/// A record that another node has written, as a directory reads it.
pub(crate) fn record_value(bytes: &[u8]) -> bool {
    let (id, key) = (NodeId::new(7), OwnedKey::role("leader").expect("a name"));
    let store = Arc::new(EmbeddedStore::default());
    let names = [lease_id(id), node_record_id(id), owner_id(&key)];
    let others = [
        data_center_id(&datacenter()),
        table_id(&kind()),
        state_id(&actor()),
        home_id(&actor()),
        kind_id(&kind()),
    ];
    for name in names.into_iter().chain(others) {
        let value = Bytes::copy_from_slice(bytes);
        let put = Write::Put { tag: Some(id.to_string()), value, ttl: None };
        now(store.cas(&name, Expect::Absent, put, None)).expect("it is written");
    }
    let directory = directory(Arc::clone(&store), Arc::new(Clock::Stands));
    let read = memory::within(bytes.len(), MEMORY, || {
        let session = Session { id: NodeId::new(8), ttl: Millis(6_000) };
        let read = [
            valid(now(directory.lease(id))),
            valid(now(directory.sessions())),
            valid(now(directory.lookup(&key))),
            valid(now(directory.placements(PlacementScope::All))),
            valid(now(directory.claim(&key, session, None))),
            valid(now(directory.evict(id))),
        ];
        if let Some(Ok(mut events)) = directory.watch(WatchScope::Nodes, None).now_or_never() {
            let _ = events.next().now_or_never();
        }
        read.contains(&true)
    });
    // Both look.
    let others = memory::within(bytes.len(), MEMORY, || others_read(store));
    read || others
}

/// The same record, as a table, a datacenter, a state, a home and the layout of a kind.
fn others_read(store: Arc<EmbeddedStore>) -> bool {
    let timer = || Arc::new(Clock::Stands);
    let lease_ttl_ms = std::num::NonZeroU64::new(30_000).expect("some time");
    let plane = StoreControlPlane::new(Arc::clone(&store) as _, timer(), ControlPlaneConfig { lease_ttl_ms });
    let tables = StoreRoutingTable::new(Arc::clone(&store) as _, timer());
    let states = StoreStateStore::new(Arc::clone(&store) as _);
    let homes = StoreHomes::new(Arc::clone(&store) as _);
    let directory = directory(store, timer());
    // A listing leaves out what it cannot read.
    let is_invalid = |error: &ControlPlaneError| matches!(error, ControlPlaneError::Invalid { .. });
    valid_or(now(plane.list_all()), is_invalid);
    valid_or(now(plane.list_active()), is_invalid);
    let read = [
        valid_or(now(tables.load(&kind())), |error| matches!(error, RoutingTableError::Invalid { .. })),
        valid_or(now(states.load(&actor(), Generation::new(u64::MAX))), |error| {
            matches!(error, StateStoreError::Invalid { .. })
        }),
        valid(now(homes.home_of(&actor()))),
        valid(now(directory.settle_layout(&kind(), KindLayout::Actor))),
    ];
    read.contains(&true)
}

/// What cannot be read is invalid, and never taken for absent or for a fault of the store.
fn valid<T>(answer: Result<T, DirectoryError>) -> bool {
    valid_or(answer, |error| {
        !matches!(error, DirectoryError::Unavailable { .. } | DirectoryError::Unknown { .. })
    })
}

fn valid_or<T, E: std::fmt::Display>(answer: Result<T, E>, is_invalid: fn(&E) -> bool) -> bool {
    if let Err(error) = &answer {
        assert!(is_invalid(error), "{error}");
        assert!(!error.to_string().is_empty());
    }
    answer.is_ok()
}

fn kind() -> Kind {
    Kind::new("Account").expect("a name")
}

fn actor() -> ActorId {
    "bank::Account/anna".parse().expect("an id")
}

fn datacenter() -> DataCenterId {
    DataCenterId::new("eu.main").expect("a name")
}

// ---- seeds ----

/// Requests that a client really sends.
pub(crate) fn requests() -> Vec<Vec<u8>> {
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = StoreServer::new(filled_store(), INSTANCE, Arc::new(Clock::Skips), Millis::ZERO);
    let courier = Overheard { server, heard: Arc::clone(&sent), answers: false };
    used(&ServedStore::new(Arc::new(courier), Arc::new(Clock::Stands)));
    heard(&sent)
}

/// Answers that a server really gives.
pub(crate) fn answers() -> Vec<Vec<u8>> {
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = StoreServer::new(filled_store(), INSTANCE, Arc::new(Clock::Skips), Millis::ZERO);
    let courier = Overheard { server, heard: Arc::clone(&sent), answers: true };
    used(&ServedStore::new(Arc::new(courier), Arc::new(Clock::Stands)));
    heard(&sent)
}

fn heard(sent: &std::sync::Mutex<Vec<Vec<u8>>>) -> Vec<Vec<u8>> {
    sent.lock().map(|mut sent| std::mem::take(&mut *sent)).unwrap_or_default()
}

fn used(store: &ServedStore) {
    let other = RecordId::new(Space::NODES, "b");
    let put = Write::Put { tag: Some("7".into()), value: Bytes::from_static(b"{}"), ttl: Some(Millis(9)) };
    let guard = archipelago_directory::Guard { id: record(), tag: Some("a".into()) };
    let found = now(store.get(&record(), Read::Linearizable)).ok().flatten();
    let _ = now(store.get(&other, Read::Any));
    let _ = now(store.cas(&other, Expect::Absent, put.clone(), Some(guard)));
    let _ = now(store.cas(&record(), Expect::Absent, put, None));
    let _ = now(store.list(Space::OWNERS, Some("a")));
    let _ = now(store.list(Space::LEASES, None));
    let _ = now(store.watch(Space::OWNERS, Position(0)));
    let _ = now(store.watch(Space::OWNERS, Position(u64::MAX)));
    let _ = now(store.delete_all(&found.into_iter().collect::<Vec<_>>()));
    let _ = now(store.get(&RecordId::new(Space::OWNERS, "a\nb"), Read::Any));
}

/// Values that nodes really write.
pub(crate) fn values() -> Vec<Vec<u8>> {
    let session = Session { id: NodeId::new(7), ttl: Millis(6_000) };
    let moved = archipelago_protocol::contract::Move { id: 3, from: NodeId::new(9), state: true };
    let json = |value: Result<Vec<u8>, serde_json::Error>| value.expect("it has a form in JSON");
    vec![
        json(serde_json::to_vec(&samples::node())),
        json(serde_json::to_vec(&OwnerValue::new(session, None))),
        json(serde_json::to_vec(&OwnerValue::new(session, Some(moved)))),
        json(serde_json::to_vec(&Lease::Live { seq: 3, nonce: 4, ttl: Millis(6_000) })),
        json(serde_json::to_vec(&Lease::Missing { ttl: Millis(9) })),
        json(serde_json::to_vec(&Lease::Revoked { ttl: Millis(9), by: NodeId::new(1) })),
        json(serde_json::to_vec(&KindLayout::Actor)),
        br#"{"by":"shard","shards":256}"#.to_vec(),
        br#"{"datacenter":"eu.main"}"#.to_vec(),
        b"{\"generation\":3,\"schema\":\"Account\",\"version\":2}\n{\"balance\":5}".to_vec(),
        DATACENTER.to_vec(),
        TABLE.to_vec(),
    ]
}

// ---- the rig ----

fn filled_store() -> Arc<EmbeddedStore> {
    let store = Arc::new(EmbeddedStore::default());
    for (id, tag) in
        [(record(), "a"), (RecordId::new(Space::OWNERS, "l"), "a"), (RecordId::new(Space::LEASES, "k"), "b")]
    {
        let put = Write::Put { tag: Some(tag.into()), value: Bytes::from_static(b"value"), ttl: None };
        now(store.cas(&id, Expect::Absent, put, None)).expect("it is written");
    }
    store
}

fn record() -> RecordId {
    RecordId::new(Space::OWNERS, "k")
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("nothing to wait for")
}

/// A client of a server that says who it is and then always the same.
fn client(answer: Bytes) -> ServedStore {
    ServedStore::new(Arc::new(Parrot(answer)), Arc::new(Clock::Stands))
}

struct Parrot(Bytes);

impl Courier for Parrot {
    fn carry(&self, request: Bytes, _: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
        let asks_who = request[..] == [1, 0, 0];
        let answer = if asks_who { Bytes::from_static(&[1, 1, 0]) } else { self.0.clone() };
        Box::pin(async move { Ok(answer) })
    }
}

/// Takes requests to a server, and notes them or its answers.
struct Overheard {
    server: StoreServer,
    heard: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
    answers: bool,
}

impl Courier for Overheard {
    fn carry(&self, request: Bytes, _: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
        let (served, heard, answers) =
            (self.server.serve(request.clone()), Arc::clone(&self.heard), self.answers);
        Box::pin(async move {
            let answer = served.await;
            if let Ok(mut heard) = heard.lock() {
                heard.push(if answers { answer.to_vec() } else { request.to_vec() });
            }
            Ok(answer)
        })
    }
}

/// Time as these checks need it: no wait takes any, or none ever ends.
enum Clock {
    Skips,
    Stands,
}

impl Timer for Clock {
    fn now(&self) -> Millis {
        Millis::ZERO
    }

    fn sleep(&self, _: Millis) -> Sleep {
        match self {
            Self::Skips => Box::pin(std::future::ready(())),
            Self::Stands => Box::pin(std::future::pending()),
        }
    }
}

/// As people read it in a store.
const DATACENTER: &[u8] = br#"{"id":"eu.main","name":"main","region":"eu","zone":"","labels":{},"endpoints":[],"state":"active","epoch":3,"lease_ttl_ms":30000,"lease_expiry_ms":1700000030000}"#;
const TABLE: &[u8] = br#"{"version":2,"epoch":3,"entries":[{"partitionId":"low","keyRangeStart":"","keyRangeEnd":"m","nodeId":"00000000000000ab","nodeAddress":"10.0.0.1:4710","nodeStatus":0,"parents":["all"]},{"partitionId":"high","keyRangeStart":"m","keyRangeEnd":"","nodeId":"00000000000000ab","nodeAddress":"10.0.0.1:4710","nodeStatus":2,"parents":["all"]}]}"#;
const INSTANCE: u64 = 1;
/// What stands in an answer to a request that could not be read, behind version and instance.
const MALFORMED: u8 = 13;
const MAX_KEY: usize = 1 << 10;
/// The shortest entry of a list has 4 bytes and is read into 120, in a list with room for twice what is in it; copies of
/// it are answered or kept, and the store has tables of its own.
const MEMORY: (usize, usize) = (128, 16 << 10);
