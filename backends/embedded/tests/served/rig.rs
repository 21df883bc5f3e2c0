//! A server, and couriers that reach it within the process.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};

use archipelago_backend_conformance::ManualTimer;
use archipelago_directory::{CasAnswer, Expect, Read, Record, RecordId, Space, Store, Timer, Version, Write};
use archipelago_embedded::{
    CarryError, Courier, EmbeddedConfig, EmbeddedStore, MAX_MESSAGE, ServedStore, StoreServer,
};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// The time of the first start, in microseconds.
pub(crate) const BASE: u64 = 1_700_000_000_000_000;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    NotSent,
    /// Carried out, but the answer is lost.
    AnswerLost,
    /// Sent, and never seen again.
    RequestLost,
}

/// Hands requests straight to a server; fates that were set come first, in order.
pub(crate) struct Direct {
    server: Mutex<StoreServer>,
    fates: Mutex<VecDeque<Fate>>,
    pub(crate) carried: Mutex<usize>,
}

impl Direct {
    pub(crate) fn connect_to(&self, server: StoreServer) {
        *self.server.lock().unwrap() = server;
    }

    pub(crate) fn meets(&self, fates: impl IntoIterator<Item = Fate>) {
        self.fates.lock().unwrap().extend(fates);
    }
}

impl Courier for Direct {
    fn carry(&self, request: Bytes, _timeout: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
        assert!(request.len() <= MAX_MESSAGE, "a request of {} bytes", request.len());
        *self.carried.lock().unwrap() += 1;
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Answered);
        let server = self.server.lock().unwrap().clone();
        Box::pin(async move {
            let lost = || CarryError::Unknown { reason: "the connection broke".into() };
            match fate {
                Fate::NotSent => return Err(CarryError::NotSent { reason: "no connection".into() }),
                Fate::RequestLost => return Err(lost()),
                Fate::Answered | Fate::AnswerLost => {}
            }
            let answer = server.serve(request).await;
            assert!(answer.len() <= MAX_MESSAGE, "an answer of {} bytes", answer.len());
            if fate == Fate::AnswerLost { Err(lost()) } else { Ok(answer) }
        })
    }
}

/// One server and one client, on a clock that the test moves.
pub(crate) struct Rig {
    pub(crate) clock: ManualTimer,
    pub(crate) local: Arc<EmbeddedStore>,
    pub(crate) courier: Arc<Direct>,
    pub(crate) remote: Arc<ServedStore>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(EmbeddedConfig::default(), Millis::ZERO)
    }

    pub(crate) fn with(config: EmbeddedConfig, quiet: Millis) -> Self {
        Self::around(EmbeddedStore::with_version_base(config, BASE), quiet)
    }

    /// With versions above `base`.
    pub(crate) fn above(base: u64) -> Self {
        let store = EmbeddedStore::with_version_base(EmbeddedConfig::default(), base);
        Self::around(store, Millis::ZERO)
    }

    fn around(store: EmbeddedStore, quiet: Millis) -> Self {
        let (clock, local) = (ManualTimer::default(), Arc::new(store));
        let server = StoreServer::new(Arc::clone(&local), 1, Arc::new(clock.clone()), quiet);
        let courier =
            Direct { server: Mutex::new(server), fates: Mutex::default(), carried: Mutex::default() };
        let courier = Arc::new(courier);
        let remote = Arc::new(Self::client(&courier, &clock));
        Self { clock, local, courier, remote }
    }

    pub(crate) fn client(courier: &Arc<Direct>, clock: &ManualTimer) -> ServedStore {
        let timer: Arc<dyn Timer> = Arc::new(clock.clone());
        ServedStore::new(Arc::<Direct>::clone(courier), timer)
    }

    /// The server's process dies, and another starts at its place.
    pub(crate) fn restart(&mut self, instance: u64, quiet: Millis) {
        let base = BASE + 1_000_000 * instance;
        self.local = Arc::new(EmbeddedStore::with_version_base(EmbeddedConfig::default(), base));
        let timer: Arc<dyn Timer> = Arc::new(self.clock.clone());
        self.courier.connect_to(StoreServer::new(Arc::clone(&self.local), instance, timer, quiet));
    }
}

pub(crate) fn now<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("answers at once")
}

pub(crate) fn owner(key: &str) -> RecordId {
    RecordId::new(Space::OWNERS, key)
}

pub(crate) fn put(tag: &str, value: &str) -> Write {
    Write::Put { tag: Some(tag.into()), value: Bytes::from(value.to_owned()), ttl: None }
}

pub(crate) fn create(store: &dyn Store, key: &str, write: Write) -> Version {
    match now(store.cas(&owner(key), Expect::Absent, write, None)).unwrap() {
        CasAnswer::Applied(version) => version,
        other => panic!("{key}: {other:?}"),
    }
}

pub(crate) fn read(store: &dyn Store, key: &str) -> Option<Record> {
    now(store.get(&owner(key), Read::Linearizable)).unwrap()
}
