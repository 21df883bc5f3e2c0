//! Servers that keep nothing: whoever knew one of earlier must be told that all is gone, and never go on as if it were not.

use archipelago_directory::{Expect, Read, Space, StoreError};
use futures_util::StreamExt;
use futures_util::future::{Either, select};

use super::{LIMIT, RestartFixture};
use crate::store_rules::{owner, put, write};

/// A watch from before tells what it still has, says `Fatal`, and ends.
pub(crate) async fn watch_is_told(f: &RestartFixture) {
    let position = f.store.list(Space::OWNERS, None).await.expect("lists").position;
    let mut watch = f.store.watch(Space::OWNERS, position).await.expect("watches");
    write(&*f.store, &owner("k"), Expect::Absent, put("a", "one")).await;
    f.server.restart().await;
    loop {
        match select(watch.next(), f.timer.sleep(LIMIT)).await {
            Either::Left((Some(Ok(change)), _)) => assert_eq!(change.id(), &owner("k")),
            Either::Left((Some(Err(StoreError::Fatal { .. })), _)) => break,
            Either::Left((other, _)) => panic!("{other:?}"),
            Either::Right(_) => panic!("nobody told the holder of the watch within {LIMIT}"),
        }
    }
    assert!(watch.next().await.is_none(), "after that comes nothing");
}

/// Every request of a client from before is `Fatal`, so nothing that was acknowledged is gone unnoticed, and no version is
/// compared with one of another life.
pub(crate) async fn requests_are_told(f: &RestartFixture) {
    let id = owner("k");
    write(&*f.store, &id, Expect::Absent, put("a", "one")).await;
    f.server.restart().await;
    let answers = [
        f.store.get(&id, Read::Linearizable).await.map(drop),
        f.store.cas(&id, Expect::Absent, put("a", "two"), None).await.map(drop),
        f.store.list(Space::OWNERS, None).await.map(drop),
    ];
    let fatal = answers.iter().all(|answer| matches!(answer, Err(StoreError::Fatal { .. })));
    assert!(fatal, "{answers:?}");
}
