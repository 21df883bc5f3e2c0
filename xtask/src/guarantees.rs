//! The joined table of `docs/guarantees.md`: every name in it must be the name of something that runs.
//!
//! A row is a guarantee; its columns name, in this order, rules of the contracts, invariants of the simulator, properties of
//! the models, and tests. A name that is nowhere in the sources of its column is an error, and so are an empty table and an
//! invariant of the simulator that stands in no row. A rule has the name of its conformance test, and must stand in the
//! documentation of its contract as well: so must those that are in no row ([`rules`]).

use std::path::{Path, PathBuf};

use crate::rules;
use crate::sources::{self, Source};
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Checks the table, as a step of the test command.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    match check(workspace.root()) {
        Ok(headline) => Outcome::Ok(vec![headline]),
        Err(why) => Outcome::failed(why),
    }
}

fn check(root: &Path) -> Result<String, String> {
    let page = root.join(PAGE);
    let text = std::fs::read_to_string(&page).map_err(|error| format!("cannot read {PAGE}: {error}"))?;
    let rows = rows(&text)?;
    let sources = sources::read(root)?;
    let mut faults: Vec<String> = rows.iter().flat_map(|row| row.unknown(&sources)).collect();
    faults.extend(left_out(&rows, &sources)?);
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    let names: usize = rows.iter().map(Row::names).sum();
    let rules = rules::check(&sources)?;
    Ok(format!(
        "{} guarantees are joined by {names} names that exist; {rules} rules are named by their contracts",
        rows.len()
    ))
}

/// One guarantee and what is named for it, column by column.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    guarantee: String,
    columns: Vec<Vec<String>>,
}

impl Row {
    /// A row of the table, unless the line is its head or the line below that.
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let guarantee = cells.next()?.to_owned();
        let columns: Vec<Vec<String>> = cells.map(names_in).collect();
        let is_row = columns.len() == COLUMNS.len() && columns.iter().any(|names| !names.is_empty());
        is_row.then_some(Self { guarantee, columns })
    }

    fn unknown<'a>(&'a self, sources: &'a [Source]) -> impl Iterator<Item = String> + 'a {
        COLUMNS.iter().zip(&self.columns).flat_map(move |(column, names)| {
            let unknown = names.iter().filter(|name| !column.knows(name, sources));
            unknown.map(|name| format!("{PAGE}: no {} is called {name} ({})", column.holds, self.guarantee))
        })
    }

    fn names(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }
}

/// What the names of a column are names of.
struct Column {
    holds: &'static str,
    below: &'static [&'static str],
    /// What stands around the name where it is defined.
    around: (&'static str, &'static str),
    /// Where the name must be written out as `*name*` as well.
    stated: &'static [&'static str],
}

impl Column {
    fn knows(&self, name: &str, sources: &[Source]) -> bool {
        let (before, after) = self.around;
        let stands = |text: &str, below: &[&str]| {
            let belongs = |path: &PathBuf| below.iter().any(|below| path.starts_with(below));
            sources.iter().any(|source| belongs(&source.path) && source.text.contains(text))
        };
        let is_stated = || self.stated.is_empty() || stands(&format!("*{name}*"), self.stated);
        stands(&format!("{before}{name}{after}"), self.below) && is_stated()
    }
}

const COLUMNS: [Column; 4] = [
    Column {
        holds: "rule of a contract",
        below: &["backends/conformance", "transport/conformance"],
        around: ("fn ", "("),
        stated: &["core/protocol/src/contract", "core/directory/src"],
    },
    Column { holds: "invariant of the simulator", below: &["sim/src"], around: ("\"", "\""), stated: &[] },
    Column { holds: "property of a model", below: &["tests/models"], around: ("\"", "\""), stated: &[] },
    Column {
        holds: "test",
        below: &["tests", "core", "src", "backends", "sim"],
        around: ("fn ", "("),
        stated: &[],
    },
];

fn rows(page: &str) -> Result<Vec<Row>, String> {
    let (_, section) = page.split_once(HEADING).ok_or(format!("{PAGE} has no section {HEADING:?}"))?;
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows: Vec<Row> =
        section.lines().filter(|line| line.starts_with('|')).filter_map(Row::parse).collect();
    if rows.is_empty() { Err(format!("the table of {PAGE} is empty")) } else { Ok(rows) }
}

/// The invariants of the simulator that stand for no guarantee.
fn left_out(rows: &[Row], sources: &[Source]) -> Result<Vec<String>, String> {
    let source = sources.iter().find(|source| source.path == Path::new(INVARIANTS));
    let names = source.map(|source| invariants_in(&source.text)).unwrap_or_default();
    if names.is_empty() {
        return Err(format!("{INVARIANTS} has no invariants"));
    }
    let is_joined = |name: &str| rows.iter().any(|row| row.columns[1].iter().any(|joined| joined == name));
    let missing = names.into_iter().filter(|name| !is_joined(name));
    Ok(missing.map(|name| format!("{PAGE}: the invariant {name} stands in no row")).collect())
}

/// The names that an enum gives its variants: `Self::Variant => "name",`.
fn invariants_in(source: &str) -> Vec<String> {
    let name = |line: &str| {
        let (variant, name) = line.trim().split_once(" => \"")?;
        variant.starts_with("Self::").then(|| name.split('"').next().map(str::to_owned)).flatten()
    };
    source.lines().filter_map(name).collect()
}

/// What stands between backticks.
fn names_in(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

const PAGE: &str = "docs/guarantees.md";
const INVARIANTS: &str = "sim/src/invariants.rs";
const HEADING: &str = "\n## What proves what\n";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# G\n\n## What proves what\n\n| it | rule | invariant | property | test |\n|---|---|---|---|---|\n\
                         | one | `claim` | `one_only` | – | `one`, `other` |\n\n## Next\n| no | `x` | `y` | `z` | `a` |\n";

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn only_rows_of_the_section_are_read() {
        let rows = rows(TABLE).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].guarantee.as_str(), rows[0].names()), ("one", 4));
    }

    #[test]
    fn names_that_are_nowhere_are_told() {
        let sources = [
            source("backends/conformance/src/a.rs", "pub fn claim() {}"),
            source("core/protocol/src/contract/a.rs", "/// - *claim*: one gets it."),
            source("sim/src/invariants.rs", "=> \"one_only\","),
            source("tests/a.rs", "fn one() {}"),
            source("benches/b.rs", "fn other() {}"),
        ];
        let row = &rows(TABLE).unwrap()[0];
        let unknown: Vec<String> = row.unknown(&sources).collect();
        assert_eq!(unknown, ["docs/guarantees.md: no test is called other (one)"]);
        let unstated: Vec<String> = row.unknown(&sources[..1]).take(1).collect();
        assert_eq!(unstated, ["docs/guarantees.md: no rule of a contract is called claim (one)"]);
    }

    #[test]
    fn an_invariant_that_stands_in_no_row_is_told() {
        let rows = rows(TABLE).unwrap();
        let named = |text: &str| source(INVARIANTS, text);
        let one = "            Self::OneOnly => \"one_only\",\n";
        assert_eq!(left_out(&rows, &[named(one)]), Ok(Vec::new()));
        let two = format!("{one}            Self::Lost => \"nothing_lost\",\n");
        let told = "docs/guarantees.md: the invariant nothing_lost stands in no row".to_owned();
        assert_eq!(left_out(&rows, &[named(&two)]), Ok(vec![told]));
        assert!(left_out(&rows, &[named("nothing")]).is_err() && left_out(&rows, &[]).is_err());
    }

    #[test]
    fn page_without_a_table_is_an_error() {
        assert!(rows("# G\n").is_err());
        assert!(rows("# G\n\n## What proves what\n\nnothing\n").is_err());
    }
}
