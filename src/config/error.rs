//! Why a configuration was refused: every problem found, with the place where to mend it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use archipelago_runtime::BoxError;

use super::conflict::Conflict;
use super::settings::TtlTooShort;

/// The configuration was refused; nothing was started. Mend every problem it lists.
#[derive(Debug)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

/// One mistake in the configuration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Problem {
    /// Where the mistake was made.
    pub origin: Origin,
    /// The key, dotted; none if the mistake is not about one key.
    pub key: Option<String>,
    /// The environment variable that sets the key; none if there is no such key.
    pub variable: Option<String>,
    /// What is wrong.
    pub fault: Fault,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The defaults in code.
    Default,
    /// A file, and the line in it if one is to blame.
    File {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: Option<usize>,
    },
    /// An environment variable, by name.
    Variable(String),
    /// A call of [`Loader`](super::Loader), as it was written.
    Builder(String),
    /// Settings that code handed over, without a layer that could be named.
    Settings,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A file the user named does not exist.
    FileMissing {
        /// The file.
        path: PathBuf,
    },
    /// A file exists and cannot be read.
    Unreadable {
        /// What the system said.
        source: io::Error,
    },
    /// A file is not TOML.
    Syntax {
        /// What the parser said.
        message: String,
    },
    /// The name of a profile is not letters, digits, dashes and underscores.
    ProfileName {
        /// What was given.
        name: String,
    },
    /// There is no such key.
    UnknownKey {
        /// The names that are known in its place.
        known: Vec<&'static str>,
    },
    /// A value stands where a section belongs.
    NotASection,
    /// The value is not what the key takes.
    Misfit {
        /// The value as it was written.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// The value of a variable is not Unicode.
    NotUnicode,
    /// The lease is shorter than three heartbeats.
    TtlTooShort(TtlTooShort),
    /// The values of several keys cannot be used together.
    Conflict(Conflict),
    /// The node cannot prove itself with what the key names.
    Certificates {
        /// Which file, and what is wrong with it.
        source: BoxError,
    },
    /// The merged configuration was refused although each layer was sound.
    Refused {
        /// Why.
        message: String,
    },
}

impl ConfigError {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// These calls of the builder are for members of a cluster.
    pub(crate) fn not_for_clients(calls: impl IntoIterator<Item = &'static str>) -> Self {
        let problem = |key| {
            let origin = Origin::Builder(format!("{key}(..)"));
            Problem::of_layer(origin, Fault::Conflict(Conflict::NotForClients { key }))
        };
        Self::new(calls.into_iter().map(problem).collect())
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Every problem that was found, weakest layer first.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = self.problems.as_slice() {
            return problem.fmt(f);
        }
        write!(f, "{} problems in the configuration", self.problems.len())?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problems.iter().find_map(|problem| match &problem.fault {
            Fault::Unreadable { source } => Some(source as _),
            Fault::Certificates { source } => Some(&**source as _),
            _ => None,
        })
    }
}

impl Problem {
    pub(super) fn of_layer(origin: Origin, fault: Fault) -> Self {
        Self { origin, key: None, variable: None, fault }
    }

    /// Whether it is only that this build cannot do what is asked: a build with other cargo features may be able to.
    #[must_use]
    pub const fn is_about_the_build(&self) -> bool {
        matches!(
            self.fault,
            Fault::Conflict(
                Conflict::NotBuilt { .. }
                    | Conflict::BackendNotBuilt { .. }
                    | Conflict::ControlPlaneNotBuilt { .. }
                    | Conflict::AdminNotBuilt
            )
        )
    }

    pub(super) fn of_key(origin: Origin, path: &[String], fault: Fault) -> Self {
        Self { origin, key: Some(path.join(".")), variable: super::schema::variable_of(path), fault }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(key) = &self.key {
            f.write_str(key)?;
            if let Fault::Misfit { value, .. } = &self.fault {
                write!(f, " = {value}")?;
            }
            f.write_str(": ")?;
        }
        self.fault.fmt(f)?;
        match (&self.origin, &self.variable) {
            (Origin::Variable(_), _) | (_, None) => Ok(()),
            (_, Some(variable)) => write!(f, " (environment variable {variable})"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Builder(call) => write!(f, "builder call {call}"),
            Self::Settings => f.write_str("settings"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileMissing { path } => write!(f, "the file {} does not exist", path.display()),
            Self::Unreadable { source } => write!(f, "cannot be read: {source}"),
            Self::Syntax { message } => write!(f, "not valid TOML: {message}"),
            Self::ProfileName { name } => {
                write!(f, "{name:?} is not a profile name of letters, digits, dashes and underscores")
            }
            Self::UnknownKey { known } if known.is_empty() => f.write_str("unknown key"),
            Self::UnknownKey { known } => write!(f, "unknown key; known here are {}", known.join(", ")),
            Self::NotASection => f.write_str("expected a section, not a value"),
            Self::Misfit { expected, .. } => write!(f, "expected {expected}"),
            Self::NotUnicode => f.write_str("the value is not Unicode"),
            Self::TtlTooShort(rule) => rule.fmt(f),
            Self::Conflict(rule) => rule.fmt(f),
            Self::Certificates { source } => source.fmt(f),
            Self::Refused { message } => f.write_str(message),
        }
    }
}
