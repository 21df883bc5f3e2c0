//! Rules about who may write what.

use archipelago_directory::{Read, data_center_id};
use archipelago_protocol::contract::{ControlPlaneError, Epoch};
use archipelago_protocol::datacenter::{DataCenterInfo, DataCenterState, DataCenterVersion};
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::{ControlPlaneFixture, LEASE, WALL, conflict, info, superseded};

/// A new record is registered; that of a living datacenter is taken over as it stands, an inactive one starts anew, and
/// repeating a registration writes nothing.
///
/// Proves: R342, R358, R367, R394, R397, C30
pub async fn register_creates_or_takes_over(f: ControlPlaneFixture) {
    let first = f.register("north", 1).await;
    assert_eq!(
        (first.state, first.epoch, &first.info),
        (DataCenterState::Registered, Epoch(1), &info("north"))
    );
    assert_eq!(f.register("north", 1).await, first, "repeated");
    let active = f.beat(&first).await;
    let moved = info("north").with_endpoints(Vec::new()).expect("valid");
    let taken = f.control_plane.register(&moved, Epoch(5), WALL).await.expect("takes over");
    assert_eq!((taken.state, taken.epoch, &taken.info), (DataCenterState::Active, Epoch(5), &moved));
    assert!(taken.version > active.version);
    let ended = f.set(&taken, DataCenterState::Inactive).await;
    let again = f.control_plane.register(&moved, Epoch(5), WALL).await.expect("registers");
    assert_eq!(again.state, DataCenterState::Registered);
    assert!(again.version > ended.version);
}

/// A heartbeat replaces exactly the version it names; the first makes the datacenter active.
///
/// Proves: R359, R362, R368, R377, R391
pub async fn heartbeat_names_its_version(f: ControlPlaneFixture) {
    let registered = f.register("north", 1).await;
    let first = f.beat(&registered).await;
    assert_eq!(first.state, DataCenterState::Active);
    assert_eq!(first.lease_expiry_ms, WALL + LEASE.0);
    let second = f.beat(&first).await;
    assert!(second.version > first.version);
    let stale = f.control_plane.heartbeat(&first, Epoch(1), WALL).await;
    assert_eq!(conflict(stale), Some(second.clone()));
    f.expire(second.id()).await;
    let orphan = f.control_plane.heartbeat(&second, Epoch(1), WALL).await;
    assert_eq!(conflict(orphan), None, "a heartbeat never creates the record anew");
    assert_eq!(f.stored("north").await, None);
}

/// Versions grow with every write, also across a delete.
///
/// Proves: R357
pub async fn record_version_grows(f: ControlPlaneFixture) {
    let mut versions: Vec<DataCenterVersion> = Vec::new();
    for _ in 0..3 {
        let mut record = f.register("north", 1).await;
        versions.push(record.version);
        for _ in 0..2 {
            record = f.beat(&record).await;
            versions.push(record.version);
        }
        f.expire(record.id()).await;
    }
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

/// A state that may not follow is refused, and nothing is written.
///
/// Proves: R363, R364, R365, R366, R369
pub async fn set_state_follows_the_lifecycle(f: ControlPlaneFixture) {
    let registered = f.register("north", 1).await;
    for state in [DataCenterState::Registered, DataCenterState::Active, DataCenterState::Draining] {
        let refused = f.control_plane.set_state(&registered, state, Epoch(1)).await;
        assert!(matches!(refused, Err(ControlPlaneError::Invalid { .. })), "{state}: {refused:?}");
    }
    assert_eq!(f.stored("north").await, Some(registered.clone()));
    let active = f.beat(&registered).await;
    let draining = f.set(&active, DataCenterState::Draining).await;
    assert_eq!(draining.state, DataCenterState::Draining);
    let beaten = f.beat(&draining).await;
    assert_eq!(beaten.state, DataCenterState::Draining, "its lease is kept while it drains");
    let inactive = f.set(&beaten, DataCenterState::Inactive).await;
    assert_eq!(inactive.state, DataCenterState::Inactive);
    let refused = f.control_plane.heartbeat(&inactive, Epoch(1), WALL).await;
    assert!(matches!(refused, Err(ControlPlaneError::Invalid { .. })), "{refused:?}");
    let refused = f.control_plane.set_state(&inactive, DataCenterState::Draining, Epoch(1)).await;
    assert!(matches!(refused, Err(ControlPlaneError::Invalid { .. })), "{refused:?}");
    assert_eq!(f.stored("north").await, Some(inactive));
}

/// Asking again for a state that was reached succeeds and writes nothing; for a record that moved on otherwise it does
/// not.
///
/// Proves: R380
pub async fn set_state_is_idempotent(f: ControlPlaneFixture) {
    let active = f.activate("north", 1).await;
    let draining = f.set(&active, DataCenterState::Draining).await;
    for seen in [&active, &draining] {
        assert_eq!(f.set(seen, DataCenterState::Draining).await, draining);
    }
    assert_eq!(f.stored("north").await, Some(draining.clone()));
    let inactive = f.set(&draining, DataCenterState::Inactive).await;
    let late = f.control_plane.set_state(&active, DataCenterState::Draining, Epoch(1)).await;
    assert_eq!(conflict(late), Some(inactive));
}

/// A leader that was replaced changes nothing, whatever it saw and whatever it tries (H11).
///
/// Proves: R347
pub async fn stale_leader_is_refused(f: ControlPlaneFixture) {
    let old = f.activate("north", 3).await;
    let new = f.register("north", 7).await;
    let by = Epoch(7);
    for seen in [&old, &new] {
        assert_eq!(superseded(f.control_plane.heartbeat(seen, Epoch(3), WALL).await), by);
        let state = DataCenterState::Draining;
        assert_eq!(superseded(f.control_plane.set_state(seen, state, Epoch(3)).await), by);
    }
    assert_eq!(superseded(f.control_plane.register(&info("north"), Epoch(3), WALL).await), by);
    let draining = f.set(&new, DataCenterState::Draining).await;
    let again = f.control_plane.set_state(&draining, DataCenterState::Draining, Epoch(3)).await;
    assert_eq!(superseded(again), by, "not even what is true already");
    assert_eq!(f.stored("north").await, Some(draining));
}

/// Of several leaders that write over one version one is applied.
///
/// Proves: R376
pub async fn record_cas_is_exclusive(f: ControlPlaneFixture) {
    let mut seen = f.activate("north", 1).await;
    for round in 0..10 {
        let beats = (0..6).map(|_| f.control_plane.heartbeat(&seen, Epoch(1), WALL));
        let mut applied = Vec::new();
        for answer in join_all(beats).await {
            match answer {
                Ok(record) => applied.push(record),
                Err(ControlPlaneError::Conflict { current }) => drop(current.expect("stands")),
                Err(other) => panic!("{other:?}"),
            }
        }
        let [winner] = &applied[..] else { panic!("round {round}: {applied:?}") };
        seen = winner.clone();
        assert_eq!(f.stored("north").await, Some(seen.clone()));
    }
}

/// Two leaders that register at once end up with one record, of the greater epoch.
pub async fn registrations_race_to_the_greatest_epoch(f: ControlPlaneFixture) {
    for round in 0..6 {
        let info: DataCenterInfo = info(&format!("dc{round}"));
        let epochs: Vec<u64> = (1..=3).map(|n| round * 10 + n).collect();
        let registrations = epochs.iter().map(|epoch| f.control_plane.register(&info, Epoch(*epoch), WALL));
        let answers = join_all(registrations).await;
        assert!(answers[2].is_ok(), "the greatest epoch is never refused: {answers:?}");
        let stored = f.stored(info.name()).await.expect("stands");
        assert_eq!(stored.epoch, Epoch(epochs[2]), "{answers:?}");
    }
}

/// People can read what the store holds.
///
/// Proves: R345, R350, R352
pub async fn datacenter_record_is_json(f: ControlPlaneFixture) {
    let record = f.activate("north", 4).await;
    let stored = f.store.get(&data_center_id(record.id()), Read::Linearizable).await.expect("reads");
    let json: serde_json::Value = serde_json::from_slice(&stored.expect("stands").value).expect("JSON");
    assert_eq!(json["id"], "north");
    assert_eq!(json["state"], "active");
    assert_eq!(json["epoch"], 4);
    assert_eq!(json["endpoints"][0], "10.0.0.1:4710");
    assert_eq!(json["lease_expiry_ms"], WALL + LEASE.0);
}

/// A dropped write may or may not have happened; the record stays one that its leader can go on from.
pub async fn control_plane_is_cancel_safe(f: ControlPlaneFixture) {
    let mut seen = f.register("north", 1).await;
    for _ in 0..10 {
        let _ = f.control_plane.heartbeat(&seen, Epoch(1), WALL).now_or_never();
        seen = match f.control_plane.heartbeat(&seen, Epoch(1), WALL).await {
            Ok(record) => record,
            Err(ControlPlaneError::Conflict { current }) => *current.expect("stands"),
            Err(other) => panic!("{other:?}"),
        };
    }
    let settled = f.register("north", 2).await;
    assert_eq!((settled.state, settled.epoch), (DataCenterState::Active, Epoch(2)));
}
