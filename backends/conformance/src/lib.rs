//! The suites that every backend of archipelago passes: one named test per rule of Store, Directory, RoutingTable,
//! ControlPlane, StateStore and Homes.
//!
//! A backend writes one function that makes a fresh store and runs a rule on it, and hands it to the macro:
//!
//! ```text
//! fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
//!     runtime().block_on(async { rule(fresh_store().await).await })
//! }
//! archipelago_backend_conformance::store_conformance!(run, restart: run_on_a_server_of_its_own);
//! ```
//!
//! A harness that can restart its server says so, as here, and the rules about restarts are run, too; one that cannot says
//! why, and they are reported as ignored, never as passed.
//!
//! The rules are plain async functions in [`store_rules`], [`directory_rules`], [`routing_table_rules`],
//! [`control_plane_rules`], [`state_store_rules`], [`homes_rules`] and [`restart_rules`]; each panics when its rule is broken. Those about time, and those that wait for something, go
//! by the timer that the fixture was made with, and give up by themselves; the rules of the store alone, which has no
//! timer, wait for what a watch must deliver: `run` puts a limit on that. None assumes that a watch is immediate.
//!
//! [`FaultyStore`] is the simulated store that loses replies and applies writes late, and [`World`] runs the real session
//! machines above it. [`linearizability`] records what concurrent clients are answered, and checks that one order
//! explains it.
//!
//! This crate is for tests, so it panics where a library would answer an error.

mod clock;
pub mod control_plane_rules;
pub mod directory_rules;
mod faulty;
pub mod homes_rules;
pub mod linearizability;
pub mod restart_rules;
mod rng;
pub mod routing_table_rules;
pub mod state_store_rules;
pub mod store_rules;
mod waiting;
mod world;

pub use clock::{ImmediateTimer, ManualTimer};
pub use faulty::{Faults, FaultyStore};
pub use rng::Rng;
pub use world::{Plan, Summary, World};

/// Makes one test per rule of [`Store`](archipelago_directory::Store), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F)`, which
/// runs the rule on a store of its own. What follows says what becomes of the rules about a restart of the server:
///
/// - `restart: run_restarting`: they are run, by another function in scope, which takes
///   `impl FnOnce(RestartFixture) -> F` and runs the rule on a server of its own
///   ([`RestartFixture`](restart_rules::RestartFixture)).
/// - `cannot_restart: "why"`: the harness has no power over its server. Each of them is reported as ignored, with the reason.
///   So it is if nothing follows.
/// - `no_server`: the engine lives and dies with its clients, so there is nothing to restart.
#[macro_export]
macro_rules! store_conformance {
    ($run:ident) => {
        $crate::store_conformance!($run, cannot_restart: "this harness was given no way to restart the server");
    };
    ($run:ident, restart: $restarting:ident) => {
        $crate::store_conformance!($run, no_server);
        $crate::__restart_rules! { run $restarting }
    };
    ($run:ident, cannot_restart: $why:literal) => {
        $crate::store_conformance!($run, no_server);
        $crate::__restart_rules! { ignore $why }
    };
    ($run:ident, no_server) => {
        $crate::__rules! { $run, store_conformance, store_rules:
            cas_is_exclusive, conflict_changes_nothing, version_grows, version_grows_across_deletes, reads_own_writes,
            delete_names_its_version, delete_all_spares_newer_records, list_by_tag, list_then_watch_misses_nothing,
            watch_ignores_other_spaces, guard_holds, cancel_safe,
            every_creation_has_one_winner, two_tags_one_winner, concurrent_additions_are_all_kept,
            a_delete_and_a_write_exclude_each_other, listing_shows_no_former_owner, spaces_are_apart,
            keys_are_told_apart, values_are_kept_as_they_are, a_time_to_live_is_only_a_hint,
            a_watch_resumes_after_any_change, every_watcher_is_told_the_same,
        }
    };
}

/// Makes one test per rule of [`Directory`](archipelago_protocol::contract::Directory), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F)`, which runs the
/// rule on a [`Fixture`](directory_rules::Fixture) of its own.
#[macro_export]
macro_rules! directory_conformance {
    ($run:ident) => {
        $crate::__rules! { $run, directory_conformance, directory_rules:
            open_creates_only, beat_names_its_version, end_names_its_version, ended_is_final, revoked_stops_beats,
            close_is_immediate, pin_writes_absence_down, sessions_lists_the_announced,
            claim_is_exclusive, claim_needs_an_ended_owner, claim_recasts_its_own, claim_tells_placed_from_raced,
            claim_refuses_a_lost_session, generation_grows, release_names_its_generation,
            transfer_names_its_generation, reassert_names_its_generation, reassert_keeps_the_tenure,
            lookup_hides_the_ended, listings_by_node_and_kind, evict_needs_an_ended_session,
            evict_spares_newer_records, collect_waits_for_the_last_record, cancel_safe,
            watch_starts_with_a_snapshot, watch_misses_nothing, watch_resumes_from_a_revision,
            watch_survives_compaction, watch_of_a_node_follows_its_records, watch_tells_who_joined_and_left,
            every_race_has_one_winner, every_takeover_has_one_winner, a_race_with_the_owner_leaves_one_owner,
            eviction_spares_claims_that_go_on, a_claim_answered_late_grants_nothing, generation_grows_across_deletes,
            listing_shows_no_former_owner, ownership_is_linearizable,
            session_end_is_judged_on_the_observers_clock, a_silent_stop_frees_its_keys_after_the_wait,
            a_farewell_needs_no_wait, a_vanished_lease_is_waited_for_like_a_silent_one,
            range_claim_waits_for_its_parents, range_claim_retires_what_nobody_owns,
            children_have_greater_generations,
            ranges_are_claimed_with_their_parents, retire_names_its_generation, retired_is_final,
            retired_is_no_owner, children_and_parent_are_never_owned_together, layout_is_settled_once,
        }
    };
}

/// Makes one test per rule of [`RoutingTable`](archipelago_protocol::contract::RoutingTable), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F)`,
/// which runs the rule on a [`RoutingTableFixture`](routing_table_rules::RoutingTableFixture) of its own.
#[macro_export]
macro_rules! routing_table_conformance {
    ($run:ident) => {
        $crate::__rules! { $run, routing_table_conformance, routing_table_rules:
            load_of_nothing_is_none, save_names_its_version, table_version_grows, save_is_exclusive,
            stale_manager_is_refused, seal_fences_earlier_managers, save_keeps_ranges_apart,
            split_waits_for_retired_parents, a_split_hands_the_keys_to_the_children, kinds_are_apart, table_is_json,
            table_size_is_bounded, routing_table_is_cancel_safe, table_watch_starts_with_the_current_table,
            table_watch_tells_every_table, table_watch_survives_compaction, source_tells_the_current_table_first,
            source_never_goes_back,
        }
    };
}

/// Makes one test per rule of [`ControlPlane`](archipelago_protocol::contract::ControlPlane), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F)`,
/// which runs the rule on a [`ControlPlaneFixture`](control_plane_rules::ControlPlaneFixture) of its own.
#[macro_export]
macro_rules! control_plane_conformance {
    ($run:ident) => {
        $crate::__rules! { $run, control_plane_conformance, control_plane_rules:
            register_creates_or_takes_over, heartbeat_names_its_version, record_version_grows,
            set_state_follows_the_lifecycle, set_state_is_idempotent, stale_leader_is_refused,
            record_cas_is_exclusive, registrations_race_to_the_greatest_epoch, datacenter_record_is_json,
            control_plane_is_cancel_safe, list_active_holds_the_active_only, list_active_is_sorted_by_version,
            list_active_excludes_ended_leases, an_outage_ends_no_lease, control_plane_watch_starts_with_a_snapshot,
            control_plane_watch_misses_nothing, control_plane_watch_resumes, control_plane_watch_survives_compaction,
        }
    };
}

/// Makes one test per rule of [`StateStore`](archipelago_protocol::contract::StateStore), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F)`, which
/// runs the rule on a [`StateStoreFixture`](state_store_rules::StateStoreFixture) of its own.
#[macro_export]
macro_rules! state_store_conformance {
    ($run:ident) => {
        $crate::__rules! { $run, state_store_conformance, state_store_rules:
            load_of_nothing_is_none, load_shows_the_last_save, load_fences_before_it_reads, stale_load_is_refused,
            stale_save_is_refused, stale_delete_is_refused, same_generation_goes_on, delete_keeps_the_fence,
            a_save_given_up_never_overtakes, actors_are_apart, too_large_is_refused_before_it_is_sent,
            state_store_is_cancel_safe,
        }
    };
}

/// Makes one test per rule of [`Homes`](archipelago_protocol::contract::Homes), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F)`, which runs
/// the rule on a [`HomesFixture`](homes_rules::HomesFixture) of its own.
#[macro_export]
macro_rules! homes_conformance {
    ($run:ident) => {
        $crate::__rules! { $run, homes_conformance, homes_rules:
            no_record_is_none, home_is_settled_once, settling_has_one_winner, maker_takes_back, joined_home_stays,
            homes_are_apart, home_record_is_json, homes_are_cancel_safe,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __rules {
    ($run:ident, $suite:ident, $rules:ident: $($rule:ident),+ $(,)?) => {
        mod $suite {
            $(
                #[test]
                fn $rule() {
                    super::$run($crate::$rules::$rule);
                }
            )+
        }
    };
}

/// The rules about a restart, run or ignored.
#[doc(hidden)]
#[macro_export]
macro_rules! __restart_rules {
    ($do:ident $with:tt) => {
        $crate::__restart_rules! { $do $with, restart_conformance, restart_rules:
            watch_survives_a_restart, version_grows_across_a_restart, acknowledged_writes_survive_a_restart,
            directory_watch_survives_a_restart, control_plane_watch_survives_a_restart,
        }
    };
    (run $run:ident, $suite:ident, $rules:ident: $($rule:ident),+ $(,)?) => {
        $crate::__rules! { $run, $suite, $rules: $($rule),+ }
    };
    (ignore $why:literal, $suite:ident, $rules:ident: $($rule:ident),+ $(,)?) => {
        mod $suite {
            $(
                #[test]
                #[ignore = $why]
                fn $rule() {
                    panic!("{}", $why);
                }
            )+
        }
    };
}
