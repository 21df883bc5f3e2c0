//! What the watches of the directory and of the control plane, above the store's, promise over a restart: that nobody who
//! holds one has to do anything.

use std::num::NonZeroU64;
use std::sync::Arc;

use archipelago_directory::{ControlPlaneConfig, StoreControlPlane, StoreDirectory};
use archipelago_protocol::contract::{
    ControlPlane, DataCenterEvent, Directory, Entry, Epoch, PlacementDecision, WatchEvent, WatchScope,
};
use archipelago_protocol::identity::{OwnedKey, Placement};
use futures_util::future::{Either, join, select};
use futures_util::{Stream, StreamExt};

use super::{LIMIT, ROUNDS, RestartFixture, patiently};
use crate::control_plane_rules::{LEASE, WALL, info};
use crate::directory_rules::{NONCE, session, shard};

/// A watch of the directory goes on over restarts by itself: its holder comes to know what stands there, and no generation
/// goes back. If the store has forgotten everything, the watch ends with an error.
///
/// Proves: R177, R179
pub async fn directory_watch_survives_a_restart(f: RestartFixture) {
    let directory = StoreDirectory::new(Arc::clone(&f.store), Arc::clone(&f.timer));
    directory.open_session(session(1), NONCE).await.expect("opens");
    let mut watch = directory.watch(WatchScope::Owners, None).await.expect("watches");
    let first = next(&f, &mut watch).await;
    assert!(matches!(first, Some(Ok(WatchEvent::Snapshot { .. }))), "{first:?}");
    if f.server.forgets() {
        f.server.restart().await;
        let told = next(&f, &mut watch).await;
        assert!(matches!(told, Some(Err(_))), "{told:?}");
        return;
    }
    for round in 0..ROUNDS {
        let key = shard("Account", u32::try_from(round).expect("a few"));
        let before = claimed(&f, &directory, &key).await;
        let (during, ()) = join(claimed(&f, &directory, &key), f.server.restart()).await;
        let after = claimed(&f, &directory, &key).await;
        assert!(before.generation < during.generation && during.generation < after.generation);
        let mut told = Vec::new();
        while told.last() != Some(&after.generation) {
            match next(&f, &mut watch).await {
                Some(Ok(WatchEvent::Put { entry: Entry::Owner(record), .. })) if *record.key() == key => {
                    told.push(record.placement.generation);
                }
                other => panic!("round {round}: {other:?}"),
            }
        }
        assert!(told.is_sorted(), "round {round}: {told:?}");
    }
}

/// So does a watch of the control plane, and no epoch goes back.
///
/// Proves: R371, R379
pub async fn control_plane_watch_survives_a_restart(f: RestartFixture) {
    let config = ControlPlaneConfig { lease_ttl_ms: NonZeroU64::new(LEASE.0).expect("not zero") };
    let plane = StoreControlPlane::new(Arc::clone(&f.store), Arc::clone(&f.timer), config);
    let mut watch = plane.watch(None).await.expect("watches");
    let first = next(&f, &mut watch).await;
    assert!(matches!(first, Some(Ok(DataCenterEvent::Snapshot { .. }))), "{first:?}");
    if f.server.forgets() {
        f.server.restart().await;
        let told = next(&f, &mut watch).await;
        assert!(matches!(told, Some(Err(_))), "{told:?}");
        return;
    }
    let mut epoch = 0;
    for round in 0..ROUNDS {
        let (before, during, after) = (Epoch(epoch + 1), Epoch(epoch + 2), Epoch(epoch + 3));
        let north = info("north");
        let register = async |epoch| patiently(&f, || plane.register(&north, epoch, WALL)).await;
        register(before).await;
        join(register(during), f.server.restart()).await;
        register(after).await;
        let mut told = Vec::new();
        while told.last() != Some(&after) {
            match next(&f, &mut watch).await {
                Some(Ok(DataCenterEvent::Put { record, .. })) => told.push(record.epoch),
                other => panic!("round {round}: {other:?}"),
            }
        }
        assert!(told.is_sorted() && told[0] >= before, "round {round}: {told:?}");
        epoch = after.0;
    }
}

/// A claim that is answered. Whatever came of those before, the key is its claimer's own.
async fn claimed(f: &RestartFixture, directory: &StoreDirectory, key: &OwnedKey) -> Placement {
    let decision = patiently(f, || directory.claim(key, session(1), None)).await;
    match decision {
        PlacementDecision::Placed(placement) => placement,
        other => panic!("{key}: {other:?}"),
    }
}

async fn next<T: Unpin + Stream>(f: &RestartFixture, watch: &mut T) -> Option<T::Item> {
    match select(watch.next(), f.timer.sleep(LIMIT)).await {
        Either::Left((item, _)) => item,
        Either::Right(_) => panic!("the watch told nothing for {LIMIT}"),
    }
}
