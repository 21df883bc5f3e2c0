//! Checks values against the schemas of the OpenAPI document: as much of JSON Schema as the document uses, and nothing that it
//! does not know goes unnoticed.

use serde_json::Value;

/// What is wrong with a value; empty if it fits.
pub(crate) fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(document, schema, value, "$", &mut faults);
    faults
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        match word.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                let named = document.pointer(pointer).unwrap_or_else(|| panic!("no schema {pointer}"));
                check(document, named, value, at, faults);
            }
            "oneOf" => {
                let fits = |one: &&Value| self::faults(document, one, value).is_empty();
                if rule.as_array().unwrap().iter().filter(fits).count() != 1 {
                    faults.push(format!("{at}: {value} fits not one of {rule}"));
                }
            }
            "type" => check_type(rule, value, at, faults),
            "enum" => {
                if !rule.as_array().unwrap().contains(value) {
                    faults.push(format!("{at}: {value} is none of {rule}"));
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) {
                    faults.push(format!("{at}: {value} is below {rule}"));
                }
            }
            "pattern" => check_pattern(rule.as_str().unwrap(), value, at, faults),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, rule, item, &format!("{at}[{index}]"), faults);
                }
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(name) {
                        check(document, rule, field, &format!("{at}.{name}"), faults);
                    }
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        faults.push(format!("{at}: no {name}"));
                    }
                }
            }
            "additionalProperties" => check_others(document, schema, value, at, faults),
            "description" => {}
            unknown => panic!("the checker knows no {unknown}"),
        }
    }
}

fn check_type(rule: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let is = |wanted: &str| match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        unknown => panic!("the checker knows no type {unknown}"),
    };
    let fits = match rule {
        Value::String(wanted) => is(wanted),
        other => other.as_array().unwrap().iter().any(|wanted| is(wanted.as_str().unwrap())),
    };
    if !fits {
        faults.push(format!("{at}: {value} is no {rule}"));
    }
}

/// The two patterns that the document uses.
fn check_pattern(pattern: &str, value: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(text) = value.as_str() else { return };
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = match pattern {
        "^[0-9a-f]{16}$" => text.len() == 16 && text.bytes().all(hex),
        "^[0-9]+$" => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
        unknown => panic!("the checker knows no pattern {unknown}"),
    };
    if !fits {
        faults.push(format!("{at}: {text:?} does not fit {pattern}"));
    }
}

fn check_others(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let known = &schema["properties"];
    for (name, field) in value.as_object().into_iter().flatten().filter(|(name, _)| known.get(name).is_none())
    {
        match &schema["additionalProperties"] {
            Value::Bool(false) => faults.push(format!("{at}: {name} is not described")),
            rule => check(document, rule, field, &format!("{at}.{name}"), faults),
        }
    }
}

#[test]
fn what_does_not_fit_is_found() {
    use serde_json::json;
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["a", "b"],
        "properties": {
            "a": { "type": ["integer", "null"], "minimum": 0 },
            "b": { "type": "array", "items": { "type": "string", "enum": ["x"] } },
        },
    });
    let found = |value: Value| faults(&Value::Null, &schema, &value).len();
    assert_eq!(found(json!({ "a": 1, "b": ["x"] })), 0);
    assert_eq!(found(json!({ "a": null, "b": [] })), 0);
    for wrong in [
        json!({ "a": 1 }),
        json!({ "a": -1, "b": [] }),
        json!({ "a": "1", "b": [] }),
        json!({ "a": 1, "b": ["y"] }),
        json!({ "a": 1, "b": [], "c": 1 }),
        json!([]),
    ] {
        assert_ne!(found(wrong.clone()), 0, "{wrong}");
    }
}
