use super::{Mutant, Ranges, SECOND, SPLIT, TAKEN_OVER};
use crate::check::{explore, hunt_for};

const SMALL: Ranges = Ranges { asks: 1, losses: 1, deaths: 1, managers: 2, broken: None };

fn broken(mutant: Mutant) -> Ranges {
    Ranges { broken: Some(mutant), ..SMALL }
}

/// Proves: R336
#[test]
fn no_two_owners_when_requests_are_lost_and_late() {
    explore(Ranges { deaths: 0, managers: 1, ..SMALL }).assert_clean_but(&[SECOND, TAKEN_OVER]);
}

/// Proves: R502
#[test]
fn no_two_owners_whatever_two_managers_do() {
    explore(Ranges { losses: 0, deaths: 0, ..SMALL }).assert_clean_but(&[TAKEN_OVER]);
}

#[test]
fn no_two_owners_when_a_node_dies() {
    explore(Ranges { asks: 0, ..SMALL }).assert_clean_but(&[SPLIT, SECOND]);
    explore(Ranges { losses: 0, managers: 1, ..SMALL }).assert_clean_but(&[SECOND]);
}

#[test]
fn mutant_40_taking_office_without_a_seal() {
    hunt_for(broken(Mutant::NoSeal), "old_managers_are_fenced").assert_broken("old_managers_are_fenced");
}

#[test]
fn mutant_41_save_without_version() {
    hunt_for(broken(Mutant::NoVersion), "no_two_owners").assert_broken("no_two_owners");
}

#[test]
fn mutant_42_claim_before_the_parents_are_retired() {
    hunt_for(broken(Mutant::NoParents), "no_two_owners").assert_broken("no_two_owners");
}

#[test]
fn mutant_43_parents_dropped_before_they_are_retired() {
    hunt_for(broken(Mutant::NoRetireCheck), "no_two_owners").assert_broken("no_two_owners");
}

#[test]
fn mutant_44_an_unanswered_save_counts_as_done() {
    hunt_for(broken(Mutant::UnknownIsDone), "done_is_in_force").assert_broken("done_is_in_force");
}
