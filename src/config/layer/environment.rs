//! Environment variables as a layer.

use std::ffi::OsString;

use tracing::warn;

use super::super::error::{Fault, Origin, Problem};
use super::super::schema::{self, PREFIX};
use super::Layer;

impl Layer {
    /// The variables that are configuration: `ARCHIPELAGO_SECTION__KEY`.
    pub(in super::super) fn of_environment(
        variables: &[(OsString, OsString)],
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut layer = Self::new("environment");
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            let Some(path) = path_of(name) else { continue };
            let origin = Origin::Variable(name.to_owned());
            match value.to_str() {
                Some(text) => layer.take_text(path, text, origin, problems),
                None => problems.push(Problem::of_key(origin, &path, Fault::NotUnicode)),
            }
        }
        layer
    }
}

/// The path that a variable sets; none if the variable is not configuration.
fn path_of(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?;
    if rest.starts_with(TEST) {
        return None;
    }
    if !name.contains("__") {
        if let Some(meant) = schema::variable_meant_by(name) {
            warn!(variable = name, meant, "environment variable ignored, it lacks a double underscore");
        }
        return None;
    }
    let segments: Vec<&str> = rest.strip_prefix('_').unwrap_or(rest).split("__").collect();
    Some(schema::path_of_variable(&segments))
}

/// Begins what only tests read; never configuration.
const TEST: &str = "TEST_";

#[cfg(test)]
mod tests {
    use super::*;

    fn dotted(name: &str) -> Option<String> {
        path_of(name).map(|path| path.join("."))
    }

    #[test]
    fn only_variables_with_a_double_underscore_are_configuration() {
        assert_eq!(dotted("ARCHIPELAGO_CALLS__TIMEOUT").as_deref(), Some("calls.timeout"));
        assert_eq!(dotted("ARCHIPELAGO__NAMESPACE").as_deref(), Some("namespace"));
        for name in [
            "ARCHIPELAGO_CONFIG",
            "ARCHIPELAGO_PROFILE",
            "ARCHIPELAGO_CALLS_TIMEOUT",
            "ARCHIPELAGO_TEST_ETCD",
            "ARCHIPELAGO_TEST__X",
            "OTHER__KEY",
        ] {
            assert_eq!(dotted(name), None, "{name}");
        }
    }

    #[test]
    fn name_of_an_actor_kind_keeps_its_case() {
        assert_eq!(
            dotted("ARCHIPELAGO_ACTORS__KINDS__BankAccount__IDLE_AFTER").as_deref(),
            Some("actors.kinds.BankAccount.idle_after")
        );
    }
}
