//! Crates build upon those below them and upon nothing else.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

/// Each crate, and what of the project it may be built upon: machines first, then what is made of them.
const LAYERS: [(&str, &[&str]); 9] = [
    ("core/protocol", &[]),
    ("core/macros", &[]),
    ("transport/tls", &["protocol"]),
    ("transport/memory", &["protocol"]),
    ("transport/tcp", &["protocol", "tls"]),
    ("transport/quic", &["protocol", "tls"]),
    ("core/directory", &["protocol"]),
    ("backends/embedded", &["protocol", "directory"]),
    ("core/runtime", &["protocol", "directory"]),
];

/// Messages, transports, detectors and stores can be built, used and tested without a node, and a node without any one
/// transport or backend.
///
/// Proves: R481, R483
#[test]
fn no_crate_is_built_upon_one_above_it() {
    for (name, allowed) in LAYERS {
        let allowed: BTreeSet<String> = allowed.iter().map(|&name| name.to_owned()).collect();
        let found = dependencies(name);
        assert!(found.is_subset(&allowed), "{name} is built upon {found:?}");
    }
    assert!(dependencies("core/runtime").contains("protocol"), "dependencies are found");
}

/// What of the project a crate is built upon, tests left out.
fn dependencies(name: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = std::fs::read_to_string(root.join(name).join("Cargo.toml")).unwrap();
    let sections = manifest.split("\n[").filter(|section| section.starts_with("dependencies]"));
    let names = sections.flat_map(str::lines).filter_map(|line| line.strip_prefix("archipelago-"));
    names.map(|line| line.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()).collect()
}
