//! The holder of a watch, who does what the contract says: takes it up where it broke, lists anew where it was compacted.

use std::collections::BTreeMap;

use archipelago_directory::{Change, Position, Record, Space, StoreError, StoreWatch};
use futures_util::StreamExt;
use futures_util::future::{Either, select};

use super::writer::Shown;
use super::{LIMIT, PAUSE, RestartFixture, listed, patiently};

/// Follows the space of the owners.
pub(crate) struct Reader<'a> {
    f: &'a RestartFixture,
    /// After which change the watch is taken up.
    after: Position,
    watch: Option<StoreWatch>,
    /// What was told since the last listing.
    told: Vec<Shown>,
    view: BTreeMap<String, String>,
    listings: u32,
}

impl<'a> Reader<'a> {
    pub(crate) async fn open(f: &'a RestartFixture) -> Self {
        let after = listed(f).await.position;
        let watch = f.store.watch(Space::OWNERS, after).await.expect("watches");
        let (told, view) = (Vec::new(), BTreeMap::new());
        Self { f, after, watch: Some(watch), told, view, listings: 0 }
    }

    /// Reads until the record `last` is there.
    pub(crate) async fn read_to(&mut self, last: &str) {
        let until = self.f.timer.now() + LIMIT;
        while !self.view.contains_key(last) {
            match self.next(last).await {
                Some(Ok(change)) => self.take(&change),
                Some(Err(StoreError::Compacted)) => self.list().await,
                Some(Err(StoreError::Unavailable { .. } | StoreError::Unknown { .. })) | None => {
                    assert!(self.f.timer.now() < until, "{last} was not told within {LIMIT}");
                    self.watch = None;
                    self.f.timer.sleep(PAUSE).await;
                }
                Some(Err(error)) => panic!("the watch ends for good: {error:?}"),
            }
        }
    }

    /// Everything that was made has been told, in that order, or was listed; and the view is what stands there.
    pub(crate) async fn check(self, made: &[Shown]) {
        if self.listings == 0 {
            assert_eq!(self.told, made, "told and made");
        }
        assert!(made.ends_with(&self.told), "told since the listing: {:?}, made: {made:?}", self.told);
        let stands = listed(self.f).await.records;
        let stands: BTreeMap<String, String> = stands.iter().map(shown_record).collect();
        assert_eq!(self.view, stands);
    }

    async fn next(&mut self, awaited: &str) -> Option<Result<Change, StoreError>> {
        if self.watch.is_none() {
            match self.f.store.watch(Space::OWNERS, self.after).await {
                Ok(watch) => self.watch = Some(watch),
                Err(error) => return Some(Err(error)),
            }
        }
        let watch = self.watch.as_mut()?;
        match select(watch.next(), self.f.timer.sleep(LIMIT)).await {
            Either::Left((item, _)) => item,
            Either::Right(_) => panic!("{awaited} was not told within {LIMIT}; told: {:?}", self.told),
        }
    }

    fn take(&mut self, change: &Change) {
        let shown = shown(change);
        assert!(change.position() >= self.after, "{shown:?} is from before {:?}", self.after);
        self.after = change.position();
        // A watch that is taken up may tell again what it told last.
        if self.told.contains(&shown) {
            return;
        }
        match &shown {
            (key, Some(value)) => drop(self.view.insert(key.clone(), value.clone())),
            (key, None) => drop(self.view.remove(key)),
        }
        self.told.push(shown);
    }

    async fn list(&mut self) {
        let listed = patiently(self.f, || self.f.store.list(Space::OWNERS, None)).await;
        self.view = listed.records.iter().map(shown_record).collect();
        self.told.clear();
        self.after = listed.position;
        self.watch = None;
        self.listings += 1;
    }
}

fn shown(change: &Change) -> Shown {
    match change {
        Change::Put { record, .. } => {
            let (key, value) = shown_record(record);
            (key, Some(value))
        }
        Change::Deleted { id, .. } => (id.key.clone(), None),
    }
}

fn shown_record(record: &Record) -> (String, String) {
    (record.id.key.clone(), String::from_utf8_lossy(&record.value).into_owned())
}
