//! What the tests cite: the lines that begin with [`MARK`] in the comment above a test.
//!
//! A citation counts in a file of tests, examples, conformance suites or the simulator, and elsewhere
//! directly above a test. It does not count above an ignored test, nor in a benchmark: nothing runs those for every change.

use std::collections::BTreeSet;

use super::spec::Statement;

/// What begins a citation. Put together here, so that this program does not cite by accident.
pub(super) const MARK: &str = concat!("Pro", "ves:");

/// Everything cited so far.
#[derive(Debug, Default)]
pub(super) struct Citations {
    pub(super) cited: Vec<Citation>,
    /// Places that cite where no test runs.
    pub(super) idle: Vec<String>,
    /// Places that cite without a number, or a range that no page could hold.
    pub(super) unreadable: Vec<String>,
}

/// One statement, cited at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Citation {
    pub(super) statement: Statement,
    pub(super) place: String,
}

impl Citations {
    /// Reads one source file; `file` is its path from the root, with slashes.
    pub(super) fn read(&mut self, file: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some((_, begin)) = line.split_once(MARK) else { continue };
            let place = format!("{file}:{}", at + 1);
            let (cited, end) = whole_citation(begin, &lines, at + 1);
            let below = below(&lines, end);
            if !(is_test_file(file) || is_above_test(&below)) || below.contains("#[ignore") {
                self.idle.push(place);
                continue;
            }
            match statements(&cited) {
                Some(statements) => {
                    let citation = |statement| Citation { statement, place: place.clone() };
                    self.cited.extend(statements.into_iter().map(citation));
                }
                None => self.unreadable.push(place),
            }
        }
    }

    pub(super) fn statements(&self) -> BTreeSet<Statement> {
        self.cited.iter().map(|citation| citation.statement).collect()
    }
}

/// The citation with the comment lines it runs on to, and the index of the first line after it.
fn whole_citation(begin: &str, lines: &[&str], mut next: usize) -> (String, usize) {
    let mut whole = begin.to_owned();
    while let Some(line) = lines.get(next) {
        let runs_on = [",", "and", "–", "-"].iter().any(|end| whole.trim_end().ends_with(end));
        let Some(comment) = line.trim_start().strip_prefix("//").filter(|_| runs_on) else { break };
        whole.push(' ');
        whole.push_str(comment.trim_start_matches(['/', '!', ' ']));
        next += 1;
    }
    (whole, next)
}

/// What stands between the citation and the body of the function below it.
fn below(lines: &[&str], from: usize) -> String {
    let end = lines.len().min(from + 14);
    let text = lines[from.min(end)..end].join("\n");
    text.split("{").next().unwrap_or_default().to_owned()
}

fn is_test_file(file: &str) -> bool {
    let inside = |directory: &str| format!("/{file}").contains(&format!("/{directory}/"));
    let at_root = |directory: &str| file.starts_with(&format!("{directory}/"));
    inside("tests")
        || file.contains("/conformance/")
        || file.ends_with("/tests.rs")
        || at_root("examples")
        || at_root("sim")
}

/// An attribute such as `#[test]` or `#[actix::test]`, or a `proptest!` block.
fn is_above_test(below: &str) -> bool {
    let attribute = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let path = &rest[..end];
        path.ends_with("test") || path.contains("test:") || path.starts_with("rstest")
    };
    below.contains("proptest!") || below.split("#[").skip(1).any(attribute)
}

/// The statements in `R1, R3-R5, R7–9, C53`; none if there is none or a range makes no sense.
fn statements(text: &str) -> Option<Vec<Statement>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['R', 'C']) {
        let statement =
            if rest[at..].starts_with('R') { Statement::Requirement } else { Statement::Resolution };
        let (letter, behind) = rest[at..].split_at(1);
        rest = behind;
        let Some((first, after)) = number(behind) else { continue };
        let (last, after) = range_end(letter, after).unwrap_or((first, after));
        if last < first || last - first > LONGEST_RANGE {
            return None;
        }
        found.extend((first..=last).map(statement));
        rest = after;
    }
    (!found.is_empty()).then_some(found)
}

/// The second half of a range: `-R5`, `– 5`, `..=R5`.
fn range_end<'a>(letter: &str, text: &'a str) -> Option<(u32, &'a str)> {
    let text = text.trim_start();
    let rest = ["-", "–", "..=", ".."].iter().find_map(|sign| text.strip_prefix(sign))?.trim_start();
    number(rest.strip_prefix(letter).unwrap_or(rest))
}

/// The number that the text begins with, and what follows it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

const LONGEST_RANGE: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, text: &str) -> Citations {
        let mut citations = Citations::default();
        citations.read(file, &text.replace("CITES", MARK));
        citations
    }

    fn cited(file: &str, text: &str) -> Vec<u32> {
        let statements = read(file, text).statements();
        let number = |statement| match statement {
            Statement::Requirement(number) | Statement::Resolution(number) => number,
        };
        statements.into_iter().map(number).collect()
    }

    fn shown(text: &str) -> Option<String> {
        let shown: Vec<String> = statements(text)?.iter().map(Statement::to_string).collect();
        Some(shown.join(" "))
    }

    #[test]
    fn single_numbers_and_ranges_are_read() {
        assert_eq!(shown(" R1, R3-R5 and R7–R8.").as_deref(), Some("R1 R3 R4 R5 R7 R8"));
        assert_eq!(shown(" R1 - 3, R9..=R10, R12..13").as_deref(), Some("R1 R2 R3 R9 R10 R12 R13"));
        assert_eq!(shown(" R232 (Remote Calls), R309").as_deref(), Some("R232 R309"));
        assert_eq!(shown(" R5, C53-C54").as_deref(), Some("R5 C53 C54"));
    }

    #[test]
    fn backward_endless_and_missing_numbers_are_unreadable() {
        for text in ["R5-R3", "R1-R4000000000", "R1-R9999", "the first", ""] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn citation_counts_above_every_kind_of_test() {
        for attribute in
            ["#[test]", "#[actix::test]", "#[tokio::test(start_paused = true)]", "#[rstest]", "proptest! {"]
        {
            let text = format!("/// CITES R4\n/// More.\n{attribute}\nfn holds() {{}}\n");
            assert_eq!(cited("core/x/src/lib.rs", &text), [4], "{attribute}");
        }
    }

    #[test]
    fn citation_above_something_else_is_idle_outside_test_files() {
        let text = "/// CITES R4\nfn promise() {\n#[test]\n}\n";
        let elsewhere = read("core/x/src/lib.rs", text);
        assert!(elsewhere.cited.is_empty());
        assert_eq!(elsewhere.idle, ["core/x/src/lib.rs:1"]);
        assert_eq!(read("benches/local/src/main.rs", text).idle, ["benches/local/src/main.rs:1"]);
        for file in [
            "tests/a.rs",
            "core/x/tests/a.rs",
            "core/x/src/foo/tests.rs",
            "examples/bank.rs",
            "backends/conformance/src/lease.rs",
            "sim/src/check.rs",
        ] {
            assert_eq!(cited(file, text), [4], "{file}");
        }
    }

    #[test]
    fn attribute_whose_name_only_begins_like_test_is_none() {
        assert_eq!(cited("src/a.rs", "/// CITES R4\n#[test_case]\nfn f() {}\n"), [0_u32; 0]);
        assert_eq!(cited("src/a.rs", "/// CITES R4\n#[cfg(test)]\nfn f() {}\n"), [0_u32; 0]);
    }

    #[test]
    fn citation_above_an_ignored_test_is_idle() {
        let text = "/// CITES R4\n#[test]\n#[ignore = \"slow\"]\nfn f() {}\n";
        assert_eq!(read("tests/a.rs", text).idle, ["tests/a.rs:1"]);
    }

    #[test]
    fn citation_runs_on_while_its_line_is_open() {
        let text = "/// CITES R1,\n/// R2 and\n/// R3–\n/// R5\n/// not R9\n#[test]\nfn f() {}\n";
        assert_eq!(cited("src/a.rs", text), [1, 2, 3, 4, 5]);
    }
}
