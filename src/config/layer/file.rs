//! A TOML file as a layer, each entry with its line.

use std::ops::Range;
use std::path::Path;

use figment::value::Value;
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use super::super::error::{Fault, Origin, Problem};
use super::super::schema::{self, Found};
use super::Layer;

impl Layer {
    /// The keys of the TOML text that was read from `path`.
    pub(in super::super) fn of_file(path: &Path, text: &str, problems: &mut Vec<Problem>) -> Self {
        let file = File { path, text };
        let mut layer = Self::new("file");
        match Document::parse(text) {
            Ok(document) => file.walk(document.as_table(), &mut Vec::new(), &mut layer, problems),
            Err(error) => {
                let fault = Fault::Syntax { message: error.message().trim().replace('\n', ", ") };
                problems.push(Problem::of_layer(file.origin(error.span()), fault));
            }
        }
        layer
    }
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn walk(
        &self,
        table: &dyn TableLike,
        path: &mut Vec<String>,
        layer: &mut Layer,
        problems: &mut Vec<Problem>,
    ) {
        for (name, item) in table.iter() {
            path.push(name.to_owned());
            let origin = self.origin(table.key(name).and_then(|key| key.span()).or_else(|| item.span()));
            match (schema::find(path), item.as_table_like()) {
                (Found::Section, Some(inner)) => self.walk(inner, path, layer, problems),
                (Found::Section, None) => problems.push(Problem::of_key(origin, path, Fault::NotASection)),
                (Found::Unknown(known), _) => {
                    problems.push(Problem::of_key(origin, path, Fault::UnknownKey { known }));
                }
                (Found::Key(_), _) => {
                    layer.take(path.clone(), value_of(item), self.written(item), origin, problems);
                }
            }
            path.pop();
        }
    }

    fn origin(&self, span: Option<Range<usize>>) -> Origin {
        let before = span.and_then(|span| self.text.as_bytes().get(..span.start));
        let line = before.map(|before| before.iter().filter(|byte| **byte == b'\n').count() + 1);
        Origin::File { path: self.path.to_owned(), line }
    }

    fn written(&self, item: &Item) -> &str {
        let text = item.span().and_then(|span| self.text.get(span));
        text.and_then(|text| text.lines().next()).unwrap_or("a section")
    }
}

/// The value in figment's words. A table, which no key takes, becomes an empty one and is refused by the type.
fn value_of(item: &Item) -> Value {
    match item {
        Item::Value(value) => value_of_toml(value),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => Value::from(figment::value::Dict::new()),
    }
}

fn value_of_toml(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => Value::from(text.value().as_str()),
        TomlValue::Integer(number) => Value::from(*number.value()),
        TomlValue::Float(number) => Value::from(*number.value()),
        TomlValue::Boolean(truth) => Value::from(*truth.value()),
        TomlValue::Datetime(time) => Value::from(time.value().to_string()),
        TomlValue::Array(items) => Value::from(items.iter().map(value_of_toml).collect::<Vec<_>>()),
        TomlValue::InlineTable(_) => Value::from(figment::value::Dict::new()),
    }
}
