//! Who set what: where to mend a value that turns out to be wrong after the layers were merged.

use super::conflict::Conflict;
use super::error::{ConfigError, Fault, Origin, Problem};
use super::layer::Layer;
use super::settings::Settings;

/// Where the values of a [`Settings`] come from.
#[derive(Debug)]
pub(crate) struct Origins {
    /// Weakest first.
    layers: Vec<Layer>,
    /// Where the values come from that no layer set.
    otherwise: Origin,
}

impl Origins {
    pub(super) fn of_layers(layers: Vec<Layer>) -> Self {
        Self { layers, otherwise: Origin::Default }
    }

    /// The origins of settings that code made.
    pub(crate) fn of_code() -> Self {
        Self { layers: Vec::new(), otherwise: Origin::Settings }
    }

    /// Looks for values that cannot be used together.
    ///
    /// # Errors
    ///
    /// Every broken rule.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), ConfigError> {
        let conflicts = Conflict::all_in(settings).into_iter();
        let problems: Vec<Problem> =
            conflicts.map(|rule| self.problem(&rule.keys(), Fault::Conflict(rule))).collect();
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::new(problems)) }
    }

    /// The error for a fault that one of `keys` is to blame for.
    pub(crate) fn refuse(&self, keys: &[&str], fault: Fault) -> ConfigError {
        ConfigError::new(vec![self.problem(keys, fault)])
    }

    /// Keys between which a rule holds may come from several layers: blames the first that somebody set.
    fn problem(&self, keys: &[&str], fault: Fault) -> Problem {
        let paths = keys.iter().map(|key| key.split('.').map(str::to_owned).collect::<Vec<_>>());
        let set = |path: Vec<String>| {
            let origin = self.layers.iter().rev().find_map(|layer| layer.origin_of(&path))?.clone();
            Some((origin, path))
        };
        let unset = || (self.otherwise.clone(), paths.clone().next().unwrap_or_default());
        let (origin, path) = paths.clone().find_map(set).unwrap_or_else(unset);
        Problem::of_key(origin, &path, fault)
    }
}
