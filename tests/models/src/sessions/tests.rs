//! The runs: clean ones of the protocol as it is, and one per broken rule.

use super::*;
use crate::check::{explore, hunt, hunt_for};

impl Sessions {
    fn new(bounds: Bounds, life: Life) -> Self {
        Self { bounds, life, rules: Rules::default(), monitoring: true, ways_out: false }
    }

    fn reading_stale(mut self) -> Self {
        self.rules.stale_reads = true;
        self
    }

    fn only_blocked(mut self) -> Self {
        self.monitoring = false;
        self
    }

    fn with_ways_out(mut self) -> Self {
        self.ways_out = true;
        self
    }

    fn breaking(mut self, mutant: Mutant) -> Self {
        self.rules.mutant = Some(mutant);
        self
    }
}

const NOTHING_ELSE: Life = Life {
    engine_deletes: false,
    collects: false,
    crashes: false,
    releases: false,
    transfers: false,
    closes: false,
    evicts: false,
    revokes: false,
    refusals: false,
    repeats: false,
};

const EVERYTHING: Life = Life {
    engine_deletes: true,
    collects: true,
    crashes: true,
    releases: true,
    transfers: true,
    closes: true,
    evicts: true,
    revokes: true,
    refusals: true,
    repeats: false,
};

/// Two sessions one after the other, each with an open and one more write.
const TWO_LIVES: Bounds = Bounds { ticks: 3, sessions: 2, lease_writes: 2, owner_writes: 2, flights: 2 };
/// One session that beats.
const ONE_LIFE: Bounds = Bounds { ticks: 4, sessions: 1, lease_writes: 3, owner_writes: 2, flights: 2 };
/// The smallest in which anything happens.
const CRAMPED: Bounds = Bounds { ticks: 3, sessions: 2, lease_writes: 2, owner_writes: 2, flights: 1 };

/// Proves: R232
#[test]
fn late_writes_and_lost_answers_break_nothing() {
    explore(Sessions::new(TWO_LIVES, NOTHING_ELSE)).assert_clean();
}

#[test]
fn whoever_is_blocked_needs_no_monitor() {
    explore(Sessions::new(TWO_LIVES, NOTHING_ELSE).only_blocked()).assert_clean();
}

#[test]
fn engine_deletes_break_nothing() {
    explore(Sessions::new(Bounds { lease_writes: 3, ..CRAMPED }, ENGINE_DELETES)).assert_clean();
}

#[test]
fn stale_reads_break_nothing() {
    explore(Sessions::new(CRAMPED, NOTHING_ELSE).reading_stale()).assert_clean();
}

#[test]
fn leaving_closing_evicting_and_collecting_break_nothing() {
    let life =
        Life { releases: true, transfers: true, closes: true, evicts: true, collects: true, ..NOTHING_ELSE };
    explore(Sessions::new(CRAMPED, life)).assert_clean();
}

#[test]
fn crashes_revocations_and_refusals_break_nothing() {
    let life = Life { crashes: true, revokes: true, refusals: true, ..NOTHING_ELSE };
    explore(Sessions::new(CRAMPED, life)).assert_clean();
}

#[test]
fn from_everywhere_somebody_serves_in_the_end() {
    let life = Life { engine_deletes: true, crashes: true, ..NOTHING_ELSE };
    explore(Sessions::new(CRAMPED, life).with_ways_out()).assert_clean();
}

/// Each test breaks one rule; the property named must notice.
macro_rules! mutants {
    ($($name:ident: $mutant:ident breaks $property:literal in $run:expr;)*) => {
        $(#[test]
        fn $name() {
            hunt($run.breaking(Mutant::$mutant)).assert_broken($property);
        })*
    };
}

const ENGINE_DELETES: Life = Life { engine_deletes: true, ..NOTHING_ELSE };
const REPEATING: Life = Life { repeats: true, engine_deletes: true, ..NOTHING_ELSE };
const LEAVING: Life = Life { releases: true, transfers: true, ..NOTHING_ELSE };
const COLLECTING: Life = Life { collects: true, ..NOTHING_ELSE };

fn one_life(life: Life) -> Sessions {
    Sessions::new(ONE_LIFE, life)
}

/// Only one node ever gets the key: enough for what goes wrong with the session alone.
fn one_owner(life: Life) -> Sessions {
    Sessions::new(Bounds { owner_writes: 1, ..ONE_LIFE }, life)
}

fn one_write_at_a_time(life: Life) -> Sessions {
    Sessions::new(Bounds { flights: 1, ..ONE_LIFE }, life)
}

fn two_lives(life: Life) -> Sessions {
    Sessions::new(TWO_LIVES, life)
}

mutants! {
    mutant_01_takes_on_suspicion: TakesOnSuspicion breaks "server_is_recorded" in one_life(NOTHING_ELSE);
    mutant_02_no_self_fence: NoSelfFence breaks "ended_session_is_silent" in one_write_at_a_time(NOTHING_ELSE);
    mutant_03_counts_from_the_answer: CountsFromTheAnswer breaks "ended_session_is_silent" in one_owner(NOTHING_ELSE);
    mutant_04_counts_from_the_repeat: CountsFromTheRepeat breaks "ended_session_is_silent" in one_write_at_a_time(NOTHING_ELSE);
    mutant_05_observer_uses_its_own_ttl: ObserverUsesItsOwnTtl breaks "ended_session_is_silent" in one_write_at_a_time(NOTHING_ELSE);
    mutant_06_stamps_before_asking: StampsBeforeAsking breaks "ended_session_is_silent" in one_write_at_a_time(NOTHING_ELSE);
    mutant_07_end_names_no_version: EndNamesNoVersion breaks "ended_session_is_silent" in one_owner(NOTHING_ELSE);
    mutant_08_beat_without_cas: BeatWithoutCas breaks "ended_never_comes_back" in one_owner(NOTHING_ELSE);
    mutant_09_claim_without_cas: ClaimWithoutCas breaks "server_is_recorded" in one_life(NOTHING_ELSE);
    mutant_10_absence_is_death: AbsenceIsDeath breaks "server_is_recorded" in one_life(ENGINE_DELETES);
    mutant_10_ends_by_deleting: EndsByDeleting breaks "server_is_recorded" in one_life(ENGINE_DELETES);
    mutant_11_counts_absence: CountsAbsence breaks "ended_never_comes_back" in one_life(ENGINE_DELETES).reading_stale();
    mutant_12_recreates_absent_lease: RecreatesAbsentLease breaks "ended_never_comes_back" in one_owner(ENGINE_DELETES);
    mutant_13_accepts_missing: AcceptsMissing breaks "ended_session_is_silent" in one_write_at_a_time(ENGINE_DELETES);
    mutant_14_adopts_by_reading: AdoptsByReading breaks "server_is_recorded" in one_life(LEAVING);
    mutant_15_release_names_owner: ReleaseNamesOwner breaks "server_is_recorded" in one_life(LEAVING);
    mutant_16_transfer_names_owner: TransferNamesOwner breaks "server_is_recorded" in Sessions::new(Bounds { owner_writes: 3, ..ONE_LIFE }, LEAVING);
    mutant_17_evicts_by_key: EvictsByKey breaks "server_is_recorded" in one_life(Life { evicts: true, ..NOTHING_ELSE });
    mutant_18_old_claim_grants: OldClaimGrants breaks "server_is_recorded" in two_lives(NOTHING_ELSE);
    mutant_19_reopens_same_id: ReopensSameId breaks "ended_never_comes_back" in Sessions::new(Bounds { lease_writes: 3, ..TWO_LIVES }, COLLECTING);
    mutant_20_repeats_open: RepeatsOpen breaks "ended_never_comes_back" in one_owner(COLLECTING);
    mutant_21_closes_before_stopping: ClosesBeforeStopping breaks "ended_session_is_silent" in one_owner(Life { closes: true, ..NOTHING_ELSE });
    mutant_22_releases_before_stopping: ReleasesBeforeStopping breaks "server_is_recorded" in one_life(LEAVING);
    mutant_23_generations_start_again: GenerationsStartAgain breaks "server_is_recorded" in one_life(LEAVING);
    mutant_24_never_recasts: NeverRecasts breaks "never_stuck" in one_life(NOTHING_ELSE).with_ways_out();
    mutant_25_absence_is_life: AbsenceIsLife breaks "never_stuck" in one_life(Life { crashes: true, engine_deletes: true, ..NOTHING_ELSE }).with_ways_out();
    mutant_33_revokes_by_ending: RevokesByEnding breaks "ended_session_is_silent" in one_owner(Life { revokes: true, ..NOTHING_ELSE });
    mutant_34_claims_before_confirmed: ClaimsBeforeConfirmed breaks "ended_never_comes_back" in one_life(COLLECTING);
}

/// The other properties fall earlier and would hide it if this one were blind.
#[test]
fn two_serve_at_once_where_a_rule_is_broken() {
    for (mutant, run) in [
        (Mutant::TakesOnSuspicion, one_life(NOTHING_ELSE)),
        (Mutant::NoSelfFence, one_write_at_a_time(NOTHING_ELSE)),
        (Mutant::ClaimWithoutCas, one_life(NOTHING_ELSE)),
        (Mutant::AbsenceIsDeath, one_life(ENGINE_DELETES)),
        (Mutant::EndsByDeleting, one_life(ENGINE_DELETES)),
        (Mutant::AdoptsByReading, Sessions::new(Bounds { owner_writes: 3, ..ONE_LIFE }, LEAVING)),
        (Mutant::ReleasesBeforeStopping, one_life(LEAVING)),
    ] {
        hunt_for(run.breaking(mutant), "at_most_one_server").assert_broken("at_most_one_server");
    }
}

/// What breaks the form of mutant 10 that deletes is that the engine deletes as well.
#[test]
fn ends_may_delete_where_nothing_else_does() {
    explore(Sessions::new(CRAMPED, NOTHING_ELSE).breaking(Mutant::EndsByDeleting)).assert_clean();
}

#[test]
#[ignore = "more than a million states: for `cargo xtask soak`"]
fn mutant_13_accepts_an_older_seq() {
    hunt(one_owner(REPEATING).breaking(Mutant::AcceptsOlderSeq)).assert_broken("ended_session_is_silent");
}

#[test]
#[ignore = "a million states: for `cargo xtask soak`"]
fn engine_deletes_and_stale_reads_together_hold() {
    explore(Sessions::new(Bounds { lease_writes: 3, ..CRAMPED }, ENGINE_DELETES).reading_stale())
        .assert_clean();
}

#[test]
#[ignore = "millions of states: for `cargo xtask soak`"]
fn two_lives_of_everything_hold() {
    explore(Sessions::new(CRAMPED, EVERYTHING)).assert_clean();
}
