//! The rules of the conformance suites: each must be stated by name in the documentation of its contract.
//!
//! A suite lists its rules in one macro. Whoever implements a contract reads the contract, so a rule that is only in the suite
//! would come as a surprise.

use crate::sources::Source;

/// Looks up every rule of every suite; how many there are.
///
/// # Errors
///
/// Rules that their contract does not name, or a suite that cannot be read.
pub(crate) fn check(sources: &[Source]) -> Result<usize, String> {
    let mut count = 0;
    let mut unstated = Vec::new();
    for suite in &SUITES {
        let rules = suite.rules(sources)?;
        count += rules.len();
        let missing = rules.into_iter().filter(|rule| !suite.states(rule, sources));
        unstated.extend(missing.map(|rule| format!("{} does not name the rule {rule}", suite.contract[0])));
    }
    if unstated.is_empty() { Ok(count) } else { Err(unstated.join("; ")) }
}

/// A suite and the contract that it tests.
struct Suite {
    /// The file with the macro.
    file: &'static str,
    /// What stands in the macro right before the names.
    begins: &'static str,
    /// Where the contract is written.
    contract: &'static [&'static str],
}

impl Suite {
    fn rules(&self, sources: &[Source]) -> Result<Vec<String>, String> {
        let no_suite = || format!("{} has no suite {:?}", self.file, self.begins);
        let source = sources.iter().find(|source| source.path.ends_with(self.file)).ok_or_else(no_suite)?;
        let (_, names) = source.text.split_once(self.begins).ok_or_else(no_suite)?;
        let names = names.split('}').next().unwrap_or(names).split(',').map(str::trim);
        let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.is_empty() { Err(no_suite()) } else { Ok(names) }
    }

    fn states(&self, rule: &str, sources: &[Source]) -> bool {
        let is_contract = |source: &&Source| self.contract.iter().any(|file| source.path.ends_with(file));
        sources.iter().filter(is_contract).any(|source| source.text.contains(&format!("*{rule}*")))
    }
}

const BACKENDS: &str = "backends/conformance/src/lib.rs";

const SUITES: [Suite; 8] = [
    Suite {
        file: BACKENDS,
        begins: "store_conformance, store_rules:",
        contract: &["core/directory/src/store.rs"],
    },
    Suite {
        file: BACKENDS,
        begins: "restart_conformance, restart_rules:",
        contract: &[
            "core/directory/src/store.rs",
            "core/protocol/src/contract/directory.rs",
            "core/protocol/src/contract/control_plane.rs",
        ],
    },
    Suite {
        file: BACKENDS,
        begins: "directory_conformance, directory_rules:",
        contract: &["core/protocol/src/contract/directory.rs"],
    },
    Suite {
        file: BACKENDS,
        begins: "routing_table_conformance, routing_table_rules:",
        contract: &["core/protocol/src/contract/routing_table.rs", "core/protocol/src/ranges/source.rs"],
    },
    Suite {
        file: BACKENDS,
        begins: "control_plane_conformance, control_plane_rules:",
        contract: &["core/protocol/src/contract/control_plane.rs"],
    },
    Suite {
        file: BACKENDS,
        begins: "state_store_conformance, state_store_rules:",
        contract: &["core/protocol/src/contract/state_store.rs"],
    },
    Suite {
        file: BACKENDS,
        begins: "homes_conformance, homes_rules:",
        contract: &["core/protocol/src/contract/homes.rs"],
    },
    Suite {
        file: "transport/conformance/src/lib.rs",
        begins: "__transport_rules! { $clock, $bed;",
        contract: &["core/protocol/src/contract/transport.rs"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: Suite = Suite { file: "a/lib.rs", begins: "rules:", contract: &["b/contract.rs"] };

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn a_rule_is_stated_only_in_its_own_contract() {
        let sources = [
            source("a/lib.rs", "$crate::__rules! { $run, rules:\n one_wins, none_is_lost,\n }"),
            source("b/contract.rs", "/// - *one_wins*: of many."),
            source("c/other.rs", "/// - *none_is_lost*: never."),
        ];
        let rules = SUITE.rules(&sources).unwrap();
        assert_eq!(rules, ["one_wins", "none_is_lost"]);
        let stated: Vec<bool> = rules.iter().map(|rule| SUITE.states(rule, &sources)).collect();
        assert_eq!(stated, [true, false]);
    }

    #[test]
    fn a_suite_that_cannot_be_read_is_an_error() {
        assert!(SUITE.rules(&[]).is_err());
        assert!(SUITE.rules(&[source("a/lib.rs", "rules: }")]).is_err());
        assert!(check(&[]).is_err());
    }
}
