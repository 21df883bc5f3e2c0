//! Which datacenter an actor was placed in.

use alloc::boxed::Box;

use async_trait::async_trait;

use super::DirectoryError;
use crate::datacenter::DataCenterId;
use crate::identity::ActorId;

/// Remembers the datacenters of actors that were placed on purpose; it outlives their activations, so that such an actor does
/// not come to life a second time elsewhere.
///
/// Each datacenter has its own, in its directory's store. An actor that is placed abroad has a record on both sides, saying
/// the same.
///
/// # Every implementation
///
/// - *no_record_is_none*: an actor that nobody placed has no home record, and that is no error.
/// - *home_is_settled_once*: the first to settle a home wins; everybody after it is told which one stands.
/// - *settling_has_one_winner*: also if several settle at the same time.
/// - *maker_takes_back*: a home is forgotten only by what settled it first; then it can be settled anew.
/// - *joined_home_stays*: a home that somebody else has settled as well since, is not forgotten any more.
/// - *homes_are_apart*: what happens to one actor's record is not seen in another's.
/// - *home_record_is_json*: people can read what the store holds.
/// - *homes_are_cancel_safe*: a dropped future may or may not have written, now or later; it corrupts nothing.
#[async_trait]
pub trait Homes: Send + Sync + 'static {
    /// The datacenter that `actor` was placed in; `None` if nobody said.
    ///
    /// # Errors
    ///
    /// It could not be found out; the actor may have a home record.
    async fn home_of(&self, actor: &ActorId) -> Result<Option<DataCenterId>, DirectoryError>;

    /// Says that `actor` lives in `home`, unless somebody has said otherwise; answers the home that stands. May be repeated.
    ///
    /// # Errors
    ///
    /// - `Unavailable`: nothing was written.
    /// - `Unknown`: it may be written now or later.
    async fn settle_home(&self, actor: &ActorId, home: &DataCenterId) -> Result<SettledHome, DirectoryError>;

    /// Takes back what one call of [`settle_home`](Self::settle_home) wrote down first, if nobody has settled the same home since;
    /// whether it did. For placements that certainly came to nothing.
    ///
    /// # Errors
    ///
    /// As [`settle_home`](Self::settle_home).
    async fn forget_home(&self, actor: &ActorId, made: HomeStamp) -> Result<bool, DirectoryError>;
}

/// The home that stands after a call to settle one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledHome {
    /// Where the actor lives.
    pub home: DataCenterId,
    /// By what it can be taken back, if this very call wrote it down first.
    pub made: Option<HomeStamp>,
}

/// Tells what one call wrote down from what others did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeStamp(pub u64);
