//! One source of settings, checked key by key: a file, the environment, or the builder's calls.
//!
//! A [`Layer`] is what figment merges. Its entries know where they were written, which is what figment and serde
//! cannot say.

mod environment;
mod file;

use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};
use toml_edit::Key as TomlKey;

use super::error::{Fault, Origin, Problem};
use super::schema::{self, Found};

/// The sound entries of one source.
#[derive(Debug)]
pub(super) struct Layer {
    name: &'static str,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    path: Vec<String>,
    value: Value,
    origin: Origin,
}

impl Layer {
    fn new(name: &'static str) -> Self {
        Self { name, entries: Vec::new() }
    }

    /// The keys set by builder calls, as (key, text) in the order of the calls.
    pub(super) fn of_calls(calls: &[(String, String)], problems: &mut Vec<Problem>) -> Self {
        let mut layer = Self::new("builder calls");
        for (key, text) in calls {
            let origin = Origin::Builder(format!("set({key:?}, {text:?})"));
            match TomlKey::parse(key) {
                Ok(keys) => {
                    let path: Vec<String> = keys.iter().map(|key| key.get().to_owned()).collect();
                    layer.take_text(path, text, origin, problems);
                }
                Err(_) => {
                    let fault = Fault::UnknownKey { known: Vec::new() };
                    problems.push(Problem::of_key(origin, std::slice::from_ref(key), fault));
                }
            }
        }
        layer
    }

    /// Where this layer sets the key at `path`, or a key in the section at `path`, if it does.
    pub(super) fn origin_of(&self, path: &[String]) -> Option<&Origin> {
        self.entries.iter().rev().find(|entry| entry.path.starts_with(path)).map(|entry| &entry.origin)
    }

    /// Takes text for a key, or notes why not.
    fn take_text(&mut self, path: Vec<String>, text: &str, origin: Origin, problems: &mut Vec<Problem>) {
        match schema::find(&path) {
            Found::Key(key) => self.take(path, key.read(text), &format!("{text:?}"), origin, problems),
            Found::Section => problems.push(Problem::of_key(origin, &path, Fault::NotASection)),
            Found::Unknown(known) => {
                problems.push(Problem::of_key(origin, &path, Fault::UnknownKey { known }));
            }
        }
    }

    /// Takes a value for a key that exists, or notes that it does not fit. `shown` is the value as written.
    fn take(
        &mut self,
        path: Vec<String>,
        value: Value,
        shown: &str,
        origin: Origin,
        problems: &mut Vec<Problem>,
    ) {
        let Found::Key(key) = schema::find(&path) else { return };
        if key.fits(&value) {
            self.entries.push(Entry { path, value, origin });
            return;
        }
        let fault = Fault::Misfit { value: shortened(&without_credentials(shown)), expected: key.expected() };
        problems.push(Problem::of_key(origin, &path, fault));
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut root = Dict::new();
        for entry in &self.entries {
            insert(&mut root, &entry.path, entry.value.clone());
        }
        Ok(Profile::Default.collect(root))
    }
}

fn insert(dict: &mut Dict, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            dict.insert(name.clone(), value);
        }
        [section, rest @ ..] => {
            let inner = dict.entry(section.clone()).or_insert_with(|| Value::from(Dict::new()));
            if let Value::Dict(_, inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The text, with what stands between `://` and `@` hidden: it may be a password, and errors are logged.
fn without_credentials(text: &str) -> String {
    let hidden = |rest: &str| {
        let address = rest.split([' ', ',', '"', '\'', '/']).next().unwrap_or_default();
        let host = address.rfind('@').map_or(rest.to_owned(), |at| format!("***{}", &rest[at..]));
        format!("://{host}")
    };
    let mut parts = text.split("://");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, rest| shown + &hidden(rest))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

const LONGEST_SHOWN: usize = 60;
