//! Reads the layers, checks each, merges them.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::Serialized;

use super::backend::BackendKind;
use super::error::{ConfigError, Fault, Origin, Problem};
use super::layer::Layer;
use super::origins::Origins;
use super::settings::{SessionFields, SessionSettings, Settings};
use crate::inspect::Inspection;

/// Reads the configuration of a node.
///
/// Layers, weakest first: defaults, the file, the file of the profile, the environment, [`set`](Self::set).
///
/// ```
/// # use archipelago::config::Loader;
/// let settings = Loader::new().set("calls.timeout", "1s").load()?;
/// assert_eq!(settings.calls.timeout.as_secs(), 1);
/// # Ok::<(), archipelago::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loader {
    directory: PathBuf,
    file: Option<PathBuf>,
    profile: Option<String>,
    environment: Option<Vec<(OsString, OsString)>>,
    calls: Vec<(String, String)>,
}

impl Loader {
    /// Looks for `archipelago.toml` in the working directory and for variables in the process's environment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for `archipelago.toml` in `directory`. Without that file the defaults hold.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Reads this file instead of `archipelago.toml` and whatever `ARCHIPELAGO_CONFIG` names. It must exist.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Reads the file of this profile on top, whatever `ARCHIPELAGO_PROFILE` names: `archipelago.<profile>.toml`
    /// beside `archipelago.toml`, `x.<profile>.toml` beside `x.toml`. It must exist.
    #[must_use]
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Takes these variables for the environment instead of the process's own.
    #[must_use]
    pub fn environment<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let owned = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment = Some(owned.collect());
        self
    }

    /// Sets one key, over everything else. The value is read as the text of a variable would be; a name with dots
    /// in it is quoted as in TOML: `actors.kinds."bank.Account".idle_after`.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Display) -> Self {
        self.calls.push((key.into(), value.to_string()));
        self
    }

    /// Reads and merges the layers.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every problem found: files that cannot be read, keys that do not exist, values that
    /// do not fit. What holds between keys is looked at only when each layer is sound.
    pub fn load(self) -> Result<Settings, ConfigError> {
        self.load_with_origins().map(|(settings, _)| settings)
    }

    /// Reads and merges the layers, and looks at everything else on this machine that the start of a node would refuse: the
    /// certificates, the token, the files that hold secrets. Nothing is written, and nobody is asked. What the names mean in the
    /// network, and whether ports are free, only a start finds out.
    ///
    /// Unlike [`load`](Self::load) it says what it can say of a configuration that is meant for another build
    /// ([`Problem::is_about_the_build`]).
    pub fn inspect(self) -> Inspection {
        match self.read_and_merge() {
            Ok((settings, origins)) => crate::inspect::inspect(settings, &origins),
            Err(error) => Inspection { settings: None, problems: error.into_problems() },
        }
    }

    /// The same, with who set what.
    pub(crate) fn load_with_origins(self) -> Result<(Settings, Origins), ConfigError> {
        let (settings, origins) = self.read_and_merge()?;
        origins.check(&settings)?;
        Ok((settings, origins))
    }

    /// What the layers say, each of which is sound.
    fn read_and_merge(self) -> Result<(Settings, Origins), ConfigError> {
        let mut problems = Vec::new();
        let environment = self.environment.unwrap_or_else(|| std::env::vars_os().collect());
        let files = SourceFile::choose(&self.directory, self.file, self.profile, &environment, &mut problems);
        let mut layers: Vec<Layer> = files.into_iter().filter_map(|file| file.read(&mut problems)).collect();
        layers.push(Layer::of_environment(&environment, &mut problems));
        layers.push(Layer::of_calls(&self.calls, &mut problems));
        if problems.is_empty() { merge(layers) } else { Err(ConfigError::new(problems)) }
    }
}

/// A file to read, and who asked for it; nobody did for `archipelago.toml`, so that one may be absent.
struct SourceFile {
    path: PathBuf,
    named_by: Option<Origin>,
}

impl SourceFile {
    fn choose(
        directory: &Path,
        file: Option<PathBuf>,
        profile: Option<String>,
        environment: &[(OsString, OsString)],
        problems: &mut Vec<Problem>,
    ) -> Vec<Self> {
        let by_call = file.map(|path| {
            let call = Origin::Builder(format!("file({path:?})"));
            Self { path, named_by: Some(call) }
        });
        let by_variable = || {
            let path = PathBuf::from(variable(environment, CONFIG)?);
            Some(Self { path, named_by: Some(Origin::Variable(CONFIG.to_owned())) })
        };
        let unnamed = || Self { path: directory.join("archipelago.toml"), named_by: None };
        let base = by_call.or_else(by_variable).unwrap_or_else(unnamed);
        let profile = Self::of_profile(&base.path, profile, environment, problems);
        std::iter::once(base).chain(profile).collect()
    }

    fn of_profile(
        base: &Path,
        by_call: Option<String>,
        environment: &[(OsString, OsString)],
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let by_call = by_call.map(|name| {
            let call = Origin::Builder(format!("profile({name:?})"));
            (name, call)
        });
        let by_variable = || {
            let name = variable(environment, PROFILE)?.to_string_lossy().into_owned();
            Some((name, Origin::Variable(PROFILE.to_owned())))
        };
        let (name, origin) = by_call.or_else(by_variable)?;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            problems.push(Problem::of_layer(origin, Fault::ProfileName { name }));
            return None;
        }
        Some(Self { path: base.with_extension(format!("{name}.toml")), named_by: Some(origin) })
    }

    fn read(self, problems: &mut Vec<Problem>) -> Option<Layer> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => return Some(Layer::of_file(&self.path, &text, problems)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let missing = |origin| Problem::of_layer(origin, Fault::FileMissing { path: self.path });
                problems.extend(self.named_by.map(missing));
            }
            Err(source) => {
                let origin = Origin::File { path: self.path, line: None };
                problems.push(Problem::of_layer(origin, Fault::Unreadable { source }));
            }
        }
        None
    }
}

/// An empty variable counts as one that is not set.
fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsString> {
    let (_, value) = environment.iter().find(|(own, _)| own == name)?;
    (!value.is_empty()).then_some(value)
}

fn merge(layers: Vec<Layer>) -> Result<(Settings, Origins), ConfigError> {
    let over = |defaults: Settings| {
        let defaults = Figment::from(Serialized::defaults(defaults));
        layers.iter().fold(defaults, |merged, layer| merged.merge(layer))
    };
    // Some defaults are the backend's, so it is asked for first.
    let kind: BackendKind = over(Settings::default()).extract_inner("backend.kind").map_err(refused)?;
    let figment = over(Settings::of_backend(kind));
    let origins = Origins::of_layers(layers);
    session_rule(&figment, &origins)?;
    let settings: Settings = figment.extract().map_err(refused)?;
    Ok((settings, origins))
}

fn refused(error: figment::Error) -> ConfigError {
    let origin = Origin::Builder("load()".to_owned());
    let fault = Fault::Refused { message: error.to_string() };
    ConfigError::new(vec![Problem::of_key(origin, &error.path, fault)])
}

/// The type of the settings keeps this rule, too, but knows no origins.
fn session_rule(figment: &Figment, origins: &Origins) -> Result<(), ConfigError> {
    let Ok(fields) = figment.extract_inner::<SessionFields>("session") else { return Ok(()) };
    match SessionSettings::try_from(fields) {
        Ok(_) => Ok(()),
        Err(rule) => Err(origins.refuse(&["session.ttl", "session.heartbeat"], Fault::TtlTooShort(rule))),
    }
}

const CONFIG: &str = "ARCHIPELAGO_CONFIG";
const PROFILE: &str = "ARCHIPELAGO_PROFILE";
