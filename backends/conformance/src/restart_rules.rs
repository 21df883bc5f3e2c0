//! The rules about a restart of the server, each as a function that panics when it is broken.
//!
//! They need power over the server, which not every harness has: one that has it says how with a [`Server`]. The macro
//! [`store_conformance!`](crate::store_conformance) reports them as ignored where it was not given one.

use std::sync::Arc;

use archipelago_directory::{Expect, Read, Space, Store, Timer, Version, Write};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use futures_util::future::{join, join_all};

use crate::store_rules::{at, owner, put};

mod above;
mod forgetful;
mod reader;
mod writer;

pub use above::*;

use reader::Reader;
use writer::{Writer, settle};

/// Power over the server that a store is on.
#[async_trait]
pub trait Server: Send + Sync {
    /// Ends the server and starts it again at its place, on what it has kept; answers once it serves. Must not block the
    /// thread: clients go on meanwhile.
    async fn restart(&self);

    /// Whether it keeps nothing when it ends. Then every client from before must be told so, and for good.
    fn forgets(&self) -> bool {
        false
    }
}

/// A fresh store on a server of its own.
#[derive(Clone)]
pub struct RestartFixture {
    /// The store under test. What is not answered must be given up in a few seconds.
    pub store: Arc<dyn Store>,
    /// The clock that the rules go by.
    pub timer: Arc<dyn Timer>,
    /// The server underneath.
    pub server: Arc<dyn Server>,
}

impl RestartFixture {
    /// The rules' view of `store`, which is on `server`. A store behind a network needs a timer that really waits.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>, server: Arc<dyn Server>) -> Self {
        Self { store, timer, server }
    }
}

/// A watch that is open while the server restarts tells every change made before, meanwhile and afterwards, in order and
/// without a gap. It may break: then it is taken up after the last change that it told. Or it is `Compacted`: then what
/// its holder lists anew shows the rest. A server that forgets everything says `Fatal`.
///
/// Proves: R178, R373, R379
pub async fn watch_survives_a_restart(f: RestartFixture) {
    if f.server.forgets() {
        return forgetful::watch_is_told(&f).await;
    }
    let mut reader = Reader::open(&f).await;
    let mut writer = Writer::new(&f);
    for round in 0..ROUNDS {
        writer.changes(&format!("before {round}")).await;
        if round == 0 {
            // This one is seen to be alive before the server goes; the others have changes on the way.
            reader.read_to(writer.newest()).await;
        }
        let last = format!("after {round}");
        let writing = async {
            join(f.server.restart(), writer.changes(&format!("during {round}"))).await;
            writer.changes(&last).await;
        };
        // A reader that waits all the time meets the restart itself; one that looks away meets what is left of the watch.
        if round % 2 == 0 {
            join(writing, reader.read_to(&last)).await;
        } else {
            writing.await;
            reader.read_to(&last).await;
        }
    }
    reader.check(writer.made()).await;
}

/// A version is greater than all that the record had before the restart, also if it was deleted in between; so is a
/// position.
///
/// Proves: R230
pub async fn version_grows_across_a_restart(f: RestartFixture) {
    if f.server.forgets() {
        return forgetful::requests_are_told(&f).await;
    }
    let (id, mut last, mut position) = (owner("k"), Version(0), None);
    for round in 0..ROUNDS {
        let version = settle(&f, &id, Expect::Absent, put("a", &round.to_string())).await;
        assert!(version > last, "round {round}: {version:?} after {last:?}");
        let listed = listed(&f).await.position;
        assert!(Some(listed) > position, "round {round}: {listed:?} after {position:?}");
        settle(&f, &id, at(version, "a"), Write::Delete).await;
        f.server.restart().await;
        (last, position) = (version, Some(listed));
    }
}

/// A write that was answered before the server went stands when it is back, at the version that was answered.
///
/// Proves: R208
pub async fn acknowledged_writes_survive_a_restart(f: RestartFixture) {
    if f.server.forgets() {
        return forgetful::requests_are_told(&f).await;
    }
    for round in 0..ROUNDS {
        let ids: Vec<_> = (0..WRITERS).map(|n| owner(&format!("{round}-{n}"))).collect();
        let write = |id| {
            let f = &f;
            async move { (id, settle(f, id, Expect::Absent, put("a", "kept")).await) }
        };
        // Half of them are answered before it goes, of the others nobody knows when.
        let (before, during) = ids.split_at(ids.len() / 2);
        let mut acknowledged = join_all(before.iter().map(write)).await;
        let (late, ()) = join(join_all(during.iter().map(write)), f.server.restart()).await;
        acknowledged.extend(late);
        for (id, version) in acknowledged {
            let found = patiently(&f, || f.store.get(id, Read::Linearizable)).await;
            assert_eq!(found.map(|record| record.version), Some(version), "{id} in round {round}");
        }
    }
    assert_eq!(listed(&f).await.records.len(), ROUNDS * WRITERS);
}

pub(crate) async fn listed(f: &RestartFixture) -> archipelago_directory::Records {
    patiently(f, || f.store.list(Space::OWNERS, None)).await
}

/// Asks again until it is answered well, but not for ever.
pub(crate) async fn patiently<T, E: std::fmt::Debug>(
    f: &RestartFixture,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let until = f.timer.now() + LIMIT;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(f.timer.now() < until, "no answer within {LIMIT}: {error:?}"),
        }
        f.timer.sleep(PAUSE).await;
    }
}

/// How long a server may take to come back, with all that its clients need to find out.
const LIMIT: Millis = Millis(30_000);
/// Between two attempts.
const PAUSE: Millis = Millis(50);
const ROUNDS: usize = 3;
const WRITERS: usize = 8;
