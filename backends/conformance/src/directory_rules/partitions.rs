//! Rules about partitions of range-partitioned kinds.

use archipelago_protocol::contract::{
    DirectoryError, EntryId, PlacementDecision, PlacementScope, WatchEvent, WatchScope,
};
use archipelago_protocol::identity::{Kind, NodeId, OwnedKey, PartitionName, Placement};
use futures_util::future::join_all;

use super::{Fixture, session, shard};
use crate::waiting::next_of;

/// A child of a split is not placed while its parent is owned; once the owner has retired that, it is.
pub async fn range_claim_waits_for_its_parents(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let whole = f.place_range("all", &[], 1).await;
    for _ in 0..2 {
        let refused = f.claim_range("low", &["all"], 2).await;
        let Err(DirectoryError::NotRetired { parent }) = refused else { panic!("{refused:?}") };
        assert_eq!(parent.placement, whole);
    }
    assert_eq!(f.owner(&range("low")).await, None);
    f.directory.retire(&whole).await.expect("retires");
    f.place_range("low", &["all"], 2).await;
    let high = f.place_range("high", &["all"], 1).await;
    let merged = f.claim_range("again", &["high", "low"], 2).await;
    assert!(matches!(merged, Err(DirectoryError::NotRetired { .. })), "{merged:?}");
    f.directory.retire(&high).await.expect("retires");
    let merged = f.claim_range("again", &["high", "low"], 2).await;
    assert!(matches!(merged, Err(DirectoryError::NotRetired { .. })), "all parents count: {merged:?}");
}

/// Whoever compares generations of one actor never meets a smaller one after its partition was divided or merged.
pub async fn children_have_greater_generations(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let mut greatest = f.place_range("all", &[], 1).await;
    for _ in 0..3 {
        f.directory.release(&greatest).await.expect("releases");
        greatest = f.place_range("all", &[], 1).await;
    }
    f.directory.retire(&greatest).await.expect("retires");
    let low = f.place_range("low", &["all"], 2).await;
    let high = f.place_range("high", &["all"], 1).await;
    assert!(low.generation > greatest.generation && high.generation > greatest.generation);
    f.directory.retire(&low).await.expect("retires");
    f.directory.retire(&high).await.expect("retires");
    let merged = f.place_range("again", &["high", "low"], 2).await;
    assert!(merged.generation > low.generation.max(high.generation));
}

/// A parent that nobody owns, or only a session that has ended, is retired by whoever claims a child.
pub async fn range_claim_retires_what_nobody_owns(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    f.place_range("low", &["never owned"], 2).await;
    f.place_range("dead", &[], 1).await;
    f.end(1).await;
    f.place_range("high", &["dead", "never owned"], 2).await;
    for parent in ["never owned", "dead"] {
        let late = f.claim_range(parent, &[], 2).await;
        assert!(matches!(late, Err(DirectoryError::Retired { .. })), "{parent}: {late:?}");
    }
}

/// A partition is never claimed without a word about its parents, nor anything else as if it were one.
pub async fn ranges_are_claimed_with_their_parents(f: Fixture) {
    f.open(1).await;
    let plain = f.directory.claim(&range("all"), session(1), None).await;
    assert!(matches!(plain, Err(DirectoryError::Invalid { .. })), "{plain:?}");
    let shard = shard("Account", 1);
    let odd = f.directory.claim_range(&shard, &[], session(1), None).await;
    assert!(matches!(odd, Err(DirectoryError::Invalid { .. })), "{odd:?}");
    let placed = f.place(&shard, 1).await;
    let odd = f.directory.retire(&placed).await;
    assert!(matches!(odd, Err(DirectoryError::Invalid { .. })), "{odd:?}");
    assert_eq!(f.owner(&shard).await.expect("owned").placement, placed);
}

/// Only the generation that the caller owns is retired.
pub async fn retire_names_its_generation(f: Fixture) {
    f.open(1).await;
    let old = f.place_range("all", &[], 1).await;
    let new = f.place_range("all", &[], 1).await;
    let stale = f.directory.retire(&old).await;
    let Err(DirectoryError::Conflict { current: Some(current) }) = stale else { panic!("{stale:?}") };
    assert_eq!(current.placement, new);
    f.directory.retire(&new).await.expect("retires");
    let again = f.directory.retire(&new).await;
    assert!(matches!(again, Err(DirectoryError::Conflict { current: None })), "{again:?}");
}

/// Nothing is written over a retired record, by anybody, at any version.
pub async fn retired_is_final(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let placed = f.place_range("all", &[], 1).await;
    let record = f.owner(&placed.key).await.expect("owned");
    f.directory.retire(&placed).await.expect("retires");
    for id in [1, 2] {
        let claim = f.claim_range("all", &[], id).await;
        assert!(matches!(claim, Err(DirectoryError::Retired { .. })), "{claim:?}");
    }
    let knowing = f.directory.claim_range(&placed.key, &[], session(2), Some(record.clone())).await;
    assert!(matches!(knowing, Err(DirectoryError::Retired { .. })), "{knowing:?}");
    let writes = [
        f.directory.release(&placed).await.err(),
        f.directory.transfer(&placed, session(2), None).await.err(),
        f.directory.reassert(&record).await.err(),
    ];
    for error in writes {
        assert!(matches!(error, Some(DirectoryError::Conflict { current: None })), "{error:?}");
    }
    f.end(1).await;
    assert_eq!(f.directory.evict(NodeId::new(1)).await.expect("evicts"), 0);
    assert!(f.directory.collect(NodeId::new(1)).await.expect("collects"), "it belongs to nobody");
    let claim = f.claim_range("all", &[], 2).await;
    assert!(matches!(claim, Err(DirectoryError::Retired { .. })), "{claim:?}");
}

/// A retired partition is gone for whoever looks, lists or watches.
pub async fn retired_is_no_owner(f: Fixture) {
    f.open(1).await;
    let placed = f.place_range("all", &[], 1).await;
    let mut watch = f.directory.watch(WatchScope::Owners, None).await.expect("watches");
    let first = next_of(&*f.timer, &mut watch).await;
    assert!(matches!(&first, WatchEvent::Snapshot { entries, .. } if entries.len() == 1), "{first:?}");
    f.directory.retire(&placed).await.expect("retires");
    assert_eq!(f.owner(&placed.key).await, None);
    for scope in [PlacementScope::All, PlacementScope::Node(NodeId::new(1)), PlacementScope::Kind(kind())] {
        assert_eq!(f.directory.placements(scope).await.expect("lists").records, []);
    }
    let gone = next_of(&*f.timer, &mut watch).await;
    assert!(
        matches!(&gone, WatchEvent::Gone { id: EntryId::Owner(key), .. } if *key == placed.key),
        "{gone:?}"
    );
}

/// However the claims of children and their parent race, nobody is placed on a child before the parent is retired.
pub async fn children_and_parent_are_never_owned_together(f: Fixture) {
    for id in 1..=3 {
        f.open(id).await;
    }
    for round in 0..8 {
        let names = ["all", "low", "high"].map(|name| format!("{name}-{round}"));
        let parents = [PartitionName::new(&names[0]).expect("valid")];
        let keys = names.map(|name| range(&name));
        let claims = keys.iter().zip(1..).map(|(key, id)| {
            let parents: &[PartitionName] = if id == 1 { &[] } else { &parents };
            f.directory.claim_range(key, parents, session(id), None)
        });
        join_all(claims).await;
        let owned = [f.owner(&keys[0]).await, f.owner(&keys[1]).await, f.owner(&keys[2]).await];
        let [whole, low, high] = owned.map(|owner| owner.is_some());
        assert!(!(whole && (low || high)), "round {round}: {keys:?} {whole} {low} {high}");
        assert!(whole || low || high, "round {round}: somebody got something");
    }
}

impl Fixture {
    async fn claim_range(
        &self,
        name: &str,
        parents: &[&str],
        id: u64,
    ) -> Result<PlacementDecision, DirectoryError> {
        let parents: Vec<_> = parents.iter().map(|name| PartitionName::new(name).expect("valid")).collect();
        self.directory.claim_range(&range(name), &parents, session(id), None).await
    }

    async fn place_range(&self, name: &str, parents: &[&str], id: u64) -> Placement {
        match self.claim_range(name, parents, id).await.expect("claims") {
            PlacementDecision::Placed(placement) => placement,
            other => panic!("{name} for {id}: {other:?}"),
        }
    }
}

fn kind() -> Kind {
    Kind::new("Ledger").expect("valid")
}

fn range(name: &str) -> OwnedKey {
    OwnedKey::range(kind(), name).expect("valid")
}
