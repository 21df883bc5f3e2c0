//! Rules about who owns what.

use archipelago_directory::node_record_id;
use archipelago_protocol::contract::{DirectoryError, Move, OwnerRecord, PlacementDecision, PlacementScope};
use archipelago_protocol::identity::{Kind, NodeId, OwnedKey, Placement};
use archipelago_protocol::session::Lease;
use archipelago_protocol::time::Millis;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::{Fixture, session, shard};

/// Of concurrent claims of a free key one is placed; the others are told who won.
///
/// Proves: R205, R220, R221, R231, R238
pub async fn claim_is_exclusive(f: Fixture) {
    for id in 1..=5 {
        f.open(id).await;
    }
    for n in 0..5 {
        let key = shard("Account", n);
        let claims = (1..=5).map(|id| f.directory.claim(&key, session(id), None));
        let decisions: Vec<_> = join_all(claims).await.into_iter().map(|d| d.expect("answers")).collect();
        let placed: Vec<&Placement> = decisions.iter().filter_map(placed).collect();
        let [winner] = placed[..] else { panic!("{decisions:?}") };
        let told = decisions.iter().filter_map(other_owner);
        assert_eq!(told.filter(|record| record.placement == *winner).count(), 4, "{decisions:?}");
        assert_eq!(f.owner(&key).await.expect("owned").placement, *winner);
    }
}

/// A key is taken only from a session that has ended: not from a live one, nor from one whose lease is missing (H1).
///
/// Proves: R205, R231
pub async fn claim_needs_an_ended_owner(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let key = shard("Account", 1);
    let first = f.place(&key, 1).await;
    assert_eq!(refused(&f, &key, 2).await.placement, first);
    f.expire(1).await;
    f.remove(&node_record_id(NodeId::new(1))).await;
    assert_eq!(refused(&f, &key, 2).await.placement, first);
    assert_eq!(f.lease(1).await.lease, Lease::Missing { ttl: Millis(6_000) }, "the absence is written down");
    assert_eq!(refused(&f, &key, 2).await.placement, first);
    f.end(1).await;
    let taken = f.place(&key, 2).await;
    assert!(taken.generation > first.generation);
}

/// A claim that finds the own session in the record writes it anew: two claims never give the same generation (H3).
///
/// Proves: R225
pub async fn claim_recasts_its_own(f: Fixture) {
    f.open(1).await;
    let key = shard("Account", 1);
    let first = f.place(&key, 1).await;
    let second = f.place(&key, 1).await;
    assert_eq!(second.node, first.node);
    assert!(second.generation > first.generation);
    let stale = f.directory.release(&first).await;
    assert!(matches!(stale, Err(DirectoryError::Conflict { .. })), "{stale:?}");
    assert_eq!(f.owner(&key).await.expect("owned").placement, second);
}

/// A claimer that saw the owner is told `AlreadyPlaced`, one that saw nothing or another `Raced`.
///
/// Proves: R235
pub async fn claim_tells_placed_from_raced(f: Fixture) {
    for id in 1..=3 {
        f.open(id).await;
    }
    let key = shard("Account", 1);
    let first = f.place(&key, 1).await;
    let looked = f.owner(&key).await.expect("owned");
    let decision = f.directory.claim(&key, session(2), Some(looked.clone())).await.expect("answers");
    assert_eq!(decision, PlacementDecision::AlreadyPlaced(looked.clone()));
    let decision = f.directory.claim(&key, session(2), None).await.expect("answers");
    assert_eq!(decision, PlacementDecision::Raced { winner: looked.clone() });
    f.directory.transfer(&first, session(3), None).await.expect("transfers");
    let decision = f.directory.claim(&key, session(2), Some(looked)).await.expect("answers");
    let winner = f.owner(&key).await.expect("owned");
    assert_eq!(winner.placement.node, NodeId::new(3));
    assert_eq!(decision, PlacementDecision::Raced { winner });
}

/// Where the store checks guards, a session that is over gets `SessionLost`; one that lives and lost only its poster does
/// not. Safety never depends on it.
///
/// Proves: R36
pub async fn claim_refuses_a_lost_session(f: Fixture) {
    f.open(1).await;
    f.remove(&node_record_id(NodeId::new(1))).await;
    f.place(&shard("Account", 1), 1).await;
    f.end(1).await;
    let late = f.directory.claim(&shard("Account", 2), session(1), None).await;
    if f.store.checks_guards() {
        assert!(matches!(late, Err(DirectoryError::SessionLost { .. })), "{late:?}");
        assert_eq!(f.owner(&shard("Account", 2)).await, None);
    } else {
        assert!(matches!(late, Ok(PlacementDecision::Placed(_))), "{late:?}");
    }
}

/// Every placement of a key has a greater generation than all before, also across a release.
///
/// Proves: R229, R230
pub async fn generation_grows(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let key = shard("Account", 1);
    let first = f.place(&key, 1).await;
    let second = f.directory.transfer(&first, session(2), None).await.expect("transfers");
    let third = f.place(&key, 2).await;
    f.directory.release(&third).await.expect("releases");
    let fourth = f.place(&key, 1).await;
    let fifth =
        f.directory.reassert(&f.owner(&key).await.expect("owned")).await.expect("reasserts").placement;
    let all = [first, second, third, fourth, fifth].map(|placement| placement.generation);
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
}

/// A release removes only the caller's own generation (mutant 15).
///
/// Proves: R222, R224
pub async fn release_names_its_generation(f: Fixture) {
    f.open(1).await;
    let key = shard("Account", 1);
    let old = f.place(&key, 1).await;
    let new = f.place(&key, 1).await;
    assert_eq!(conflict(f.directory.release(&old).await), Some(new.clone()));
    f.directory.release(&new).await.expect("releases");
    assert_eq!(f.owner(&key).await, None);
    assert_eq!(conflict(f.directory.release(&new).await), None);
}

/// A transfer moves only the caller's own generation (mutant 16), begins a tenure, and the record says which move it came by.
///
/// Proves: R498
pub async fn transfer_names_its_generation(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let key = shard("Account", 1);
    let old = f.place(&key, 1).await;
    let new = f.place(&key, 1).await;
    assert_eq!(conflict(f.directory.transfer(&old, session(2), None).await), Some(new.clone()));
    let moved = Move { id: 5, from: NodeId::new(1), state: true };
    let given = f.directory.transfer(&new, session(2), Some(moved)).await.expect("transfers");
    let owner = f.owner(&key).await.expect("owned");
    let expected = OwnerRecord {
        placement: given.clone(),
        since: given.generation,
        ttl: Millis(6_000),
        moved: Some(moved),
    };
    assert_eq!((given.node, owner), (NodeId::new(2), expected));
}

/// A reassertion writes only over the caller's own generation.
pub async fn reassert_names_its_generation(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let key = shard("Account", 1);
    let placed = f.place(&key, 1).await;
    let record = f.owner(&key).await.expect("owned");
    let given = f.directory.transfer(&placed, session(2), None).await.expect("transfers");
    assert_eq!(conflict(f.directory.reassert(&record).await), Some(given.clone()));
    f.directory.release(&given).await.expect("releases");
    assert_eq!(conflict(f.directory.reassert(&record).await), None, "nothing is created anew");
}

/// A reassertion gives a new generation to the same owner, and makes an earlier write that is still under way impossible.
pub async fn reassert_keeps_the_tenure(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let key = shard("Account", 1);
    let placed = f.place(&key, 1).await;
    let record = f.owner(&key).await.expect("owned");
    let mut last = record;
    for _ in 0..2 {
        let next = f.directory.reassert(&last).await.expect("reasserts");
        assert_eq!((next.placement.node, next.since), (placed.node, placed.generation));
        assert!(next.placement.generation > last.placement.generation);
        assert_eq!(f.owner(&key).await, Some(next.clone()));
        last = next;
    }
    assert_eq!(conflict(f.directory.transfer(&placed, session(2), None).await), Some(last.placement));
}

/// A lookup finds the owner from anywhere, and reports none whose session has ended (H18).
///
/// Proves: R36, R204, R206, R218, R224, R228
pub async fn lookup_hides_the_ended(f: Fixture) {
    f.open(1).await;
    let key = OwnedKey::from(
        "bank::Account/alice".parse::<archipelago_protocol::identity::ActorId>().expect("valid"),
    );
    assert_eq!(f.owner(&key).await, None);
    let placed = f.place(&key, 1).await;
    let elsewhere = Fixture::new(f.store.clone(), std::sync::Arc::new(crate::ImmediateTimer));
    assert_eq!(elsewhere.owner(&key).await.expect("owned").placement, placed);
    f.end(1).await;
    assert_eq!(elsewhere.owner(&key).await, None);
    f.open(2).await;
    f.place(&key, 2).await;
}

/// Owner records are listed by node and by kind, as they stand.
///
/// Proves: R204, R229
pub async fn listings_by_node_and_kind(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let account = f.place(&shard("Account", 1), 1).await;
    let order = f.place(&shard("Order", 1), 1).await;
    let other = f.place(&shard("Account", 2), 2).await;
    let list = async |scope| {
        let records = f.directory.placements(scope).await.expect("lists").records;
        let mut placements: Vec<Placement> = records.into_iter().map(|record| record.placement).collect();
        placements.sort_by(|a, b| a.key.cmp(&b.key));
        placements
    };
    assert_eq!(list(PlacementScope::Node(NodeId::new(1))).await, [account.clone(), order.clone()]);
    let kind = Kind::new("Account").expect("valid");
    assert_eq!(list(PlacementScope::Kind(kind)).await, [account.clone(), other.clone()]);
    assert_eq!(list(PlacementScope::All).await, [account, other, order]);
}

/// Records of a session that has not ended are not evicted, whether its lease stands or is missing.
pub async fn evict_needs_an_ended_session(f: Fixture) {
    f.open(1).await;
    let placed = f.place(&shard("Account", 1), 1).await;
    for _ in 0..2 {
        let refused = f.directory.evict(NodeId::new(1)).await;
        assert!(matches!(refused, Err(DirectoryError::Invalid { .. })), "{refused:?}");
        f.expire(1).await;
    }
    assert_eq!(f.owner(&placed.key).await.map(|record| record.placement), Some(placed));
}

/// Eviction clears what the ended session still has, and leaves what others have taken meanwhile.
///
/// Proves: R198, R222
pub async fn evict_spares_newer_records(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    f.place(&shard("Account", 1), 1).await;
    f.place(&shard("Account", 2), 1).await;
    f.end(1).await;
    let taken = f.place(&shard("Account", 1), 2).await;
    assert_eq!(f.directory.evict(NodeId::new(1)).await.expect("evicts"), 1);
    assert_eq!(f.owner(&taken.key).await.map(|record| record.placement), Some(taken));
    assert_eq!(f.directory.placements(PlacementScope::All).await.expect("lists").records.len(), 1);
}

/// A dropped claim may or may not have been applied; the key has one owner, and its claimer can go on.
///
/// Proves: R227
pub async fn cancel_safe(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    for n in 0..10 {
        let key = shard("Account", n);
        let _ = f.directory.claim(&key, session(1), None).now_or_never();
        let again = f.directory.claim(&key, session(1), None).await.expect("answers");
        let mine = placed(&again).expect("the same session goes on").clone();
        assert_eq!(refused(&f, &key, 2).await.placement, mine);
    }
}

async fn refused(f: &Fixture, key: &OwnedKey, id: u64) -> OwnerRecord {
    let decision = f.directory.claim(key, session(id), None).await.expect("answers");
    other_owner(&decision).unwrap_or_else(|| panic!("{key} for {id}: {decision:?}")).clone()
}

fn placed(decision: &PlacementDecision) -> Option<&Placement> {
    match decision {
        PlacementDecision::Placed(placement) => Some(placement),
        _ => None,
    }
}

fn other_owner(decision: &PlacementDecision) -> Option<&OwnerRecord> {
    match decision {
        PlacementDecision::AlreadyPlaced(record) | PlacementDecision::Raced { winner: record } => {
            Some(record)
        }
        PlacementDecision::Placed(_) => None,
    }
}

fn conflict<T: std::fmt::Debug>(answer: Result<T, DirectoryError>) -> Option<Placement> {
    match answer {
        Err(DirectoryError::Conflict { current }) => current.map(|record| record.placement),
        other => panic!("no conflict: {other:?}"),
    }
}
