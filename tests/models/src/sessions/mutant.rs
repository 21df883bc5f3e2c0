//! The rules that a run can break, one at a time.
//!
//! Each switch sits in what surrounds the machines; the machines stay as the nodes run them. The numbers are those of the
//! table in `docs/models.md`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// 1: a taker does not ask for `Ended`.
    TakesOnSuspicion,
    /// 2: the gate does not look at the clock.
    NoSelfFence,
    /// 3: the deadline counts from the answer to a beat.
    CountsFromTheAnswer,
    /// 4: a repeated beat that finds the first one counts from the repeat.
    CountsFromTheRepeat,
    /// 5: an observer judges by its own, shorter time to live.
    ObserverUsesItsOwnTtl,
    /// 6: an observer stamps before it asks.
    StampsBeforeAsking,
    /// 7: an end does not name the version that stood still.
    EndNamesNoVersion,
    /// 8: a beat is written over whatever stands there.
    BeatWithoutCas,
    /// 9: so is a claim.
    ClaimWithoutCas,
    /// 10: an absent lease counts as ended.
    AbsenceIsDeath,
    /// 10, another form: whoever ends a session deletes its lease, and so an absent one counts as ended.
    EndsByDeleting,
    /// 11: absence is counted like a version, also from stale reads, and ended where it stands.
    CountsAbsence,
    /// 12: a holder that finds its lease absent writes it again.
    RecreatesAbsentLease,
    /// 13: a holder takes a pin for its own record.
    AcceptsMissing,
    /// 13, another form: it takes an attempt for news that is no younger than the confirmed one.
    AcceptsOlderSeq,
    /// 14: a node serves what a read shows as its own.
    AdoptsByReading,
    /// 15: a release names the owner, not the generation.
    ReleaseNamesOwner,
    /// 16: so does a transfer.
    TransferNamesOwner,
    /// 17: an eviction deletes whatever stands there.
    EvictsByKey,
    /// 18: the answer to a claim of the last session counts for this one.
    OldClaimGrants,
    /// 19: a session is opened again under its old id.
    ReopensSameId,
    /// 20: an unanswered open is repeated.
    RepeatsOpen,
    /// 21: a close is sent before everything has stopped.
    ClosesBeforeStopping,
    /// 22: so is a release.
    ReleasesBeforeStopping,
    /// 23: generations start again after a delete.
    GenerationsStartAgain,
    /// 24: an owner never recasts what it does not serve.
    NeverRecasts,
    /// 25: an absent lease counts as live.
    AbsenceIsLife,
    /// 33: the resolver writes `Ended` where it should write `Revoked`.
    RevokesByEnding,
    /// 34: a node claims before its open is confirmed.
    ClaimsBeforeConfirmed,
}
