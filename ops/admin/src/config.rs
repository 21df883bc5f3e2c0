//! What the node was told, with secrets masked.

use std::collections::BTreeMap;

use actix_web::web;
use archipelago_runtime::Node;
use serde::Serialize;
use serde_json::Value;

use crate::routes::Admin;
use crate::wire::{Answer, show};

/// The configuration of a node as it is shown.
struct Shown(BTreeMap<String, String>);

#[derive(Serialize)]
struct Config<'a> {
    known: bool,
    values: &'a BTreeMap<String, String>,
}

/// Gives the admin API the configuration to show, whatever it is: each value under its path, `calls.timeout`. What is a secret by
/// its name, and whoever is named in a URL, is masked before it is kept. Only the first time counts.
///
/// # Errors
///
/// It cannot be written as JSON.
pub fn show_configuration(node: &Node, configuration: &impl Serialize) -> Result<(), serde_json::Error> {
    let mut values = BTreeMap::new();
    flatten(String::new(), serde_json::to_value(configuration)?, &mut values);
    node.attached(|| Shown(values));
    Ok(())
}

pub(crate) async fn config(admin: web::Data<Admin>) -> Answer {
    let shown = admin.node.attachment::<Shown>();
    let none = BTreeMap::new();
    show(Config { known: shown.is_some(), values: shown.as_ref().map_or(&none, |shown| &shown.0) })
}

fn flatten(path: String, value: Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(path, value, into);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.into_iter().map(|item| masked(&path, text_of(item))).collect();
            into.insert(path, items.join(", "));
        }
        value => {
            let text = masked(&path, text_of(value));
            into.insert(path, text);
        }
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The value without what nobody should see: the name of a file that holds a secret is none.
fn masked(path: &str, text: String) -> String {
    let name = path.rsplit('.').next().unwrap_or(path).to_ascii_lowercase();
    let secret =
        ["password", "token", "secret", "seed", "credentials"].iter().any(|word| name.contains(word));
    if secret && !name.ends_with("_file") && !text.is_empty() {
        return MASK.to_owned();
    }
    without_user(text)
}

/// A URL without the user and password in it.
fn without_user(text: String) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{MASK}{}", &rest[user.len()..]),
        None => text,
    }
}

const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: Value) -> Vec<(String, String)> {
        let mut values = BTreeMap::new();
        flatten(String::new(), value, &mut values);
        values.into_iter().collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn values_stand_under_their_paths() {
        let values =
            shown(json!({ "a": { "b": 1, "c": "x", "d": true }, "e": ["p", "q"], "f": null, "g": {} }));
        let expected =
            [pair("a.b", "1"), pair("a.c", "x"), pair("a.d", "true"), pair("e", "p, q"), pair("f", "")];
        assert_eq!(values, expected);
    }

    #[test]
    fn secrets_are_masked_and_the_names_of_their_files_are_not() {
        let values = shown(json!({
            "nats": {
                "urls": ["nats://me:hunter2@host:4222/x@y", "nats://host"],
                "password": "hunter2",
                "password_file": "/etc/p",
            },
            "api_token": "hunter2",
            "etcd": { "endpoint": "http://u:hunter2@[::1]:1?a=b@c" },
        }));
        assert!(!format!("{values:?}").contains("hunter2"), "{values:?}");
        let expected = [
            pair("api_token", "***"),
            pair("etcd.endpoint", "http://***@[::1]:1?a=b@c"),
            pair("nats.password", "***"),
            pair("nats.password_file", "/etc/p"),
            pair("nats.urls", "nats://***@host:4222/x@y, nats://host"),
        ];
        assert_eq!(values, expected);
    }
}
