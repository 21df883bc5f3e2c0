//! Rules about watching.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipelago_protocol::contract::{Entry, EntryId, WatchEvent, WatchScope, WatchStream};
use archipelago_protocol::identity::NodeId;

use super::{Fixture, info, session, shard};
use crate::waiting::next_of;
use crate::{Faults, FaultyStore, ImmediateTimer};

/// The first event holds everything there is.
///
/// Proves: R177
pub async fn watch_starts_with_a_snapshot(f: Fixture) {
    let mut empty = f.directory.watch(WatchScope::Nodes, None).await.expect("watches");
    assert!(matches!(next(&f, &mut empty).await, WatchEvent::Snapshot { entries, .. } if entries.is_empty()));
    f.open(1).await;
    let mut watch = f.directory.watch(WatchScope::Nodes, None).await.expect("watches");
    let WatchEvent::Snapshot { entries, .. } = next(&f, &mut watch).await else { panic!("no snapshot") };
    assert_eq!(entries, [Entry::Node(info(1))]);
}

/// After the snapshot comes every change, in order.
///
/// Proves: R178
pub async fn watch_misses_nothing(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let key = shard("Account", 1);
    let mut watch = f.directory.watch(WatchScope::Owners, None).await.expect("watches");
    let mut view = View::default();
    view.take(next(&f, &mut watch).await);
    let first = f.place(&key, 1).await;
    let second = f.directory.transfer(&first, session(2), None).await.expect("transfers");
    f.directory.release(&second).await.expect("releases");
    let third = f.place(&key, 1).await;
    let mut generations = Vec::new();
    while view.owner(&key) != Some(third.generation.as_u64()) {
        view.take(next(&f, &mut watch).await);
        generations.push(view.owner(&key));
    }
    let expected = [Some(first), Some(second), None, Some(third)].map(|p| p.map(|p| p.generation.as_u64()));
    assert_eq!(generations, expected);
}

/// A watch from a listing's revision goes on where the listing ends.
pub async fn watch_resumes_from_a_revision(f: Fixture) {
    f.open(1).await;
    let revision = f.directory.sessions().await.expect("lists").revision;
    f.open(2).await;
    f.end(1).await;
    let mut watch = f.directory.watch(WatchScope::Nodes, Some(revision)).await.expect("watches");
    let first = next(&f, &mut watch).await;
    assert!(
        matches!(&first, WatchEvent::Put { entry: Entry::Node(node), .. } if *node == info(2)),
        "{first:?}"
    );
    let second = next(&f, &mut watch).await;
    assert!(
        matches!(&second, WatchEvent::Gone { id: EntryId::Node(id), .. } if *id == NodeId::new(1)),
        "{second:?}"
    );
    let mut again = f.directory.watch(WatchScope::Nodes, Some(first.revision())).await.expect("watches");
    assert_eq!(next(&f, &mut again).await, second);
}

/// Whatever breaks underneath, the watcher ends up with what the store holds.
///
/// Proves: R177, R179, R226
pub async fn watch_survives_compaction(f: Fixture) {
    let faults = Faults { watch_break: 400, unavailable: 200, ..Faults::default() };
    let faulty = FaultyStore::new(f.store.clone(), Arc::new(ImmediateTimer), 5, faults);
    let broken = Fixture::new(Arc::new(faulty), Arc::new(ImmediateTimer));
    f.open(1).await;
    f.open(2).await;
    let mut watch = broken.directory.watch(WatchScope::Owners, None).await.expect("watches");
    let mut view = View::default();
    for round in 0..40 {
        let key = shard("Account", round % 4);
        let placed = f.place(&key, 1).await;
        while view.owner(&key) != Some(placed.generation.as_u64()) {
            view.take(next(&f, &mut watch).await);
        }
        let next_owner = f.directory.transfer(&placed, session(2), None).await.expect("transfers");
        f.directory.release(&next_owner).await.expect("releases");
        if round % 3 == 0 {
            while view.owner(&key).is_some() {
                view.take(next(&f, &mut watch).await);
            }
        }
    }
    let last = f.place(&shard("Account", 9), 1).await;
    while view.owner(&last.key) != Some(last.generation.as_u64()) {
        view.take(next(&f, &mut watch).await);
    }
    assert_eq!(view.entries.len(), 1, "{:?}", view.entries);
}

/// A node's own records: those it gets come, those it loses go (MY-RECORDS).
pub async fn watch_of_a_node_follows_its_records(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let kept = f.place(&shard("Account", 1), 1).await;
    f.place(&shard("Account", 2), 2).await;
    let mut watch = f.directory.watch(WatchScope::OwnedBy(NodeId::new(1)), None).await.expect("watches");
    let mut view = View::default();
    view.take(next(&f, &mut watch).await);
    assert_eq!(view.owned(), std::slice::from_ref(&kept.key));
    f.place(&shard("Account", 3), 2).await;
    f.directory.transfer(&kept, session(2), None).await.expect("transfers");
    let gained = f.place(&shard("Account", 4), 1).await;
    while view.owner(&gained.key).is_none() {
        view.take(next(&f, &mut watch).await);
    }
    assert_eq!(view.owned(), [gained.key]);
}

/// A node joins the view with its announcement, which says who it is, and leaves it when its session ends or is closed.
///
/// Proves: R175, R176, R177
pub async fn watch_tells_who_joined_and_left(f: Fixture) {
    let mut watch = f.directory.watch(WatchScope::Nodes, None).await.expect("watches");
    next(&f, &mut watch).await;
    f.open(1).await;
    f.open(2).await;
    f.end(1).await;
    f.directory.close_session(session(2)).await.expect("closes");
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(match next(&f, &mut watch).await {
            WatchEvent::Put { entry: Entry::Node(node), .. } => {
                assert_eq!(node, info(node.id.as_u64()));
                ("joined", node.id.as_u64())
            }
            WatchEvent::Gone { id: EntryId::Node(id), .. } => ("left", id.as_u64()),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(told, [("joined", 1), ("joined", 2), ("left", 1), ("left", 2)]);
}

/// What a watcher knows: owner records by key, at their generation.
#[derive(Default)]
struct View {
    entries: BTreeMap<EntryId, Entry>,
}

impl View {
    fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Snapshot { entries, .. } => {
                self.entries = entries.into_iter().map(|entry| (entry.id(), entry)).collect();
            }
            WatchEvent::Put { entry, .. } => drop(self.entries.insert(entry.id(), entry)),
            WatchEvent::Gone { id, .. } => drop(self.entries.remove(&id)),
        }
    }

    fn owner(&self, key: &archipelago_protocol::identity::OwnedKey) -> Option<u64> {
        match self.entries.get(&EntryId::Owner(key.clone()))? {
            Entry::Owner(record) => Some(record.placement.generation.as_u64()),
            other => panic!("{other:?}"),
        }
    }

    fn owned(&self) -> Vec<archipelago_protocol::identity::OwnedKey> {
        let owned = self.entries.keys().map(|id| match id {
            EntryId::Owner(key) => key.clone(),
            other => panic!("{other:?}"),
        });
        owned.collect()
    }
}

async fn next(f: &Fixture, watch: &mut WatchStream) -> WatchEvent {
    next_of(&*f.timer, watch).await
}
