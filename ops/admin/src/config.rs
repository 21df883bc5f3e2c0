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
            if items.iter().any(|item| item.is_object() || item.is_array()) {
                for (at, item) in items.into_iter().enumerate() {
                    flatten(format!("{path}.{at}"), item, into);
                }
                return;
            }
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
    let mut names = path.rsplit('.').filter(|name| name.parse::<usize>().is_err());
    let name = names.next().unwrap_or(path);
    let hidden = (is_secret(name) && !name.ends_with("_file")) || names.any(is_secret);
    if hidden && !text.is_empty() {
        return MASK.to_owned();
    }
    parts(&text).iter().map(|part| without_secrets(part)).collect::<Vec<_>>().join(",")
}

/// What stands between the commas of a list. A password may have a comma, too: what has an `@` and begins no URL belongs to the URL
/// before it.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        match parts.last_mut() {
            Some(last) if last.contains("://") && part.contains('@') && !part.contains("://") => {
                last.push(',');
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|word| name.contains(word))
}

/// A URL without the user and password in it, and without what is a secret in its query.
fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    // Too much hidden does no harm: a password may have in it what ends an authority.
    let (user, rest) = match authority.rsplit_once('@').or_else(|| rest.rsplit_once('@')) {
        Some((user, _)) => (MASK, &rest[user.len()..]),
        None => ("", rest),
    };
    let Some((place, query)) = rest.split_once('?') else { return format!("{scheme}://{user}{rest}") };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    });
    format!("{scheme}://{user}{place}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// What a name has in it whose value nobody should see.
const SECRETS: [&str; 9] =
    ["password", "passphrase", "token", "secret", "seed", "credential", "private", "jwt", "api_key"];

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
            "jwt": "hunter2",
            "peers": [{ "passphrase": "hunter2", "name": "a" }, { "private_key": "hunter2" }],
            "several": "x://a:hunter2@b,x://c:hunter2@d?e=f&access_token=hunter2",
            "tokens": ["hunter2"],
            "secrets": { "db": "hunter2" },
            "comma": "x://a:hun,hunter2@b,y,x://c",
            "slash": "x://a:hu/hunter2@b",
            "etcd": { "endpoint": "http://u:hunter2@[::1]:1?a=b@c" },
        }));
        assert!(!format!("{values:?}").contains("hunter2"), "{values:?}");
        let expected = [
            pair("api_token", "***"),
            pair("comma", "x://***@b,y,x://c"),
            pair("etcd.endpoint", "http://***@[::1]:1?a=b@c"),
            pair("jwt", "***"),
            pair("nats.password", "***"),
            pair("nats.password_file", "/etc/p"),
            pair("nats.urls", "nats://***@host:4222/x@y, nats://host"),
            pair("peers.0.name", "a"),
            pair("peers.0.passphrase", "***"),
            pair("peers.1.private_key", "***"),
            pair("secrets.db", "***"),
            pair("several", "x://***@b,x://***@d?e=f&access_token=***"),
            pair("slash", "x://***@b"),
            pair("tokens", "***"),
        ];
        assert_eq!(values, expected);
    }
}
