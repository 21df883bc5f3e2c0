//! The suites that every backend of archipelago passes: one named test per rule of Store and Directory.
//!
//! A backend writes one function that makes a fresh store and runs a rule on it, and hands it to the macro:
//!
//! ```text
//! fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
//!     runtime().block_on(async { rule(fresh_store().await).await })
//! }
//! archipelago_backend_conformance::store_conformance!(run);
//! ```
//!
//! The rules are plain async functions in [`store_rules`] and [`directory_rules`]; each panics when its rule is broken.
//! Some wait for what a watch must deliver: `run` puts a limit on that. [`FaultyStore`] is the simulated store that
//! loses replies and applies writes late, and [`World`] runs the real session machines above it.
//!
//! This crate is for tests, so it panics where a library would answer an error.

mod clock;
pub mod directory_rules;
mod faulty;
mod rng;
pub mod store_rules;
mod world;

pub use clock::{ImmediateTimer, ManualTimer};
pub use faulty::{Faults, FaultyStore};
pub use rng::Rng;
pub use world::{Plan, Summary, World};

/// Makes one test per rule of [`Store`](archipelago_directory::Store), each named like its rule.
///
/// Takes the name of a function in scope, `fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F)`, which
/// runs the rule on a store of its own.
#[macro_export]
macro_rules! store_conformance {
    ($run:ident) => {
        $crate::__rules! { $run, store_conformance, store_rules:
            cas_is_exclusive, conflict_changes_nothing, version_grows, version_grows_across_deletes, reads_own_writes,
            delete_names_its_version, delete_all_spares_newer_records, list_by_tag, list_then_watch_misses_nothing,
            watch_ignores_other_spaces, guard_holds, cancel_safe,
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
