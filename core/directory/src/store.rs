//! The narrow waist: all that archipelago asks of an engine.

use std::pin::Pin;

use archipelago_protocol::contract::BoxError;
use async_trait::async_trait;
use futures_core::Stream;

use crate::record::{Expect, Guard, Position, Record, RecordId, Space, Version, Write};

/// Keeps single records, and replaces each only by a compare-and-swap on its version.
///
/// # Every implementation
///
/// Writing:
/// - *cas_is_exclusive*: of several writes that expect the same version, or absence, at most one is applied.
/// - *every_creation_has_one_winner*: of many who create a record, again and again, one does, and the record is what that one
///   wrote.
/// - *two_tags_one_winner*: also if they bring different tags; the loser's tag lists nothing.
/// - *concurrent_additions_are_all_kept*: writers who all read, add and write back lose no addition.
/// - *a_delete_and_a_write_exclude_each_other*: of a delete and a write over one version one is applied.
/// - *conflict_changes_nothing*: a write that expects anything but what stands there is not applied, and the answer
///   shows what stands there.
/// - *version_grows*: every write to a key has a greater version than all before.
/// - *version_grows_across_deletes*: also if the record was deleted in between; a version never comes back.
/// - *delete_names_its_version*: a delete removes exactly the version it names, never a newer one.
/// - *delete_all_spares_newer_records*: so does each delete of a batch; records that have changed stay.
/// - *spaces_are_apart*, *keys_are_told_apart*: the same key in another space is another record, and so is any other text,
///   however much it looks alike or means to the engine.
/// - *values_are_kept_as_they_are*: any bytes, none included, up to [`max_value`](Store::max_value).
/// - *a_time_to_live_is_only_a_hint*: one that has not come changes nothing, and the next write sets another or none.
///
/// Reading:
/// - *reads_own_writes*: a linearizable read shows every write that was answered before it began.
/// - *list_by_tag*: a listing by tag holds exactly the records whose newest version has that tag.
/// - *listing_shows_no_former_owner*: a record that moved from tag to tag is listed under its newest alone; no older one comes
///   back when that is deleted.
/// - *list_then_watch_misses_nothing*: a watch after the position of a listing delivers every later change of the
///   space, in order, at least once, each with the record as that change left it.
/// - *watch_ignores_other_spaces*: and no change of another space.
/// - *a_watch_resumes_after_any_change*: a watch can be taken up after any change, and tells the same again, in the same
///   order.
/// - *every_watcher_is_told_the_same*: whenever it began.
///
/// Both:
/// - *cancel_safe*: a dropped future may or may not have written, now or later; it corrupts nothing.
///
/// When its server restarts:
/// - *watch_survives_a_restart*: a watch that was open tells every change made before, meanwhile and afterwards, in order; or
///   it breaks, and tells the rest without a gap where it is taken up; or it is `Compacted`.
/// - *version_grows_across_a_restart*: versions and positions go on above all that were given before.
/// - *acknowledged_writes_survive_a_restart*: a write that was answered stands, at the version that was answered.
/// - If the server has forgotten everything, none of this holds: then every client and watch of earlier is told `Fatal`, for
///   good.
///
/// It need not have transactions: a guard that cannot be checked is ignored (*guard_holds* is for those that can,
/// see [`Store::checks_guards`]). It need not delete by TTL (`Write::Put`'s `ttl` is a hint), and may do so at any time;
/// if it does, the deletion is a change like any other and comes through the watch. A watch may end, fail, or be
/// `Compacted` at any time.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The backend's name, for errors and logs.
    fn name(&self) -> &'static str;

    /// Whether guards are checked in the same transaction.
    fn checks_guards(&self) -> bool {
        false
    }

    /// The longest value that the engine takes, in bytes. Only routing tables and states of actors come near it; a
    /// longer one is refused before it is sent.
    fn max_value(&self) -> usize {
        DEFAULT_MAX_VALUE
    }

    /// Reads a record.
    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError>;

    /// Writes if the record is as expected, and the guard holds.
    ///
    /// # Errors
    ///
    /// - `Unavailable`: certainly not applied, now or later.
    /// - `Unknown`: may be applied now or later; repeat the same write or read.
    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError>;

    /// The records of a space, or those of one tag, and the position to watch from. May be stale, but whatever is
    /// missing comes through the watch.
    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError>;

    /// The changes of a space after a position.
    ///
    /// # Errors
    ///
    /// - `Compacted`: the history does not reach back so far; also as an item of the stream. List, compare, and watch
    ///   from the listing.
    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError>;

    /// Deletes each record that still is at the version given; answers how many were.
    ///
    /// # Errors
    ///
    /// - `Unknown`: some may be deleted now or later. The others stand.
    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for record in records {
            let answer = self.cas(&record.id, record.expect(), Write::Delete, None).await?;
            deleted += usize::from(matches!(answer, CasAnswer::Applied(_)));
        }
        Ok(deleted)
    }
}

/// How fresh a read must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// Shows every write answered before; where an engine cannot promise that, the freshest it has.
    Linearizable,
    /// May be old.
    Any,
}

/// What a compare-and-swap came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CasAnswer {
    /// It was applied as this version.
    Applied(Version),
    /// Not applied: this stands there.
    Conflict(Option<Record>),
    /// Not applied: the guard does not hold.
    GuardFailed,
}

/// A listing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Records {
    /// The records.
    pub records: Vec<Record>,
    /// Every change that the listing does not show comes after this.
    pub position: Position,
}

/// A change of a space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A record is new or has changed.
    Put {
        /// Where in history.
        position: Position,
        /// The record as the change left it.
        record: Record,
    },
    /// A record was deleted, by anybody or by the engine.
    Deleted {
        /// Where in history.
        position: Position,
        /// Which one.
        id: RecordId,
    },
}

impl Change {
    /// Where in history the change lies.
    pub const fn position(&self) -> Position {
        match self {
            Self::Put { position, .. } | Self::Deleted { position, .. } => *position,
        }
    }

    /// Which record changed.
    pub const fn id(&self) -> &RecordId {
        match self {
            Self::Put { record, .. } => &record.id,
            Self::Deleted { id, .. } => id,
        }
    }
}

/// The changes of a space. An error, or the end, means that it broke: watch again after the last position.
pub type StoreWatch = Pin<Box<dyn Stream<Item = Result<Change, StoreError>> + Send>>;

/// Why a store did not answer, sorted by what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The request was not taken: certainly not applied. Try again later.
    #[error("the store is unavailable")]
    Unavailable {
        /// What the engine's client said.
        source: BoxError,
    },
    /// No answer came: may be applied now or later. Repeat the same compare-and-swap, or read.
    #[error("the outcome is unknown")]
    Unknown {
        /// What the engine's client said.
        source: BoxError,
    },
    /// The history does not reach back so far. List, compare, watch from the listing.
    #[error("the history has been compacted")]
    Compacted,
    /// The engine cannot do what is asked, or is set up wrongly. Repeating will not help.
    #[error("the store cannot serve this")]
    Fatal {
        /// What the engine's client said.
        source: BoxError,
    },
}

/// What every engine takes that has no limit of its own: below the default message sizes of etcd and NATS.
const DEFAULT_MAX_VALUE: usize = 768 << 10;
