//! Bytes that nobody should have sent.

use std::sync::Arc;

use archipelago_backend_conformance::ImmediateTimer;
use archipelago_directory::{Expect, Position, Read, RecordId, Space, Store, StoreError};
use archipelago_embedded::{CarryError, Courier, EmbeddedStore, MAX_MESSAGE, ServedStore, StoreServer};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use proptest::prelude::*;

use crate::rig::{Rig, create, now, owner, put};

fn server() -> StoreServer {
    StoreServer::new(Arc::new(EmbeddedStore::default()), 1, Arc::new(ImmediateTimer), Millis::ZERO)
}

/// Answers everything alike: first which instance it is, then these bytes.
struct Parrot(Bytes);

impl Courier for Parrot {
    fn carry(&self, request: Bytes, _timeout: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
        let asks_for_the_instance = request[..] == [1, 0, 0];
        let answer = if asks_for_the_instance { Bytes::from_static(&[1, 1, 0]) } else { self.0.clone() };
        Box::pin(async move { Ok(answer) })
    }
}

fn parrot(answer: impl Into<Bytes>) -> ServedStore {
    ServedStore::new(Arc::new(Parrot(answer.into())), Arc::new(ImmediateTimer))
}

/// Version one, instance 1, then this outcome.
fn says(outcome: &[u8]) -> ServedStore {
    parrot([&[1, 1], outcome].concat())
}

proptest! {
    #[test]
    fn the_server_answers_whatever_it_is_sent(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let server = server();
        prop_assert!(now(server.serve(bytes.clone().into())).starts_with(&[1, 1]));
        // As far as possible into the request: this version, this instance.
        let request = [&[1, 1, 1][..], &bytes].concat();
        prop_assert!(now(server.serve(request.into())).starts_with(&[1, 1]));
    }

    #[test]
    fn the_client_survives_whatever_it_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for store in [parrot(bytes.clone()), says(&bytes)] {
            let _ = now(store.get(&owner("k"), Read::Any));
            let _ = now(store.cas(&owner("k"), Expect::Absent, put("a", "1"), None));
            let _ = now(store.list(Space::OWNERS, None));
            let _ = now(store.watch(Space::OWNERS, Position(0)));
            let _ = now(store.delete_all(&[]));
        }
    }
}

#[test]
fn requests_that_cannot_be_read_are_malformed_and_change_nothing() {
    const MALFORMED: u8 = 13;
    let server = server();
    let long = vec![1; MAX_MESSAGE + 1];
    let of_another_version = [2, 1, 1, 0];
    let without_an_instance = [1, 0, 1, 3, b'o', b'w', b'n', 1, b'k'];
    let of_an_unknown_space = [1, 1, 1, 1, 3, b'o', b'w', b'x', 1, b'k'];
    let with_a_rest = [1, 1, 1, 1, 3, b'o', b'w', b'n', 1, b'k', 0];
    let requests: [&[u8]; 6] =
        [&[], &long, &of_another_version, &without_an_instance, &of_an_unknown_space, &with_a_rest];
    for request in requests {
        let answer = now(server.serve(Bytes::copy_from_slice(request)));
        assert_eq!(answer[..3], [1, 1, MALFORMED], "{:?}", &request[..request.len().min(12)]);
    }
    let fine = now(server.serve(Bytes::copy_from_slice(&with_a_rest[..10])));
    assert_eq!(fine[..], [1, 1, 1, 0], "found nothing");
}

/// The write may have been carried out: only its answer is spoilt.
#[test]
fn a_garbled_answer_is_fatal_to_a_read_and_unknown_to_a_write() {
    for store in [says(&[99]), says(&[]), says(&[4, 0]), says(&[7, 1]), parrot(vec![1; MAX_MESSAGE + 1])] {
        let read = now(store.get(&owner("k"), Read::Any));
        assert!(matches!(read, Err(StoreError::Fatal { .. })), "{read:?}");
        let write = now(store.cas(&owner("l"), Expect::At(seen()), put("a", "1"), None));
        assert!(matches!(write, Err(StoreError::Unknown { .. })), "{write:?}");
    }
}

fn seen() -> archipelago_directory::Seen {
    archipelago_directory::Seen { version: archipelago_directory::Version(1), tag: None }
}

/// Another version of the messages is noticed by the first question, before anything is written.
#[test]
fn a_server_of_another_version_is_fatal() {
    struct Newer;
    impl Courier for Newer {
        fn carry(&self, _request: Bytes, _timeout: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
            Box::pin(async { Ok(Bytes::from_static(&[2, 1, 0])) })
        }
    }
    let store = ServedStore::new(Arc::new(Newer), Arc::new(ImmediateTimer));
    let write = now(store.cas(&owner("k"), Expect::Absent, put("a", "1"), None));
    let Err(StoreError::Fatal { source }) = write else { panic!("{write:?}") };
    assert!(source.to_string().contains("version 2"), "{source}");
}

/// A listing comes to its end whatever the server does: pages that do not go on are refused.
#[test]
fn pages_that_do_not_go_on_are_refused() {
    let item = |key: u8| [3, b'o', b'w', b'n', 1, key, 0, 0, 1];
    let page = |items: &[[u8; 9]], more: u8| {
        let head = [5, u8::try_from(items.len()).unwrap()];
        says(&[&head[..], &items.concat(), &[9, more]].concat())
    };
    let fine = now(page(&[item(b'a'), item(b'b')], 0).list(Space::OWNERS, None)).unwrap();
    assert_eq!(fine.records.len(), 2);
    for store in [
        page(&[item(b'b'), item(b'a')], 0),
        page(&[item(b'a'), item(b'a')], 0),
        page(&[item(b'a')], 1),
        page(&[], 1),
    ] {
        let listed = now(store.list(Space::OWNERS, None));
        assert!(matches!(listed, Err(StoreError::Fatal { .. })), "{listed:?}");
    }
    let other_space = now(page(&[item(b'a')], 0).list(Space::NODES, None));
    assert!(matches!(other_space, Err(StoreError::Fatal { .. })), "{other_space:?}");
}

#[test]
fn changes_out_of_order_are_refused() {
    let deleted = |position: u8| [1, position, 3, b'o', b'w', b'n', 1, b'k'];
    let changes = |events: &[[u8; 8]], searched_to: u8| {
        let head = [6, u8::try_from(events.len()).unwrap()];
        says(&[&head[..], &events.concat(), &[searched_to]].concat())
    };
    let watch = |store: ServedStore| now(store.watch(Space::OWNERS, Position(5))).map(drop);
    assert!(watch(changes(&[deleted(6), deleted(7)], 7)).is_ok());
    for store in [
        changes(&[deleted(5)], 7),
        changes(&[deleted(7), deleted(6)], 7),
        changes(&[deleted(6), deleted(7)], 6),
        changes(&[], 4),
    ] {
        let answer = watch(store);
        assert!(matches!(answer, Err(StoreError::Fatal { .. })), "{answer:?}");
    }
}

#[test]
fn names_that_are_none_are_fatal() {
    let rig = Rig::new();
    let ids = [
        owner(&"k".repeat(1_025)),
        owner("a\nb"),
        RecordId::new(Space::new("unheard"), "k"),
        owner(&"k".repeat(3 << 20)),
    ];
    for id in ids {
        let write = now(rig.remote.cas(&id, Expect::Absent, put("a", "1"), None));
        assert!(matches!(write, Err(StoreError::Fatal { .. })), "{write:?}");
    }
    create(&*rig.remote, &"k".repeat(1_024), put("a", "1"));
}
