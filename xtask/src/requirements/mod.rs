//! `cargo xtask requirements`: which statements of `docs/requirements.md` no test cites.
//!
//! [`spec`] reads the statements, [`citations`] reads what the tests cite, this module compares the two. A number
//! that is cited and does not exist is an error; a statement that nobody cites is only told, unless `--min` asks
//! for more.

mod broken;
mod citations;
mod spec;

use std::collections::BTreeSet;
use std::path::Path;

use citations::Citations;
use spec::{Spec, Statement};

use crate::sources::{self, Source};
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Prints the coverage. Fails on unknown numbers, and with `--min N` when fewer than N are cited.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool, String> {
    let min = match arguments {
        [] => 0,
        [flag, number] if flag == "--min" => number.parse().map_err(|_| format!("--min {number:?}"))?,
        _ => return Err("usage: cargo xtask requirements [--min N]".to_owned()),
    };
    let coverage = Coverage::read(workspace.root())?;
    println!("{}", coverage.text());
    let cited = coverage.cited().len();
    if cited < min {
        println!("at least {min} must be cited");
    }
    Ok(coverage.errors().is_empty() && cited >= min)
}

/// The same as a step of the test command.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    match Coverage::read(workspace.root()) {
        Err(message) => Outcome::failed(message),
        Ok(coverage) if coverage.errors().is_empty() => {
            println!("{}", coverage.text());
            Outcome::Ok(vec![coverage.headline()])
        }
        Ok(coverage) => {
            println!("{}", coverage.text());
            Outcome::failed(coverage.errors().join("; "))
        }
    }
}

/// Statements and citations side by side.
struct Coverage {
    spec: Spec,
    citations: Citations,
    /// What the page tells of lines broken on purpose that is not so any more.
    stale: Vec<String>,
}

impl Coverage {
    fn read(root: &Path) -> Result<Self, String> {
        let page = root.join("docs/requirements.md");
        let text =
            std::fs::read_to_string(&page).map_err(|e| format!("cannot read {}: {e}", page.display()))?;
        let (mut citations, sources) = (Citations::default(), sources::read(root)?);
        for Source { path, text } in &sources {
            citations.read(&path.to_string_lossy().replace('\\', "/"), text);
        }
        Ok(Self { spec: Spec::parse(&text)?, citations, stale: broken::stale(&text, &sources) })
    }

    fn cited(&self) -> BTreeSet<u32> {
        let cited = self.citations.statements();
        let is_cited = |number: &u32| cited.contains(&Statement::Requirement(*number));
        self.spec.requirements().into_iter().filter(is_cited).collect()
    }

    fn errors(&self) -> Vec<String> {
        let unknown = self.citations.cited.iter().filter(|citation| !self.spec.knows(citation.statement));
        let unknown = unknown
            .map(|citation| format!("{} cites {}, which does not exist", citation.place, citation.statement));
        let unreadable =
            self.citations.unreadable.iter().map(|place| format!("{place} cites nothing readable"));
        let (stated, cited) = (self.spec.requirements(), self.cited());
        let void = self.spec.void.keys().filter_map(|number| {
            let cited = cited.contains(number).then_some("cited");
            let but = if stated.contains(number) { cited } else { Some("not stated") };
            but.map(|but| format!("R{number} is void, but {but}"))
        });
        unknown.chain(unreadable).chain(void).chain(self.stale.iter().cloned()).collect()
    }

    fn headline(&self) -> String {
        let (cited, all) = (self.cited().len(), self.spec.requirements().len());
        let void = match self.spec.void.len() {
            0 => String::new(),
            void => format!(", {void} void"),
        };
        format!("{cited} of {all} requirements are cited by a test{void}")
    }

    fn text(&self) -> String {
        let mut lines = self.errors();
        for place in &self.citations.idle {
            lines.push(format!("{place}: a citation that is not above a test that runs"));
        }
        lines.push(self.headline());
        lines.extend(self.spec.void.iter().map(|(number, why)| format!("  R{number} is void: {why}")));
        let cited = self.cited();
        let is_open = |number: &&u32| !cited.contains(number) && !self.spec.void.contains_key(number);
        for layer in &self.spec.layers {
            let left: Vec<String> = layer.numbers.iter().filter(is_open).map(|n| format!("R{n}")).collect();
            if !left.is_empty() {
                lines.push(format!("  {}, not cited: {}", layer.name, left.join(" ")));
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## ID — Identity\n- **R1** `A` [1:1] One.\n- **R2** `V` [1:2] Two.\n";

    fn coverage(file: &str, text: &str) -> Coverage {
        let mut citations = Citations::default();
        citations.read(file, &text.replace("CITES", citations::MARK));
        Coverage { spec: Spec::parse(PAGE).unwrap(), citations, stale: Vec::new() }
    }

    #[test]
    fn what_no_test_cites_is_listed_by_layer() {
        let coverage = coverage("tests/a.rs", "/// CITES R2\n#[test]\nfn two() {}\n");
        assert!(coverage.errors().is_empty());
        assert_eq!(coverage.text(), "1 of 2 requirements are cited by a test\n  ID, not cited: R1");
    }

    fn with_void(mut coverage: Coverage, number: u32) -> Coverage {
        coverage.spec.void.insert(number, "nobody needs it".to_owned());
        coverage
    }

    #[test]
    fn what_is_void_is_counted_apart_with_its_reason() {
        let coverage = with_void(coverage("tests/a.rs", "/// CITES R2\n#[test]\nfn two() {}\n"), 1);
        assert!(coverage.errors().is_empty());
        let told = "1 of 2 requirements are cited by a test, 1 void\n  R1 is void: nobody needs it";
        assert_eq!(coverage.text(), told);
    }

    #[test]
    fn what_is_void_is_neither_cited_nor_unheard_of() {
        let cites = "/// CITES R2\n#[test]\nfn two() {}\n";
        assert_eq!(with_void(coverage("tests/a.rs", cites), 2).errors(), ["R2 is void, but cited"]);
        assert_eq!(with_void(coverage("tests/a.rs", cites), 9).errors(), ["R9 is void, but not stated"]);
    }

    #[test]
    fn citation_of_a_statement_that_does_not_exist_is_an_error() {
        let coverage = coverage("tests/a.rs", "\n/// CITES R1, R7\n#[test]\nfn one() {}\n");
        assert_eq!(coverage.errors(), ["tests/a.rs:2 cites R7, which does not exist"]);
    }

    #[test]
    fn citation_without_a_number_is_an_error() {
        let coverage = coverage("tests/a.rs", "/// CITES the first one\n#[test]\nfn one() {}\n");
        assert_eq!(coverage.errors(), ["tests/a.rs:1 cites nothing readable"]);
    }
}
