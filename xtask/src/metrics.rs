//! The page of metrics: what the code counts stands there, and nothing else.
//!
//! That the page is what the library describes to recorders, and that running nodes show nothing else, is for tests of its own.

use std::collections::BTreeSet;
use std::path::Path;

use crate::sources::{self, Source};
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Compares the table with the code, as a step of the test command.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    match check(workspace.root()) {
        Ok(headline) => Outcome::Ok(vec![headline]),
        Err(why) => Outcome::failed(why),
    }
}

fn check(root: &Path) -> Result<String, String> {
    let page =
        std::fs::read_to_string(root.join(PAGE)).map_err(|error| format!("cannot read {PAGE}: {error}"))?;
    let (listed, counted) = (listed(&page), counted(&sources::read(root)?));
    let missing = counted.difference(&listed).map(|name| format!("{PAGE} does not list {name}"));
    let gone = listed.difference(&counted).map(|name| format!("{PAGE} lists {name}, which nothing counts"));
    let faults: Vec<String> = missing.chain(gone).collect();
    if faults.is_empty() {
        Ok(format!("{} metrics are listed in {PAGE}", listed.len()))
    } else {
        Err(faults.join("; "))
    }
}

/// The names in the first column of the table.
fn listed(page: &str) -> BTreeSet<String> {
    let name = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    page.lines().filter_map(name).filter(|name| name.starts_with(PREFIX)).collect()
}

/// The names in the code that users run.
fn counted(sources: &[Source]) -> BTreeSet<String> {
    let is_ours = |path: &Path| {
        ["src", "core", "backends", "transport", "ops"].iter().any(|below| path.starts_with(below))
    };
    let is_tests = |path: &Path| path.components().any(|part| part.as_os_str() == "tests");
    let counts = |path: &Path| is_ours(path) && !is_tests(path) && path != Path::new(DESCRIBED);
    let ours = sources.iter().filter(|source| counts(&source.path));
    ours.flat_map(|source| names_in(&source.text)).collect()
}

/// Every `"archipelago_.."` of small letters.
fn names_in(text: &str) -> impl Iterator<Item = String> + '_ {
    let literals = text.split('"').skip(1);
    let is_name = |text: &&str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    literals.filter(|text| text.starts_with(PREFIX)).filter(is_name).map(str::to_owned)
}

const PAGE: &str = "docs/metrics.md";
/// Where the library describes its metrics: to be named there is not to be counted.
const DESCRIBED: &str = "core/runtime/src/described.rs";
const PREFIX: &str = concat!("archi", "pelago_");

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.replace("@", PREFIX) }
    }

    #[test]
    fn names_are_found_where_they_are_counted_and_where_they_are_listed() {
        let sources = [
            source(
                "core/runtime/src/meters.rs",
                "counter!(\"@messages_total\", \"kind\" => kind); \"@Runtime\"",
            ),
            source("core/runtime/tests/a.rs", "\"@never\""),
            source("benches/a.rs", "\"@never\""),
            source(DESCRIBED, "\"@never\""),
        ];
        let name = format!("{PREFIX}messages_total");
        assert_eq!(counted(&sources).into_iter().collect::<Vec<_>>(), std::slice::from_ref(&name));
        let page = format!("| metric | type |\n| `{name}` | counter |\n| `other` | `{PREFIX}no` |\n");
        assert_eq!(listed(&page).into_iter().collect::<Vec<_>>(), [name]);
    }
}
