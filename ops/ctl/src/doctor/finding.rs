//! What was found out about one thing.

use serde_json::{Value, json};

/// Whether a node can live with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ok,
    /// It can, and somebody should know.
    Warn,
    /// It cannot.
    Fail,
    /// Nobody could look, or there is nothing to look at.
    Skip,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) standing: Standing,
    pub(crate) found: String,
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, standing: Standing::Ok, found: found.into(), advice: None }
    }

    pub(crate) fn skip(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, standing: Standing::Skip, found: found.into(), advice: None }
    }

    pub(crate) fn warn(check: &'static str, found: impl Into<String>, advice: &str) -> Self {
        Self { check, standing: Standing::Warn, found: found.into(), advice: Some(advice.to_owned()) }
    }

    pub(crate) fn fail(check: &'static str, found: impl Into<String>, advice: &str) -> Self {
        Self { check, standing: Standing::Fail, found: found.into(), advice: Some(advice.to_owned()) }
    }

    /// The line, and the one with what to do.
    pub(crate) fn lines(&self) -> Vec<String> {
        let first = format!("{:<4}  {:<14}  {}", self.word(), self.check, self.found);
        let advice = self.advice.iter().map(|advice| format!("{:22}to do: {advice}", ""));
        std::iter::once(first).chain(advice).collect()
    }

    pub(crate) fn as_json(&self) -> Value {
        json!({ "check": self.check, "standing": self.word(), "found": self.found, "advice": self.advice })
    }

    const fn word(&self) -> &'static str {
        match self.standing {
            Standing::Ok => "ok",
            Standing::Warn => "warn",
            Standing::Fail => "FAIL",
            Standing::Skip => "-",
        }
    }
}
