//! The table of lines that were once broken on purpose, to see a test object.
//!
//! It tells of the code as it is: a row names a file, what stands in it before the arrow, and tests. What is there no longer has
//! to be tried anew.

use std::path::Path;

use crate::sources::Source;

/// Every row of the page's table that does not fit the sources any more.
pub(super) fn stale(page: &str, sources: &[Source]) -> Vec<String> {
    let rows = page.split_once(HEADING).map_or("", |(_, section)| section).lines();
    let rows: Vec<Row<'_>> = rows.filter_map(Row::parse).collect();
    if rows.is_empty() {
        return vec!["the table of lines broken on purpose is empty".to_owned()];
    }
    rows.iter().flat_map(|row| row.faults(sources)).collect()
}

/// One row: which statement, what was broken, who objected.
struct Row<'a> {
    statement: &'a str,
    file: &'a str,
    /// What stood there, if the row says what became of it.
    line: Option<&'a str>,
    tests: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (statement, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (broken, tests) = rest.rsplit_once(" | ")?;
        let file = *in_ticks(broken).first()?;
        let line = broken.split_once('→').and_then(|(before, _)| in_ticks(before).last().copied());
        Some(Self { statement, file, line, tests: in_ticks(tests) })
    }

    fn faults(&self, sources: &[Source]) -> Vec<String> {
        let Some(source) = sources.iter().find(|source| source.path == Path::new(self.file)) else {
            return vec![format!("{}: {} does not exist", self.statement, self.file)];
        };
        let line = self.line.filter(|line| !source.text.contains(line));
        let line = line.map(|line| format!("{}: {} has no {line:?} any more", self.statement, self.file));
        let is_test =
            |name: &&&str| sources.iter().any(|source| source.text.contains(&format!("fn {name}(")));
        let tests = self.tests.iter().filter(|name| !is_test(name));
        line.into_iter()
            .chain(tests.map(|test| format!("{}: no test is called {test}", self.statement)))
            .collect()
    }
}

/// What stands between backticks.
fn in_ticks(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

const HEADING: &str = "\n## Broken on purpose\n";

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# R\n\n## Broken on purpose\n\n| requirement | line broken | test that objected |\n|---|---|---|\n\
        | R1 | `a.rs`: `f`: `x || y` → `true` | `holds` |\n| R2 | `a.rs`: `g` does nothing | `holds`, `too` |\n";

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn rows_that_fit_are_fine() {
        let sources = [source("a.rs", "if x || y {}"), source("t.rs", "fn holds() {} fn too() {}")];
        assert_eq!(stale(PAGE, &sources), [] as [&str; 0]);
    }

    #[test]
    fn files_lines_and_tests_that_are_gone_are_told() {
        let sources = [source("a.rs", "if x {}"), source("t.rs", "fn holds() {}")];
        assert_eq!(
            stale(PAGE, &sources),
            ["R1: a.rs has no \"x || y\" any more", "R2: no test is called too"]
        );
        assert_eq!(stale(PAGE, &[]), ["R1: a.rs does not exist", "R2: a.rs does not exist"]);
        assert_eq!(stale("# R\n", &[]).len(), 1);
    }
}
