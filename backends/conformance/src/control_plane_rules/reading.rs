//! Rules about what is listed and told.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipelago_protocol::contract::{ControlPlaneError, DataCenterEvent, DataCenterWatch};
use archipelago_protocol::datacenter::{DataCenterId, DataCenterRecord, DataCenterState};
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;

use super::{ControlPlaneFixture, LEASE};
use crate::waiting::{PATIENCE, next_of};
use crate::{Faults, FaultyStore, ImmediateTimer};

/// Only active datacenters are listed.
///
/// Proves: R344, R360, R361, R370, R378
pub async fn list_active_holds_the_active_only(f: ControlPlaneFixture) {
    f.register("registered", 1).await;
    let active = f.activate("active", 1).await;
    let draining = f.activate("draining", 1).await;
    f.set(&draining, DataCenterState::Draining).await;
    let inactive = f.activate("inactive", 1).await;
    f.set(&inactive, DataCenterState::Inactive).await;
    assert_eq!(f.active().await, [active]);
}

/// They come in the order in which they were written last.
///
/// Proves: R370
pub async fn list_active_is_sorted_by_version(f: ControlPlaneFixture) {
    let mut records = Vec::new();
    for name in ["c", "a", "b"] {
        records.push(f.activate(name, 1).await);
    }
    records[0] = f.beat(&records[0]).await;
    let mut expected = records.clone();
    expected.sort_by_key(|record| record.version);
    assert_eq!(f.active().await, expected);
}

/// A datacenter whose record stands still for its lease is listed no more, one that beats is, and one that comes back is
/// again. The wall time in the records is long past all the while.
///
/// Proves: R343, R349, R378, R392, R393, R396
pub async fn list_active_excludes_ended_leases(f: ControlPlaneFixture) {
    let mut beating = f.activate("beats", 1).await;
    let silent = f.activate("silent", 1).await;
    let start = f.timer.now();
    loop {
        beating = f.beat(&beating).await;
        let active = f.active().await;
        assert!(active.contains(&beating), "{active:?}");
        if !active.contains(&silent) {
            break;
        }
        assert!(f.timer.now() - start < PATIENCE, "still listed");
        f.timer.sleep(Millis(LEASE.0 / 10)).await;
    }
    assert!(f.timer.now() - start >= times::observer_wait(LEASE), "not before the lease is over");
    let stored = f.stored("silent").await.expect("it is left out, not deleted");
    assert_eq!(stored, silent);
    let back = f.beat(&silent).await;
    assert!(f.active().await.contains(&back));
}

/// While the control plane does not answer, nobody's lease runs: an outage of any length ends none.
///
/// Proves: R346, R349
pub async fn an_outage_ends_no_lease(f: ControlPlaneFixture) {
    let record = f.activate("north", 1).await;
    let faulty =
        Arc::new(FaultyStore::new(Arc::clone(&f.store), Arc::new(ImmediateTimer), 1, Faults::default()));
    let far = ControlPlaneFixture::new(Arc::<FaultyStore>::clone(&faulty), Arc::clone(&f.timer));
    assert_eq!(far.active().await, std::slice::from_ref(&record));
    faulty.set_faults(Faults { unavailable: 1_000, ..Faults::default() });
    for _ in 0..20 {
        f.timer.sleep(Millis(LEASE.0 / 5)).await;
        let refused = far.control_plane.list_active().await;
        assert!(matches!(refused, Err(ControlPlaneError::Unavailable { .. })), "{refused:?}");
    }
    faulty.set_faults(Faults::default());
    assert_eq!(far.active().await, [record], "nothing is judged by what was not seen");
}

/// The first event holds everything there is.
///
/// Proves: R371
pub async fn control_plane_watch_starts_with_a_snapshot(f: ControlPlaneFixture) {
    let mut empty = f.control_plane.watch(None).await.expect("watches");
    let first = next(&f, &mut empty).await;
    assert!(matches!(&first, DataCenterEvent::Snapshot { records, .. } if records.is_empty()), "{first:?}");
    let record = f.register("north", 1).await;
    let mut watch = f.control_plane.watch(None).await.expect("watches");
    let DataCenterEvent::Snapshot { records, .. } = next(&f, &mut watch).await else { panic!("no snapshot") };
    assert_eq!(records, [record]);
}

/// Then comes every change, in the order of the versions.
///
/// Proves: R371, R379
pub async fn control_plane_watch_misses_nothing(f: ControlPlaneFixture) {
    let mut watch = f.control_plane.watch(None).await.expect("watches");
    next(&f, &mut watch).await;
    let registered = f.register("north", 1).await;
    let active = f.beat(&registered).await;
    let draining = f.set(&active, DataCenterState::Draining).await;
    f.expire(draining.id()).await;
    let again = f.register("north", 2).await;
    for record in [registered, active, draining] {
        let told = next(&f, &mut watch).await;
        assert!(matches!(&told, DataCenterEvent::Put { record: put, .. } if *put == record), "{told:?}");
    }
    let gone = next(&f, &mut watch).await;
    assert!(matches!(&gone, DataCenterEvent::Gone { id, .. } if id == again.id()), "{gone:?}");
    let told = next(&f, &mut watch).await;
    assert!(matches!(&told, DataCenterEvent::Put { record: put, .. } if *put == again), "{told:?}");
}

/// A watch from a listing's revision goes on where the listing ends, and from any event's after that event.
///
/// Proves: R379
pub async fn control_plane_watch_resumes(f: ControlPlaneFixture) {
    let first = f.register("north", 1).await;
    let revision = f.control_plane.list_active().await.expect("lists").revision;
    let second = f.beat(&first).await;
    let third = f.beat(&second).await;
    let mut watch = f.control_plane.watch(Some(revision)).await.expect("watches");
    let told = next(&f, &mut watch).await;
    assert!(matches!(&told, DataCenterEvent::Put { record, .. } if *record == second), "{told:?}");
    let mut again = f.control_plane.watch(Some(told.revision())).await.expect("watches");
    let told = next(&f, &mut again).await;
    assert!(matches!(&told, DataCenterEvent::Put { record, .. } if *record == third), "{told:?}");
}

/// Whatever breaks underneath, the watcher ends up with what the store holds.
///
/// Proves: R384
pub async fn control_plane_watch_survives_compaction(f: ControlPlaneFixture) {
    let faults = Faults { watch_break: 400, unavailable: 200, ..Faults::default() };
    let faulty = FaultyStore::new(Arc::clone(&f.store), Arc::new(ImmediateTimer), 9, faults);
    let broken = ControlPlaneFixture::new(Arc::new(faulty), Arc::new(ImmediateTimer));
    let mut watch = broken.control_plane.watch(None).await.expect("watches");
    let mut view = BTreeMap::new();
    let mut north = f.register("north", 1).await;
    for round in 0..30 {
        north = f.beat(&north).await;
        let other = f.register("south", 1).await;
        while view.get(north.id()) != Some(&north) || view.get(other.id()) != Some(&other) {
            take(&mut view, next(&f, &mut watch).await);
        }
        f.expire(other.id()).await;
        if round % 3 == 0 {
            while view.contains_key(other.id()) {
                take(&mut view, next(&f, &mut watch).await);
            }
        }
    }
}

async fn next(f: &ControlPlaneFixture, watch: &mut DataCenterWatch) -> DataCenterEvent {
    next_of(&*f.timer, watch).await
}

fn take(view: &mut BTreeMap<DataCenterId, DataCenterRecord>, event: DataCenterEvent) {
    match event {
        DataCenterEvent::Snapshot { records, .. } => {
            *view = records.into_iter().map(|record| (record.id().clone(), record)).collect();
        }
        DataCenterEvent::Put { record, .. } => drop(view.insert(record.id().clone(), record)),
        DataCenterEvent::Gone { id, .. } => drop(view.remove(&id)),
    }
}
