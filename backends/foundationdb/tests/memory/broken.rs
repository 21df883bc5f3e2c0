//! Many writers on an engine that breaks: every answer is checked against what really happened.

use std::collections::BTreeMap;

use archipelago_backend_conformance::{ManualTimer, Rng};
use archipelago_directory::{
    CasAnswer, Change, Expect, Position, Read, Space, Store, StoreError, Version, Write,
};
use archipelago_foundationdb::{Breakage, MemoryEngine, Tally};
use futures_util::future::{FutureExt, join_all};

use crate::support::{next, owner, put, run, store};

/// What a writer was told about one write.
#[derive(Debug)]
enum Told {
    Applied(Version),
    NotApplied,
    Nothing,
}

/// One write of a run: the text that it put, if it put any.
#[derive(Debug)]
struct Written {
    key: String,
    text: Option<String>,
    told: Told,
}

fn breakage(seed: u64) -> Breakage {
    let mut rng = Rng::new(seed ^ 0xb1ea);
    let mut some = |most: u64| if rng.chance(700) { rng.below(most) as u32 } else { 0 };
    Breakage {
        refused: some(200),
        unknown_applied: some(300),
        unknown_lost: some(300),
        unknown_late: some(300),
        timed_out: some(60),
        too_old: some(60),
        future_version: some(60),
        short_page: some(500),
        watch_refused: 0,
        watch_deaf: 0,
        shared_version: some(1_000),
        waits: 600,
    }
}

/// Each write is applied at most once, and whoever is told `Applied` or not is told the truth, however the engine breaks
/// and whoever else writes. `ARCHIPELAGO_TEST_SEED=<seed>` replays a failing run.
///
/// Proves: R208, R212, R227
#[test]
fn every_write_is_applied_at_most_once_and_answered_truly() {
    let seeds = match std::env::var("ARCHIPELAGO_TEST_SEED") {
        Ok(seed) => seed.parse().map(|seed| seed..seed + 1).unwrap(),
        Err(_) => 0..400,
    };
    let (mut total, mut unanswered) = (Tally::default(), 0);
    for seed in seeds.clone() {
        let (tally, nothing) = run(|timer| one_run(seed, timer));
        total.conflicts += tally.conflicts;
        total.unknown += tally.unknown;
        total.late += tally.late;
        total.too_old += tally.too_old;
        total.shared += tally.shared;
        unanswered += nothing;
    }
    eprintln!("{total:?}, {unanswered} unanswered");
    if seeds.end - seeds.start > 100 {
        let Tally { conflicts, unknown, late, too_old, shared, .. } = total;
        let all = [conflicts, unknown, late, too_old, shared, unanswered];
        assert!(all.iter().all(|&count| count > 50), "an idle sweep proves nothing: {total:?}, {unanswered}");
    }
}

async fn one_run(seed: u64, timer: ManualTimer) -> (Tally, u32) {
    let engine = MemoryEngine::new(seed, breakage(seed));
    let store = store(&engine, &timer).await;
    let writers = (0..4).map(|writer| writes(&store, seed, writer));
    let written: Vec<Written> = join_all(writers).await.into_iter().flatten().collect();
    engine.set_breakage(Breakage::default());
    engine.land_all();
    let mut watch = store.watch(Space::OWNERS, Position(0)).await.unwrap();
    let mut happened = Vec::new();
    while let Some(Some(change)) = watch.next_now() {
        happened.push(change);
    }
    check(seed, &written, &happened);
    let listed = store.list(Space::OWNERS, None).await.unwrap().records;
    let mut standing = BTreeMap::new();
    for change in &happened {
        match change {
            Change::Put { record, .. } => standing.insert(record.id.clone(), record.clone()),
            Change::Deleted { id, .. } => standing.remove(id),
        };
    }
    assert_eq!(listed, standing.into_values().collect::<Vec<_>>(), "seed {seed}: log and records differ");
    let nothing = written.iter().filter(|one| matches!(one.told, Told::Nothing)).count();
    (engine.tally(), u32::try_from(nothing).unwrap())
}

trait NextNow {
    fn next_now(&mut self) -> Option<Option<Change>>;
}

impl NextNow for archipelago_directory::StoreWatch {
    /// The next change, if it is there without waiting.
    fn next_now(&mut self) -> Option<Option<Change>> {
        next(self).now_or_never().map(Some)
    }
}

/// Reads, and replaces or deletes what it has read, again and again.
async fn writes(store: &dyn Store, seed: u64, writer: u64) -> Vec<Written> {
    let mut rng = Rng::new(seed.wrapping_mul(31) ^ writer);
    let mut written = Vec::new();
    for n in 0..8 {
        let key = format!("k{}", rng.below(2));
        let read = store.get(&owner(&key), Read::Linearizable).await.unwrap();
        let expect = read.as_ref().map_or(Expect::Absent, |record| record.expect());
        let text = (read.is_none() || rng.chance(700)).then(|| format!("{writer}-{n}"));
        let write = text.as_ref().map_or(Write::Delete, |text| put(&format!("t{writer}"), text));
        let told = match store.cas(&owner(&key), expect, write, None).await {
            Ok(CasAnswer::Applied(version)) => Told::Applied(version),
            Ok(_) => Told::NotApplied,
            Err(StoreError::Unknown { .. }) => Told::Nothing,
            Err(other) => panic!("seed {seed}: {other:?}"),
        };
        written.push(Written { key, text, told });
    }
    written
}

fn check(seed: u64, written: &[Written], happened: &[Change]) {
    let mut of_key: BTreeMap<&str, u64> = BTreeMap::new();
    for change in happened {
        let Change::Put { record, .. } = change else { continue };
        let last = of_key.insert(&record.id.key, record.version.0).unwrap_or(0);
        assert!(last < record.version.0, "seed {seed}: the version of {} went back", record.id);
    }
    for one in written {
        let Some(text) = &one.text else { continue };
        let applied: Vec<Version> = happened
            .iter()
            .filter_map(|change| match change {
                Change::Put { record, .. } if record.value == text.as_bytes() => Some(record.version),
                _ => None,
            })
            .collect();
        let true_answer = match one.told {
            Told::Applied(version) => applied == [version],
            Told::NotApplied => applied.is_empty(),
            Told::Nothing => applied.len() <= 1,
        };
        assert!(true_answer, "seed {seed}: {one:?}, but applied as {applied:?}");
    }
    for key in ["k0", "k1"] {
        let deletes = |told: fn(&Told) -> bool| {
            written.iter().filter(|one| one.key == key && one.text.is_none() && told(&one.told)).count()
        };
        let deleted = |change: &&Change| matches!(change, Change::Deleted { id, .. } if id.key == key);
        let deleted = happened.iter().filter(deleted).count();
        let sure = deletes(|told| matches!(told, Told::Applied(_)));
        let unsure = deletes(|told| matches!(told, Told::Nothing));
        let expected = sure..=sure + unsure;
        assert!(expected.contains(&deleted), "seed {seed}: {deleted} deletes of {key}, not {expected:?}");
    }
}

/// A batch larger than a transaction is deleted record by record as named, and the count is true.
#[test]
fn a_broken_batch_of_deletes_is_counted_truly() {
    for seed in 0..12 {
        run(|timer| async move {
            let engine = MemoryEngine::new(seed, Breakage::default());
            let store = store(&engine, &timer).await;
            for n in 0..250 {
                crate::support::create(&store, &format!("k{n:03}")).await;
            }
            let listed = store.list(Space::OWNERS, Some("a")).await.unwrap().records;
            assert_eq!(listed.len(), 250);
            for n in [7, 120, 240] {
                let (id, expect) = (&listed[n].id, listed[n].expect());
                crate::support::applied(store.cas(id, expect, put("b", "newer"), None).await);
            }
            engine.set_breakage(Breakage { timed_out: 0, waits: 0, ..breakage(seed) });
            assert_eq!(store.delete_all(&listed).await.unwrap(), 247, "seed {seed}");
            let twice = [listed[7].clone(), listed[8].clone()];
            assert_eq!(store.delete_all(&twice).await.unwrap(), 0, "seed {seed}");
            let left: Vec<String> = store
                .list(Space::OWNERS, None)
                .await
                .unwrap()
                .records
                .into_iter()
                .map(|one| one.id.key)
                .collect();
            assert_eq!(left, ["k007", "k120", "k240"], "seed {seed}");
        });
    }
}
