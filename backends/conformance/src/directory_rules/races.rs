//! Rules about many who want the same at once.

use std::sync::Arc;

use archipelago_protocol::contract::{DirectoryError, PlacementDecision, PlacementScope};
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use futures_util::future::{join, join_all};

use super::{Fixture, session, shard};
use crate::{Faults, FaultyStore, ImmediateTimer};

/// However often a key comes free, each time one of the claimers gets it, and the others are told who.
///
/// Proves: R205, R221, R231
pub async fn every_race_has_one_winner(f: Fixture) {
    for id in 1..=CLAIMERS {
        f.open(id).await;
    }
    let (key, mut last) = (shard("Account", 1), Generation::new(0));
    for round in 0..12 {
        let winner = race(&f, &key).await;
        assert!(winner.generation > last, "round {round}: {winner:?} after {last}");
        last = winner.generation;
        f.directory.release(&winner).await.expect("releases");
    }
}

/// The keys of a session that has ended are taken over by one of those who want them.
///
/// Proves: R205, R231
pub async fn every_takeover_has_one_winner(f: Fixture) {
    for id in 1..=CLAIMERS {
        f.open(id).await;
    }
    for round in 0..6 {
        let (key, dead) = (shard("Account", round), 100 + u64::from(round));
        f.open(dead).await;
        let first = f.place(&key, dead).await;
        f.end(dead).await;
        let winner = race(&f, &key).await;
        assert!(winner.generation > first.generation);
    }
}

/// Of a claim and the hand-over or release that frees the key, whatever comes first, one owner is left, and it knows.
pub async fn a_race_with_the_owner_leaves_one_owner(f: Fixture) {
    for id in 1..=3 {
        f.open(id).await;
    }
    for round in 0..10 {
        let key = shard("Account", round);
        let owned = f.place(&key, 1).await;
        let claim = f.directory.claim(&key, session(2), None);
        if round % 2 == 0 {
            let (claim, given) = join(claim, f.directory.transfer(&owned, session(3), None)).await;
            let given = given.expect("only the owner writes");
            assert!(!matches!(claim.expect("answers"), PlacementDecision::Placed(_)), "round {round}");
            assert_eq!(f.owner(&key).await.expect("owned").placement, given);
        } else {
            let (claim, released) = join(claim, f.directory.release(&owned)).await;
            released.expect("only the owner writes");
            let placed = match claim.expect("answers") {
                PlacementDecision::Placed(placement) => Some(placement),
                _ => None,
            };
            assert_eq!(f.owner(&key).await.map(|record| record.placement), placed, "round {round}");
        }
    }
}

/// While the records of a dead session are evicted, claims go on: nothing that was taken is removed.
///
/// Proves: R222
pub async fn eviction_spares_claims_that_go_on(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let keys: Vec<OwnedKey> = (0..12).map(|n| shard("Account", n)).collect();
    for key in &keys {
        f.place(key, 1).await;
    }
    f.end(1).await;
    let claims = join_all(keys.iter().map(|key| f.directory.claim(key, session(2), None)));
    let evictions = join_all((0..3).map(|_| f.directory.evict(NodeId::new(1))));
    let (claims, evictions) = join(claims, evictions).await;
    assert!(evictions.iter().all(Result::is_ok), "{evictions:?}");
    for (key, claim) in keys.iter().zip(claims) {
        let PlacementDecision::Placed(placed) = claim.expect("answers") else { panic!("{key} was free") };
        assert_eq!(f.owner(key).await.expect("owned").placement, placed);
    }
    let left = f.directory.placements(PlacementScope::Node(NodeId::new(1))).await.expect("lists");
    assert_eq!(left.records, []);
}

/// A claim whose answer never came grants nothing; when it lands after all, its session claims anew or is taken for no
/// owner.
///
/// Proves: R227
pub async fn a_claim_answered_late_grants_nothing(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let late = Faults { late: 1_000, ..Faults::default() };
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&f.store), Arc::new(ImmediateTimer), 3, late));
    let slow = Fixture::new(Arc::<FaultyStore>::clone(&faulty), Arc::clone(&f.timer));
    let key = shard("Account", 1);
    let answer = slow.directory.claim(&key, session(1), None).await;
    assert!(matches!(answer, Err(DirectoryError::Unknown { .. })), "{answer:?}");
    assert_eq!(f.owner(&key).await, None);
    let taken = f.place(&key, 2).await;
    faulty.flush_late().await;
    assert_eq!(f.owner(&key).await.expect("owned").placement, taken, "it lands on nothing");
    f.directory.release(&taken).await.expect("releases");
    let answer = slow.directory.claim(&key, session(1), None).await;
    assert!(matches!(answer, Err(DirectoryError::Unknown { .. })), "{answer:?}");
    faulty.flush_late().await;
    let landed = f.owner(&key).await.expect("it landed").placement;
    let recast = f.place(&key, 1).await;
    assert!(recast.generation > landed.generation, "only an answered write may be served");
}

/// Generations grow whatever removes the record: a release, an eviction, or a takeover.
///
/// Proves: R230
pub async fn generation_grows_across_deletes(f: Fixture) {
    let (key, mut last) = (shard("Account", 1), Generation::new(0));
    for round in 0..9 {
        let id = 1 + round;
        f.open(id).await;
        let placed = f.place(&key, id).await;
        assert!(placed.generation > last, "round {round}: {placed:?} after {last}");
        last = placed.generation;
        match round % 3 {
            0 => f.directory.release(&placed).await.expect("releases"),
            1 => {
                f.end(id).await;
                assert_eq!(f.directory.evict(NodeId::new(id)).await.expect("evicts"), 1);
            }
            _ => f.directory.close_session(session(id)).await.expect("closes"),
        }
    }
}

/// After hand-overs a node's listing holds what it owns, and nothing that it once owned.
pub async fn listing_shows_no_former_owner(f: Fixture) {
    for id in 1..=3 {
        f.open(id).await;
    }
    let mut owned = f.place(&shard("Account", 1), 1).await;
    for to in [2, 3, 2, 1, 3] {
        owned = f.directory.transfer(&owned, session(to), None).await.expect("transfers");
        for id in 1..=3 {
            let listed = f.directory.placements(PlacementScope::Node(NodeId::new(id))).await.expect("lists");
            let listed: Vec<Placement> = listed.records.into_iter().map(|record| record.placement).collect();
            let expected: &[Placement] = if id == to { std::slice::from_ref(&owned) } else { &[] };
            assert_eq!(listed, expected, "node {id} after the hand-over to {to}");
        }
    }
    f.directory.release(&owned).await.expect("releases");
    let all = f.directory.placements(PlacementScope::All).await.expect("lists");
    assert_eq!(all.records, []);
}

/// All claimers at once; the one that was placed.
async fn race(f: &Fixture, key: &OwnedKey) -> Placement {
    let claims = (1..=CLAIMERS).map(|id| f.directory.claim(key, session(id), None));
    let mut placed = Vec::new();
    let mut told = Vec::new();
    for decision in join_all(claims).await {
        match decision.expect("answers") {
            PlacementDecision::Placed(placement) => placed.push(placement),
            PlacementDecision::AlreadyPlaced(record) | PlacementDecision::Raced { winner: record } => {
                told.push(record.placement);
            }
        }
    }
    let [winner] = &placed[..] else { panic!("{key}: {placed:?}") };
    assert!(told.iter().all(|told| told == winner), "{winner:?}: {told:?}");
    assert_eq!(f.owner(key).await.expect("owned").placement, *winner);
    winner.clone()
}

const CLAIMERS: u64 = 8;
