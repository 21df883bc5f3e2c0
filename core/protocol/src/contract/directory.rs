//! The directory of one datacenter: sessions of nodes, and who owns what.

use alloc::boxed::Box;
use alloc::vec::Vec;

use async_trait::async_trait;

use super::{DirectoryError, Move, OwnerRecord, PlacementDecision, Revision, WatchScope, WatchStream};
use crate::identity::{Kind, NodeId, NodeInfo, OwnedKey, PartitionName, Placement};
use crate::placement::KindLayout;
use crate::session::{Beat, EndReason, LeaseAnswer, LeaseSeen, LeaseVersion, Session};

/// Grants ownership: at most one owner per key, and none is replaced before its session has ended.
///
/// # Every implementation
///
/// Sessions:
/// - *open_creates_only*: opening writes the lease only where there is none, so an ended id never comes back.
/// - *beat_names_its_version*: a beat replaces exactly the version it names, or finds what stands there.
/// - *end_names_its_version*: an end or a revocation loses against any beat that came in between.
/// - *ended_is_final*: an ended lease is never changed again, only collected.
/// - *revoked_stops_beats*: after a revocation no beat is applied.
/// - *close_is_immediate*: after a close is answered, others may claim the session's keys without waiting.
/// - *a_silent_stop_frees_its_keys_after_the_wait*: without a close they wait until an observer has ended the session.
/// - *session_end_is_judged_on_the_observers_clock*: whoever ends sessions ends none that beats, and a silent one only after
///   the whole wait on its own clock.
/// - *a_farewell_needs_no_wait*: a node that takes its leave is gone at once, from listings as well.
/// - *a_vanished_lease_is_waited_for_like_a_silent_one*: a lease that the engine deleted is ended only after its absence was
///   written down and stood still.
/// - *pin_writes_absence_down*: pinning an absent lease gives it a version; pinning a present one changes nothing.
/// - *sessions_lists_the_announced*: a node is listed from its announcement until its session has ended.
///
/// Ownership:
/// - *claim_is_exclusive*: of any number of concurrent claims of a free key one is placed.
/// - *claim_needs_an_ended_owner*: a key whose owner's session has not ended is never taken, not even if the
///   lease record is missing.
/// - *every_race_has_one_winner*, *every_takeover_has_one_winner*: however often a key comes free, or its owner's session
///   ends, one of those who want it gets it, and the others are told who.
/// - *a_race_with_the_owner_leaves_one_owner*: so it is where the owner hands over or releases meanwhile, and whoever it is
///   knows.
/// - *claim_tells_placed_from_raced*: whoever saw the owner is told `AlreadyPlaced`, whoever saw nothing or another `Raced`.
/// - *claim_refuses_a_lost_session*: where the store checks guards, a session that is over is told `SessionLost`. Nothing
///   depends on it.
/// - *a_claim_answered_late_grants_nothing*: a claim whose answer never came grants nothing, whenever it lands.
/// - *claim_recasts_its_own*: a claim that finds the claimer's own session in the record writes it anew, with a new
///   generation; nothing is adopted by reading.
/// - *generation_grows*, *generation_grows_across_deletes*: every placement of a key has a greater generation than all
///   before, also across a release.
/// - *release_names_its_generation*, *transfer_names_its_generation*, *reassert_names_its_generation*: each
///   writes only over the generation that the caller owns.
/// - *reassert_keeps_the_tenure*: same owner, new generation, same `since`.
/// - *lookup_hides_the_ended*: no lookup reports an owner whose session has ended.
/// - *listings_by_node_and_kind*: owner records are listed by node and by kind, as they stand.
/// - *listing_shows_no_former_owner*: what a node once owned is not in its listing.
/// - *ownership_is_linearizable*: claims, hand-overs, releases and lookups are in one order that everybody could have seen.
/// - *evict_needs_an_ended_session*, *evict_spares_newer_records*: evicting removes only records of an ended
///   session, each at the version listed.
/// - *eviction_spares_claims_that_go_on*: what others claim meanwhile stays.
/// - *collect_waits_for_the_last_record*: an ended lease is collected only after its last owner record is gone.
/// - *cancel_safe*: a dropped future may or may not have written, now or later; it corrupts nothing.
///
/// Partitions of ranges:
/// - *range_claim_waits_for_its_parents*: a partition is never placed while one that it was made of is owned by a session
///   that has not ended.
/// - *range_claim_retires_what_nobody_owns*: parents without an owner, or whose owner has ended, are retired by the claim.
/// - *children_have_greater_generations*: a partition has a greater generation than each of its parents ever had: what is
///   fenced by generations stays fenced when the key of an actor comes into another partition.
/// - *children_and_parent_are_never_owned_together*: however their claims race, nobody is placed on a child before the parent
///   is retired.
/// - *ranges_are_claimed_with_their_parents*: a plain claim of a partition is refused.
/// - *retire_names_its_generation*: only the generation that the caller owns is retired.
/// - *retired_is_final*: a retired partition is never claimed, released, handed over or reasserted again.
/// - *retired_is_no_owner*: lookups, listings and watches show it as gone.
///
/// Kinds:
/// - *layout_is_settled_once*: of all layouts of a kind that anybody brings, the first one written stands for ever, and
///   everybody is answered with that one.
///
/// Watching:
/// - *watch_starts_with_a_snapshot*, *watch_misses_nothing*, *watch_resumes_from_a_revision*,
///   *watch_survives_compaction*: a snapshot at revision r, then every change after r, in order, at least once; a
///   broken or compacted watch re-snapshots and emits the difference.
/// - *directory_watch_survives_a_restart*: where a server underneath restarts, a watch goes on by itself, and no generation
///   goes back.
/// - *watch_of_a_node_follows_its_records*: of a node's own records, those it gets come and those it loses go.
/// - *watch_tells_who_joined_and_left*: a node joins with its announcement, and leaves when its session ends or is closed.
///
/// It need not be fair, nor show a write to listings and watches at once, nor judge any session by itself: the
/// machines of [`crate::session`] do.
///
/// # Errors
///
/// Every method may answer `Unavailable` (certainly not applied) and `Unknown` (may be applied now or later), and
/// `Invalid` for a record that cannot be read. What else a method answers stands with it.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Writes the lease of a new session (`Live`, attempt 0). The id is fresh: never repeat an open whose outcome is
    /// `Unknown`, read it back with [`lease`](Self::lease) (OPEN-ONCE).
    async fn open_session(&self, session: Session, nonce: u64) -> Result<LeaseAnswer, DirectoryError>;

    /// Puts up the node's poster, what everybody else watches; to be repeated until it succeeds. No authority.
    async fn announce(&self, info: &NodeInfo) -> Result<(), DirectoryError>;

    /// Writes one attempt over the version it names.
    async fn beat(&self, beat: Beat) -> Result<LeaseAnswer, DirectoryError>;

    /// Reads a lease, linearizable where the engine can; `None` = absent, which proves nothing.
    async fn lease(&self, id: NodeId) -> Result<Option<LeaseSeen>, DirectoryError>;

    /// Ends the caller's own session, at once. Sent only after everything has stopped (STOP-FIRST); the session is dead
    /// whatever the answer.
    async fn close_session(&self, session: Session) -> Result<(), DirectoryError>;

    /// Ends a session that stood still at `version` for long enough (END-ON-LEASE), and takes its poster down.
    async fn end_session(
        &self,
        id: NodeId,
        version: LeaseVersion,
        by: NodeId,
        why: EndReason,
    ) -> Result<LeaseAnswer, DirectoryError>;

    /// Stops further beats of a live session (REVOKE). Observers then wait as after a last beat.
    async fn revoke(&self, seen: &LeaseSeen, by: NodeId) -> Result<LeaseAnswer, DirectoryError>;

    /// Writes down that a lease is absent (PIN); finds the record if there is one.
    async fn pin_session(&self, session: Session) -> Result<LeaseAnswer, DirectoryError>;

    /// The nodes that announced themselves and have not ended.
    async fn sessions(&self) -> Result<Listing<NodeInfo>, DirectoryError>;

    /// Claims `key` for `session`. `expected` is the record as the caller last saw it, `None` if it knows of none.
    ///
    /// A caller that serves the key does not claim it (ONE-FLIGHT); one that gets [`PlacementDecision::Placed`]
    /// serves only if its session still grants it (GRANT). After `Unknown` the key is not owned: claim again. A caller
    /// that stops waiting drops the future before it writes to the key again; left running, it could recast what a
    /// later claim has placed.
    ///
    /// # Errors
    ///
    /// - `SessionLost`: the claimer's session is over; nothing was written.
    /// - `Invalid`: the key is a partition; see [`claim_range`](Self::claim_range).
    async fn claim(
        &self,
        key: &OwnedKey,
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError>;

    /// Claims a partition of a range-partitioned kind, as [`claim`](Self::claim) does, once all its `parents` (as the
    /// routing table names them) have been retired. Parents that nobody owns any more are retired here; retired is final,
    /// so having read it once is enough.
    ///
    /// # Errors
    ///
    /// - `NotRetired`: a parent's owner has not stopped; nothing was written to the key.
    /// - `Retired`: the partition itself has been divided or merged.
    /// - `Invalid`: the key is no partition.
    /// - `SessionLost`: the claimer's session is over; nothing was written to the key.
    async fn claim_range(
        &self,
        key: &OwnedKey,
        parents: &[PartitionName],
        session: Session,
        expected: Option<OwnerRecord>,
    ) -> Result<PlacementDecision, DirectoryError>;

    /// Retires a partition that was divided or merged: nobody owns it any more, for ever. Sent only after the last handler
    /// has ended (STOP-FIRST); the generation is dead for the caller unless the answer is `Unavailable`.
    ///
    /// # Errors
    ///
    /// - `Conflict`: done already, or not the caller's any more; nothing was written.
    /// - `Invalid`: the key is no partition.
    async fn retire(&self, placement: &Placement) -> Result<(), DirectoryError>;

    /// Writes the caller's own record anew (RECAS): same owner, same tenure, new generation. Makes every earlier
    /// write to it that may still be under way impossible.
    ///
    /// # Errors
    ///
    /// - `Conflict`: the record has moved on; nothing was written.
    async fn reassert(&self, record: &OwnerRecord) -> Result<OwnerRecord, DirectoryError>;

    /// Gives the key to another session. Sent only after the last handler has ended (STOP-FIRST); the generation is
    /// dead for the caller unless the answer is `Unavailable`.
    ///
    /// # Errors
    ///
    /// - `Conflict`: the record has moved on; nothing was written.
    async fn transfer(
        &self,
        placement: &Placement,
        to: Session,
        moved: Option<Move>,
    ) -> Result<Placement, DirectoryError>;

    /// Gives the key up. Sent only after the last handler has ended (STOP-FIRST); the generation is dead for the caller
    /// unless the answer is `Unavailable`.
    ///
    /// # Errors
    ///
    /// - `Conflict`: done already, or not the caller's any more; nothing was written.
    async fn release(&self, placement: &Placement) -> Result<(), DirectoryError>;

    /// Who owns `key`; `None` if nobody does, or only a session that has ended. Linearizable where the engine can.
    async fn lookup(&self, key: &OwnedKey) -> Result<Option<OwnerRecord>, DirectoryError>;

    /// The owner records in `scope` as they stand, those of ended sessions too.
    async fn placements(&self, scope: PlacementScope) -> Result<Listing<OwnerRecord>, DirectoryError>;

    /// Removes the records of a session that has ended; answers how many. Claims replace them anyway.
    ///
    /// # Errors
    ///
    /// - `Invalid`: the session has not ended, as far as the store tells; nothing was written.
    async fn evict(&self, ended: NodeId) -> Result<usize, DirectoryError>;

    /// Removes the lease of a session that has ended and owns nothing any more, and its poster; `false` if it still does.
    ///
    /// # Errors
    ///
    /// - `Invalid`: the session has not ended, as far as the store tells; nothing was written.
    async fn collect(&self, ended: NodeId) -> Result<bool, DirectoryError>;

    /// Writes down how a kind is divided, unless somebody has done so before; answers what stands there. May be repeated.
    ///
    /// A node whose own layout differs from the answer must not own anything of the kind: its shards overlap those of others
    /// in a way that no claim notices.
    async fn settle_layout(&self, kind: &Kind, layout: KindLayout) -> Result<KindLayout, DirectoryError>;

    /// Watches `scope`: from a snapshot on if `from` is `None`, else every change after that revision. Breaks of the
    /// store's own watch are mended inside.
    async fn watch(&self, scope: WatchScope, from: Option<Revision>) -> Result<WatchStream, DirectoryError>;
}

/// Which owner records to list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PlacementScope {
    /// Those of one node.
    Node(NodeId),
    /// Those of one kind.
    Kind(Kind),
    /// All of them.
    All,
}

/// Records, and the revision after which to watch for changes to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listing<T> {
    /// The records.
    pub records: Vec<T>,
    /// The point in history that they show.
    pub revision: Revision,
}
