//! The committed corpus, and changed inputs, through every decoder that reads bytes from a peer.

mod mutator;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use archipelago_corpus::memory::{Counting, peak_of, within};
use archipelago_corpus::{TARGETS, Target};
use mutator::Mutator;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The inputs of a target, by name.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = data().join(target.name);
    names_in(&folder)
        .into_iter()
        .map(|name| (name.clone(), fs::read(folder.join(name)).expect("it can be read")))
        .collect()
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| entry.expect("it can be listed").file_name().into_string().expect("a plain name"))
        .collect()
}

/// Gives `input` to a target; if that panics, the error says which input it was.
fn check(target: &Target, origin: &str, input: &[u8]) -> Result<bool, String> {
    let checked = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    checked.map_err(|_| format!("{} breaks a rule with {origin}: {}", target.name, input.escape_ascii()))
}

/// Looks at every target, whatever became of the ones before, and fails if one did.
fn each_target(look: impl Fn(&Target) -> Result<(), String>) {
    let failed: Vec<String> = TARGETS.iter().filter_map(|target| look(target).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// How many of the inputs make sense.
fn understood(target: &Target, inputs: &[(String, Vec<u8>)]) -> Result<usize, String> {
    inputs.iter().try_fold(0, |count, (name, input)| Ok(count + usize::from(check(target, name, input)?)))
}

#[test]
fn every_target_has_a_corpus_and_a_fuzz_target_and_nothing_else_has() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names_in(&data()), targets);
    let programs = names_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets"));
    assert_eq!(programs, targets.iter().map(|name| format!("{name}.rs")).collect());
}

#[test]
fn every_input_of_the_corpus_keeps_the_rules_and_some_of_them_make_sense() {
    each_target(|target| {
        let inputs = corpus(target);
        match understood(target, &inputs)? {
            0 => Err(format!("{}: no input makes sense", target.name)),
            all if all == inputs.len() => Err(format!("{}: every input makes sense", target.name)),
            _ => Ok(()),
        }
    });
}

#[test]
fn the_corpus_is_small() {
    let sizes = TARGETS.iter().flat_map(|target| corpus(target)).map(|(_, input)| input.len());
    let size: usize = sizes.sum();
    assert!(size < MOST_BYTES, "{size} bytes");
}

/// The seeds are made anew from good values: when a format changes, the corpus must follow.
#[test]
fn new_seeds_keep_the_rules_and_some_make_sense() {
    each_target(|target| {
        let seeds: Vec<_> =
            (target.seeds)().into_iter().map(|seed| ("a new seed".to_owned(), seed)).collect();
        let good = understood(target, &seeds)?;
        if good > 0 { Ok(()) } else { Err(format!("{}: no seed makes sense", target.name)) }
    });
}

#[test]
fn changed_inputs_keep_the_rules() {
    each_target(|target| {
        let inputs: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, input)| input).collect();
        let mut mutator = Mutator::new(SEED, &inputs);
        (0..target.rounds)
            .try_for_each(|round| check(target, &format!("changed input {round}"), &mutator.next()).map(drop))
    });
}

#[test]
fn memory_is_counted() {
    let (kept, peak) = peak_of(|| {
        drop(vec![1_u8; 3 << 20]);
        vec![2_u8; 1 << 20]
    });
    assert_eq!((kept.len(), peak), (1 << 20, 3 << 20));
    assert!(catch_unwind(|| within(1_000, (2, 100), || vec![3_u8; 2_101])).is_err());
    within(1_000, (2, 100), || vec![3_u8; 2_100]);
}

const MOST_BYTES: usize = 300_000;
const SEED: u64 = 1;
