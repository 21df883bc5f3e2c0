//! Whether the crates could be published as they are: what each says of itself, what goes into its archive, and the licences of all
//! that they depend on.
//!
//! Archives are packed and not built, which takes seconds: that they compile is what all other steps show. Crates that need each
//! other are packed together, which cargo can do from 1.90 on; with an older one that part is left out, and said.
//!
//! Invariant: whatever is published needs nothing that is not.

use std::collections::BTreeSet;
use std::process::Command;

use crate::licences::{Allowed, LIST};
use crate::metadata::{self, Package};
use crate::servers::run_quietly;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// All of it, as a step of the test command.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    match check(workspace) {
        Ok(lines) => Outcome::Ok(lines),
        Err(why) => Outcome::failed(why),
    }
}

fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let packages = metadata::all(workspace)?;
    let list =
        std::fs::read_to_string(workspace.root().join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let licences = Allowed::parse(&list)?.judge(&packages).map_err(|faults| faults.join("; "))?;
    let own: Vec<Package> = packages.into_iter().filter(|package| package.own).collect();
    let faults: Vec<String> =
        own.iter().filter(|one| one.published).flat_map(|one| of_manifest(one, &own)).collect();
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    let order = order(&own)?;
    let packed = if packs_together(workspace) { pack(workspace, &own)? } else { TOO_OLD.to_owned() };
    Ok(vec![licences, packed, format!("they are published in this order: {}", order.join(", "))])
}

/// What is wrong with a manifest.
fn of_manifest(package: &Package, all: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("{}: {what}", package.name));
        }
    };
    must(package.licence.as_deref() == Some("MIT OR Apache-2.0"), "the licence is not the project's");
    must(
        package.description.as_ref().is_some_and(|text| !text.ends_with('.')),
        "no description, or one with a full stop",
    );
    must(package.readme.is_some(), "no readme");
    must(package.rust_version.is_some(), "no rust-version");
    must((1..=5).contains(&package.keywords.len()), "one to five keywords are needed");
    must(package.keywords.iter().all(|word| word.len() <= 20), "a keyword has more than 20 characters");
    must((1..=5).contains(&package.categories.len()), "one to five categories are needed");
    let known = package.docs_features.iter().all(|feature| package.features.contains(feature));
    must(known, "docs.rs is told a feature that is not there");
    for need in &package.needs {
        let published = all.iter().any(|one| one.name == need.name && one.published);
        must(need.versioned || need.for_tests, &format!("{} has a path without a version", need.name));
        must(published || !need.versioned && need.for_tests, &format!("{} is not published", need.name));
    }
    faults
}

/// The published packages, each after all that it needs. Needs of tests count if they bear a version, for then they are published.
fn order(all: &[Package]) -> Result<Vec<&str>, String> {
    let mut left: Vec<&Package> = all.iter().filter(|package| package.published).collect();
    let mut done: Vec<&str> = Vec::new();
    while !left.is_empty() {
        let ready = |package: &&Package| {
            package.needs.iter().filter(|need| need.versioned).all(|need| done.contains(&need.name.as_str()))
        };
        let (now, later): (Vec<&Package>, Vec<&Package>) = left.into_iter().partition(ready);
        if now.is_empty() {
            let names: Vec<&str> = later.iter().map(|package| package.name.as_str()).collect();
            return Err(format!("these need each other in a circle: {}", names.join(", ")));
        }
        done.extend(now.iter().map(|package| package.name.as_str()));
        left = later;
    }
    Ok(done)
}

fn packs_together(workspace: &Workspace) -> bool {
    let version = workspace.ask(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), &["--version"]);
    version.as_deref().and_then(minor).is_some_and(|minor| minor >= 90)
}

/// `cargo 1.95.0 (..)` is 95.
fn minor(version: &str) -> Option<u32> {
    version.split_whitespace().nth(1)?.split('.').nth(1)?.parse().ok()
}

/// Packs all archives and looks into them.
fn pack(workspace: &Workspace, own: &[Package]) -> Result<String, String> {
    let folder = workspace.target().join("package-check");
    // What an earlier run has left must not be taken for what this one has packed.
    drop(std::fs::remove_dir_all(folder.join("package")));
    let mut words = vec![
        "package",
        "--workspace",
        "--offline",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
        "--target-dir",
    ];
    let target = folder.to_string_lossy();
    words.push(&target);
    let private = own.iter().filter(|package| !package.published);
    words.extend(private.flat_map(|package| ["--exclude", &package.name]));
    run_quietly(&mut workspace.cargo_command(&words), "cargo package")?;
    let (mut faults, mut largest, mut count) = (Vec::new(), 0, 0);
    for package in own.iter().filter(|package| package.published) {
        let archive = folder.join("package").join(format!("{}-{}.crate", package.name, package.version));
        let size =
            std::fs::metadata(&archive).map_err(|error| format!("{}: {error}", archive.display()))?.len();
        let mut tar = Command::new("tar");
        let listed =
            tar.arg("-tvzf").arg(&archive).output().map_err(|error| format!("cannot run tar: {error}"))?;
        faults.extend(of_archive(&package.name, &String::from_utf8_lossy(&listed.stdout)));
        if size > LARGEST_ARCHIVE {
            faults.push(format!("{}: its archive has {size} bytes", package.name));
        }
        (largest, count) = (largest.max(size), count + 1);
    }
    let told = || format!("{count} crates can be packed, the largest archive has {} KiB", largest / 1024);
    if faults.is_empty() { Ok(told()) } else { Err(faults.join("; ")) }
}

/// What is wrong with an archive, from a listing of it by `tar -tv`.
fn of_archive(name: &str, listing: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut there = BTreeSet::new();
    for line in listing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, size, _, _, path, ..] = words.as_slice() else { continue };
        let path = path.split_once('/').map_or(*path, |(_, path)| path);
        there.insert(path);
        if size.parse::<u64>().is_ok_and(|size| size > LARGEST_FILE) {
            faults.push(format!("{name}: {path} has {size} bytes"));
        }
        let stray =
            path.split('/').any(|part| part == "target" || STRAY.iter().any(|end| part.ends_with(end)));
        if stray {
            faults.push(format!("{name}: {path} does not belong into it"));
        }
    }
    let missing = NEEDED.iter().filter(|needed| !there.contains(**needed));
    faults.extend(missing.map(|needed| format!("{name}: {needed} is missing")));
    faults
}

const NEEDED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
const STRAY: [&str; 5] = [".log", ".profraw", ".pem", ".key", ".crate"];
/// A file of source code is a tenth of that.
const LARGEST_FILE: u64 = 300 * 1024;
const LARGEST_ARCHIVE: u64 = 1024 * 1024;
const TOO_OLD: &str = "skipped: nothing was packed, for cargo packs a workspace together from 1.90 on";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Need;

    fn good(name: &str, needs: &[(&str, bool, bool)]) -> Package {
        let need = |&(name, for_tests, versioned): &(&str, bool, bool)| Need {
            name: name.to_owned(),
            for_tests,
            versioned,
        };
        Package {
            name: name.to_owned(),
            own: true,
            published: true,
            licence: Some("MIT OR Apache-2.0".to_owned()),
            description: Some("What it is".to_owned()),
            readme: Some("README.md".to_owned()),
            rust_version: Some("1.89".to_owned()),
            keywords: vec!["actor".to_owned()],
            categories: vec!["concurrency".to_owned()],
            needs: needs.iter().map(need).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn each_thing_that_a_manifest_lacks_is_said() {
        let whole = good("whole", &[]);
        assert_eq!(of_manifest(&whole, &[]), Vec::<String>::new());
        let breakages: [fn(&mut Package); 7] = [
            |it| it.licence = Some("MIT".to_owned()),
            |it| it.description = Some("Ends.".to_owned()),
            |it| it.readme = None,
            |it| it.rust_version = None,
            |it| it.keywords.clear(),
            |it| it.categories = vec!["x".to_owned(); 6],
            |it| it.docs_features = vec!["gone".to_owned()],
        ];
        for breakage in breakages {
            let mut broken = whole.clone();
            breakage(&mut broken);
            assert_eq!(of_manifest(&broken, &[]).len(), 1, "{broken:?}");
        }
    }

    #[test]
    fn what_is_published_needs_nothing_that_is_not() {
        let private = Package { published: false, ..good("private", &[]) };
        let all = [good("base", &[]), private];
        let faults = |needs: &[(&str, bool, bool)]| of_manifest(&good("top", needs), &all);
        assert_eq!(faults(&[("base", false, true), ("private", true, false)]), Vec::<String>::new());
        assert!(faults(&[("base", false, false)])[0].contains("without a version"));
        assert!(faults(&[("private", false, true)])[0].contains("not published"));
        assert!(faults(&[("private", true, true)])[0].contains("not published"));
    }

    #[test]
    fn needs_go_first_and_a_circle_is_an_error_unless_it_leads_through_tests_without_version() {
        let all = [good("top", &[("base", false, true)]), good("base", &[("top", true, false)])];
        assert_eq!(order(&all).unwrap(), ["base", "top"]);
        let all = [good("top", &[("base", false, true)]), good("base", &[("top", true, true)])];
        assert!(order(&all).unwrap_err().contains("circle"));
    }

    #[test]
    fn an_archive_needs_its_licences_and_holds_no_stray_and_no_large_file() {
        let line =
            |size: u64, path: &str| format!("-rw-r--r-- 0/0  {size} 2006-07-24 03:21 x-0.1.0/{path}\n");
        let whole: String = NEEDED.iter().map(|path| line(10, path)).collect();
        assert_eq!(of_archive("x", &whole), Vec::<String>::new());
        let without = whole.replace("LICENSE-MIT", "LICENCE");
        assert_eq!(of_archive("x", &without), ["x: LICENSE-MIT is missing"]);
        assert!(of_archive("x", &(whole.clone() + &line(LARGEST_FILE + 1, "src/a.rs")))[0].contains("bytes"));
        assert!(
            of_archive("x", &(whole.clone() + &line(1, "tests/node.pem")))[0].contains("does not belong")
        );
        assert!(of_archive("x", &(whole + &line(1, "target/a")))[0].contains("does not belong"));
    }

    #[test]
    fn the_version_of_cargo_is_read() {
        assert_eq!(minor("cargo 1.95.0 (f2d3ce0bd 2026-03-21)"), Some(95));
        assert_eq!(minor("cargo"), None);
    }
}
