//! Rules about how tables are told.

use std::sync::Arc;

use archipelago_directory::StoredTables;
use archipelago_protocol::contract::{Epoch, TableVersion};
use archipelago_protocol::identity::Kind;
use archipelago_protocol::ranges::{KnownTable, TableSource};

use super::{RoutingTableFixture, kind, whole};
use crate::waiting::next_of;
use crate::{Faults, FaultyStore, ImmediateTimer};

/// The first item is the table as it stands, or none.
///
/// Proves: R328, R329, R331, C27
pub async fn table_watch_starts_with_the_current_table(f: RoutingTableFixture) {
    let mut early = f.tables.watch(&kind()).await.expect("watches");
    assert_eq!(f.next(&mut early).await, None);
    let saved = f.save(&whole(1), None).await;
    let mut late = f.tables.watch(&kind()).await.expect("watches");
    assert_eq!(f.next(&mut late).await, Some(saved.clone()));
    assert_eq!(f.next(&mut early).await, Some(saved));
}

/// Then comes every later table, in order, and none of another kind.
///
/// Proves: R328, R330
pub async fn table_watch_tells_every_table(f: RoutingTableFixture) {
    let mut watch = f.tables.watch(&kind()).await.expect("watches");
    assert_eq!(f.next(&mut watch).await, None);
    let other = Kind::new("Other").expect("valid");
    f.tables.save(&other, &whole(9), None, Epoch(1)).await.expect("saves");
    let mut last = f.tables.seal(&kind(), Epoch(1)).await.expect("seals");
    assert_eq!(f.next(&mut watch).await, Some(last.clone()));
    for n in 1..6 {
        last = f.save(&whole(n), Some(&last)).await;
        assert_eq!(f.next(&mut watch).await, Some(last.clone()));
    }
}

/// Whatever breaks underneath, the newest table comes, and versions never go back.
pub async fn table_watch_survives_compaction(f: RoutingTableFixture) {
    let faults = Faults { watch_break: 400, unavailable: 200, ..Faults::default() };
    let store = Arc::clone(&f.directory.store);
    let faulty = FaultyStore::new(store, Arc::new(ImmediateTimer), 11, faults);
    let broken = RoutingTableFixture::new(Arc::new(faulty), Arc::new(ImmediateTimer));
    let mut watch = broken.tables.watch(&kind()).await.expect("watches");
    let (mut last, mut told) = (None, TableVersion(0));
    for n in 1..30 {
        let saved = f.save(&whole(n), last.as_ref()).await;
        while told < saved.version {
            if let Some(table) = f.next(&mut watch).await {
                assert!(table.version >= told, "{:?} after {told:?}", table.version);
                told = table.version;
            }
        }
        last = Some(saved);
    }
}

/// A source says what stands there, once there is something.
///
/// Proves: R325, C38
pub async fn source_tells_the_current_table_first(f: RoutingTableFixture) {
    let source = StoredTables::new(Arc::clone(&f.tables));
    let mut early = source.watch_tables(&kind()).await.expect("watches");
    let sealed = f.tables.seal(&kind(), Epoch(1)).await.expect("seals");
    let saved = f.save(&whole(1), Some(&sealed)).await;
    let known = KnownTable::of(saved).expect("a table was saved");
    assert_eq!(next_of(&*f.directory.timer, &mut early).await, known, "a record without a table is no news");
    let mut late = source.watch_tables(&kind()).await.expect("watches");
    assert_eq!(next_of(&*f.directory.timer, &mut late).await, known);
}

/// A source may leave tables out and repeats none, whatever breaks underneath.
pub async fn source_never_goes_back(f: RoutingTableFixture) {
    let faults = Faults { watch_break: 400, unavailable: 200, ..Faults::default() };
    let store = Arc::clone(&f.directory.store);
    let faulty = FaultyStore::new(store, Arc::new(ImmediateTimer), 12, faults);
    let broken = RoutingTableFixture::new(Arc::new(faulty), Arc::new(ImmediateTimer));
    let mut news = StoredTables::new(broken.tables).watch_tables(&kind()).await.expect("watches");
    let (mut last, mut told) = (None, TableVersion(0));
    for n in 1..30 {
        let saved = f.save(&whole(n), last.as_ref()).await;
        while told < saved.version {
            let known = next_of(&*f.directory.timer, &mut news).await;
            assert!(known.version > told, "{:?} after {told:?}", known.version);
            told = known.version;
        }
        last = Some(saved);
    }
}
