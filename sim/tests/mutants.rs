//! The invariants can fail: each deliberate bug of the runtime, of the directory and of the network is found by a small sweep.
#![cfg(feature = "mutants")]

/// The storms of ranges, which others look at without bugs.
#[path = "simulated/ranges/pages.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the tests without bugs use more of it")]
mod pages;
#[path = "simulated/ranges/tempest.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the tests without bugs use more of it")]
mod tempest;

use std::panic::catch_unwind;
use std::time::Duration;

use archipelago_directory::{Mutant as DirectoryMutant, set_mutant as set_directory_mutant};
use archipelago_memory::Mutant as NetworkMutant;
use archipelago_runtime::{Mutant, set_mutant};
use archipelago_sim::{
    Invariant, Outcome, Violation, run_cluster_seed, run_handoff_seed, run_remote_seed, run_seed,
    set_network_mutant,
};

/// Sweeps until the bug shows; it must do so as one of the promises `expected`.
fn is_found(mutant: Mutant, expected: &[Invariant]) {
    set_mutant(Some(mutant));
    let found =
        (1..=SEEDS).find_map(|seed| run_seed(seed, LENGTH).violation.map(|violation| (seed, violation)));
    set_mutant(None);
    let (seed, violation) = found.unwrap_or_else(|| panic!("{mutant:?} was not found in {SEEDS} seeds"));
    eprintln!("{mutant:?} found by seed {seed}: {violation}");
    assert!(expected.contains(&violation.invariant), "{mutant:?} showed as something else: {violation}");
}

#[test]
fn a_queue_dropped_with_its_actor_is_found() {
    is_found(Mutant::InboxDropsQueueOnStop, &[Invariant::NoAcceptedMessageLost, Invariant::StartedIsTrue]);
}

#[test]
fn a_forgotten_order_is_found() {
    is_found(Mutant::InboxForgetsOrder, &[Invariant::FifoPerSender]);
}

#[test]
fn overlapping_messages_are_found() {
    is_found(Mutant::InterleavesAlways, &[Invariant::OneMessageAtATime]);
}

#[test]
fn a_late_reply_that_ends_another_call_is_found() {
    is_found(Mutant::LateReplyCompletes, &[Invariant::EveryCallEndsByItsDeadline]);
}

#[test]
fn a_missing_fence_is_found() {
    is_found(Mutant::NoFence, &[Invariant::NothingRunsAfterTheFence, Invariant::AtMostOneActivation]);
}

#[test]
fn a_gate_that_never_closes_is_found() {
    is_found(
        Mutant::NoGate,
        &[
            Invariant::NothingStartsAfterTheSession,
            Invariant::NothingRunsAfterTheFence,
            Invariant::AtMostOneActivation,
        ],
    );
}

#[test]
fn a_call_started_after_its_end_is_found() {
    is_found(Mutant::StartsEndedCalls, &[Invariant::NotStartedIsTrue]);
}

#[test]
fn a_twin_activation_is_found() {
    is_found(
        Mutant::TwinActivation,
        &[Invariant::AtMostOneActivation, Invariant::OneMessageAtATime, Invariant::CatalogIsConsistent],
    );
}

/// Sweeps the workload of several nodes until a bug of the network shows; as what, depends on what it meets first.
fn network_bug_is_found(mutant: NetworkMutant) {
    set_network_mutant(Some(mutant));
    let found = (1..=SEEDS)
        .find_map(|seed| run_remote_seed(seed, LENGTH).violation.map(|violation| (seed, violation)));
    set_network_mutant(None);
    let (seed, violation) = found.unwrap_or_else(|| panic!("{mutant:?} was not found in {SEEDS} seeds"));
    eprintln!("{mutant:?} found by seed {seed}: {violation}");
}

#[test]
fn batches_that_come_twice_or_out_of_order_or_not_are_found() {
    let broken = [
        NetworkMutant::RepeatsBatches,
        NetworkMutant::SwapsBatches,
        NetworkMutant::LosesBatches,
        NetworkMutant::LosesLastByte,
    ];
    broken.into_iter().for_each(network_bug_is_found);
}

/// Sweeps the workload of a cluster until the bug shows; it must do so as one of the promises `expected`.
fn is_found_in_a_cluster(mutant: Mutant, expected: &[Invariant]) {
    is_found_by(run_cluster_seed, mutant, expected);
}

/// Sweeps a cluster whose shards move until the bug shows; it must do so as one of the promises `expected`.
fn is_found_by_moves(mutant: Mutant, expected: &[Invariant]) {
    is_found_by(run_handoff_seed, mutant, expected);
}

fn is_found_by(run: fn(u64, Duration) -> Outcome, mutant: Mutant, expected: &[Invariant]) {
    set_mutant(Some(mutant));
    let found = first_violation(run);
    set_mutant(None);
    let (seed, violation) =
        found.unwrap_or_else(|| panic!("{mutant:?} was not found in {CLUSTER_SEEDS} seeds"));
    eprintln!("{mutant:?} found by seed {seed}: {violation}");
    assert!(expected.contains(&violation.invariant), "{mutant:?} showed as something else: {violation}");
}

/// The same for a bug of the directory.
fn is_found_in_the_directory(mutant: DirectoryMutant, expected: &[Invariant]) {
    set_directory_mutant(Some(mutant));
    let found = first_violation(run_cluster_seed);
    set_directory_mutant(None);
    let (seed, violation) =
        found.unwrap_or_else(|| panic!("{mutant:?} was not found in {CLUSTER_SEEDS} seeds"));
    eprintln!("{mutant:?} found by seed {seed}: {violation}");
    assert!(expected.contains(&violation.invariant), "{mutant:?} showed as something else: {violation}");
}

/// The same, and in some seed this very promise must be broken, if not as the first one.
fn breaks_by_moves(mutant: Mutant, promise: Invariant) {
    set_mutant(Some(mutant));
    let found = (1..=CLUSTER_SEEDS)
        .find_map(|seed| run_handoff_seed(seed, LENGTH).broken(promise).map(|how| (seed, how.clone())));
    set_mutant(None);
    let (seed, violation) =
        found.unwrap_or_else(|| panic!("{mutant:?} never broke {promise} in {CLUSTER_SEEDS} seeds"));
    eprintln!("{mutant:?} found by seed {seed}: {violation}");
}

fn first_violation(run: fn(u64, Duration) -> Outcome) -> Option<(u64, Violation)> {
    (1..=CLUSTER_SEEDS).find_map(|seed| run(seed, LENGTH).violation.map(|violation| (seed, violation)))
}

/// What falls first when two nodes serve the same.
const TWO_OWNERS: &[Invariant] = &[
    Invariant::ServerIsRecorded,
    Invariant::AtMostOneActivation,
    Invariant::GenerationGrows,
    Invariant::ShardHasOneOwner,
];

/// What falls first when messages disappear.
const LOST: &[Invariant] = &[
    Invariant::NoMessageLostWithoutFault,
    Invariant::NoAcceptedMessageLost,
    Invariant::StartedIsTrue,
    Invariant::CompletionExactlyOnce,
];

#[test]
fn a_claim_without_an_answer_that_serves_is_found() {
    is_found_in_a_cluster(Mutant::ServeWithoutGrant, TWO_OWNERS);
}

#[test]
fn a_record_that_is_released_while_its_actor_is_still_served_is_found() {
    is_found_in_a_cluster(Mutant::ReleasesUnsealed, TWO_OWNERS);
}

#[test]
fn a_shard_that_is_served_again_although_its_transfer_may_land_is_found() {
    is_found_by_moves(Mutant::UnsealAfterUnknown, TWO_OWNERS);
}

#[test]
fn messages_dropped_with_a_shard_that_moves_are_found() {
    is_found_by_moves(Mutant::LetGoDropsInbox, LOST);
}

#[test]
fn messages_dropped_by_a_node_that_is_not_the_owner_are_found() {
    // Whoever is never answered may show first as somebody who is not reached any more.
    let mut shows_as = LOST.to_vec();
    shows_as.push(Invariant::HealsAfterFaults);
    is_found_by_moves(Mutant::DropWhenNotOwner, &shows_as);
}

#[test]
fn a_shard_that_moves_before_its_actors_have_ended_is_found() {
    is_found_by_moves(Mutant::ReleaseBeforeQuiet, TWO_OWNERS);
}

#[test]
fn a_sender_that_waits_for_no_settling_is_found() {
    // What the old owner refuses for ever also keeps its sender from leaving.
    let found = [
        Invariant::FifoPerSender,
        Invariant::HandoffKeepsOrder,
        Invariant::HealsAfterFaults,
        Invariant::CatalogIsConsistent,
    ];
    is_found_by_moves(Mutant::SwitchAtOnce, &found);
}

#[test]
fn messages_overtaken_in_a_move_break_the_promise_of_order_by_name() {
    breaks_by_moves(Mutant::SwitchAtOnce, Invariant::HandoffKeepsOrder);
}

#[test]
fn an_old_owner_that_serves_again_breaks_the_promise_of_one_owner_by_name() {
    breaks_by_moves(Mutant::UnsealAfterUnknown, Invariant::ShardHasOneOwner);
}

#[test]
fn state_taken_while_a_handler_runs_is_found() {
    is_found_by_moves(Mutant::ParcelBeforeQuiet, &[Invariant::MigratedStateIsComplete]);
}

#[test]
fn a_shard_that_moves_before_its_state_has_arrived_is_found() {
    is_found_by_moves(Mutant::ParcelNoAck, &[Invariant::MigratedStateIsComplete]);
}

#[test]
fn state_that_is_used_whichever_move_it_came_by_is_found() {
    is_found_by_moves(Mutant::ParcelAnyMove, &[Invariant::MigratedStateIsComplete]);
}

#[test]
fn a_lost_race_that_serves_is_found() {
    is_found_in_a_cluster(Mutant::RaceLostServesAnyway, TWO_OWNERS);
}

/// No self-fence.
#[test]
fn a_node_of_a_cluster_that_never_stops_serving_is_found() {
    is_found_in_a_cluster(
        Mutant::NoGate,
        &[
            Invariant::NothingStartsAfterTheSession,
            Invariant::NothingRunsAfterTheFence,
            Invariant::AtMostOneActivation,
            Invariant::EndedSessionIsSilent,
            Invariant::ServerIsRecorded,
        ],
    );
}

/// CONFIRM broken: others count from when the beat was written, which was before its answer came.
#[test]
fn a_deadline_counted_from_the_answer_is_found() {
    is_found_in_a_cluster(
        Mutant::DeadlineFromReceipt,
        &[
            Invariant::NothingStartsAfterTheSession,
            Invariant::NothingRunsAfterTheFence,
            Invariant::EndedSessionIsSilent,
            Invariant::AtMostOneActivation,
        ],
    );
}

#[test]
fn a_claim_that_asks_for_no_session_is_found() {
    is_found_in_the_directory(DirectoryMutant::ClaimAsksNobody, TWO_OWNERS);
}

/// PIN: the store may lose the lease of a node that serves, and it serves until it finds that out.
#[test]
fn an_absent_lease_taken_for_an_ended_one_is_found() {
    is_found_in_the_directory(DirectoryMutant::AbsenceTakenForDeath, TWO_OWNERS);
}

/// H9: a delete that names no generation removes the record of who came after.
#[test]
fn a_delete_without_a_generation_is_found() {
    is_found_in_the_directory(DirectoryMutant::DeletesByKey, TWO_OWNERS);
}

/// A release whose answer is lost is repeated after the next owner's claim.
#[test]
fn a_release_without_a_generation_is_found() {
    is_found_in_the_directory(DirectoryMutant::ReleasesByKey, TWO_OWNERS);
}

#[test]
fn suspicion_taken_for_death_is_found() {
    is_found_in_a_cluster(
        Mutant::SuspicionTakenForDeath,
        &[Invariant::EndedSessionIsSilent, Invariant::AtMostOneActivation],
    );
}

#[test]
fn a_cluster_in_which_nobody_monitors_is_found() {
    is_found_in_a_cluster(Mutant::NobodyMonitors, &[Invariant::HealsAfterFaults]);
}

/// Proves: R463
#[test]
fn a_route_that_is_never_looked_up_again_is_found() {
    is_found_in_a_cluster(
        Mutant::StaleRouteForEver,
        &[Invariant::HealsAfterFaults, Invariant::NoAcceptedMessageLost],
    );
}

#[test]
fn a_node_that_leaves_without_a_word_is_found() {
    is_found_in_a_cluster(Mutant::LeaveAtOnce, &[Invariant::NoAcceptedMessageLost]);
}

/// Some storm makes two of one actor, or leaves what nobody can serve.
fn is_found_in_a_storm(mutant: Mutant) {
    set_mutant(Some(mutant));
    let found = (1..=STORMS).find_map(|seed| {
        let hit = catch_unwind(|| pages::one_at_a_time(&tempest::storm(seed).0)).err()?;
        Some((seed, hit.downcast_ref::<String>().cloned().unwrap_or_default()))
    });
    set_mutant(None);
    let (seed, how) = found.unwrap_or_else(|| panic!("{mutant:?} was not found in {STORMS} storms"));
    eprintln!("{mutant:?} found by seed {seed}: {how}");
}

#[test]
fn a_range_that_grants_actors_after_it_was_closed_is_found() {
    is_found_in_a_storm(Mutant::ClosedRangeGrants);
}

#[test]
fn a_range_that_is_claimed_before_its_parents_are_retired_is_found() {
    is_found_in_a_storm(Mutant::RangeBeforeItsParents);
}

#[test]
fn a_range_that_is_given_up_before_its_actors_have_ended_is_found() {
    is_found_in_a_storm(Mutant::RangeGivenUpFull);
}

const STORMS: u64 = 100;
const CLUSTER_SEEDS: u64 = 500;
const SEEDS: u64 = 60;
const LENGTH: Duration = Duration::from_secs(60);
