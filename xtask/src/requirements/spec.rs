//! The numbered statements of `docs/requirements.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A numbered statement of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Statement {
    /// `R12`: what holds, unless a resolution overrules it.
    Requirement(u32),
    /// `C3`: what holds where the sources disagree.
    Resolution(u32),
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requirement(number) => write!(f, "R{number}"),
            Self::Resolution(number) => write!(f, "C{number}"),
        }
    }
}

/// All statements, in the layers in which the page lists them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) layers: Vec<Layer>,
    resolutions: BTreeSet<u32>,
    /// What is deliberately not so, and why.
    pub(super) void: BTreeMap<u32, String>,
}

/// A section of the page and the numbers in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) numbers: Vec<u32>,
}

impl Spec {
    /// Reads the page: `## NAME — title` opens a layer, ``- **R12** `A` `` is a statement of it; in the section `Void`
    /// the row `| R12 | why |` takes one back.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut spec = Self { layers: Vec::new(), resolutions: BTreeSet::new(), void: BTreeMap::new() };
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                let name = title.split('—').next().unwrap_or(title).trim().to_owned();
                spec.layers.push(Layer { name, numbers: Vec::new() });
            }
            spec.resolutions.extend(resolution(line));
            if spec.layers.last().is_some_and(|layer| layer.name == VOID) {
                spec.void.extend(taken_back(line));
            }
            let Some(number) = requirement(line) else { continue };
            if !seen.insert(number) {
                return Err(format!("R{number} is stated twice"));
            }
            let layer =
                spec.layers.last_mut().ok_or_else(|| format!("R{number} stands before any section"))?;
            layer.numbers.push(number);
        }
        Ok(spec)
    }

    /// Whether the page states this.
    pub(super) fn knows(&self, statement: Statement) -> bool {
        match statement {
            Statement::Requirement(number) => self.layers.iter().any(|layer| layer.numbers.contains(&number)),
            Statement::Resolution(number) => self.resolutions.contains(&number),
        }
    }

    /// The numbers of all requirements.
    pub(super) fn requirements(&self) -> BTreeSet<u32> {
        self.layers.iter().flat_map(|layer| layer.numbers.iter().copied()).collect()
    }
}

/// The number of the resolution that this row of a table is: `| C3 | ...`.
fn resolution(line: &str) -> Option<u32> {
    line.strip_prefix("| C")?.split_once(" |")?.0.parse().ok()
}

/// The requirement that this row takes back, and why.
fn taken_back(line: &str) -> Option<(u32, String)> {
    let (number, why) = line.strip_prefix("| R")?.split_once(" | ")?;
    let why = why.trim_end().strip_suffix('|')?.trim();
    Some((number.parse().ok()?, why.to_owned())).filter(|_| !why.is_empty())
}

/// The number of the requirement that this line is.
fn requirement(line: &str) -> Option<u32> {
    let (number, rest) = line.strip_prefix("- **R")?.split_once("** `")?;
    let (kind, _) = rest.split_once('`')?;
    (kind.chars().count() == 1).then(|| number.parse().ok()).flatten()
}

const VOID: &str = "Void";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_sorted_into_their_layers() {
        let text = "# Requirements\n`R9` is cited\n\n## ID — Identity & addresses\n- **R1** `A` [003:20] One.\n\
                    - **R2** `A` Two.\n## MSG — Messages\n- **R3** `B` Three.\n- R4 is no statement\n| C3 | this | that |\n";
        let spec = Spec::parse(text).unwrap();
        let layer = |name: &str, numbers: &[u32]| Layer { name: name.to_owned(), numbers: numbers.to_vec() };
        assert_eq!(spec.layers, [layer("ID", &[1, 2]), layer("MSG", &[3])]);
        assert!(spec.knows(Statement::Resolution(3)) && !spec.knows(Statement::Resolution(1)));
    }

    #[test]
    fn only_rows_of_their_section_with_a_reason_take_statements_back() {
        let rows = "| R1 | asks too much |\n| R2 | |\n";
        let spec = Spec::parse(&format!("## ID\n- **R1** `A` One.\n## Void\n{rows}")).unwrap();
        assert_eq!(spec.void, BTreeMap::from([(1, "asks too much".to_owned())]));
        assert_eq!(Spec::parse(&format!("## Broken on purpose\n{rows}")).unwrap().void, BTreeMap::new());
    }

    #[test]
    fn number_stated_twice_is_refused() {
        let twice = Spec::parse("## ID\n- **R1** `A` One.\n- **R1** `A` Again.\n");
        assert_eq!(twice, Err("R1 is stated twice".to_owned()));
    }
}
