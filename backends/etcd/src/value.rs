//! How a record's tag and value stand in etcd: as JSON that people can read.
//!
//! A value that is a JSON object is kept as it is, and its tag becomes the first member: `{"tag":"00ab","ttl_ms":6000}`.
//! Anything else is wrapped: `{"tagged":"00ab","text":"..."}`, or `"hex"` where it is no text. Invariant: what is read is
//! byte for byte what was written.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) fn encode(tag: Option<&str>, value: &[u8]) -> Vec<u8> {
    let is_object = value.len() >= 2 && value.starts_with(b"{") && value.ends_with(b"}");
    match tag {
        Some(tag) if is_object => with_member(tag, value),
        None if is_object && !value.starts_with(TAG) && !value.starts_with(WRAPPED) => value.to_vec(),
        _ => wrapped(tag, value),
    }
}

/// What is not in our form is somebody else's: a value without a tag, for the reader to judge.
pub(crate) fn decode(stored: &[u8]) -> (Option<String>, Bytes) {
    let read = if stored.starts_with(WRAPPED) { unwrap(stored) } else { split_member(stored) };
    read.unwrap_or_else(|| (None, Bytes::copy_from_slice(stored)))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    tagged: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

fn with_member(tag: &str, value: &[u8]) -> Vec<u8> {
    let mut stored = b"{\"tag\":".to_vec();
    stored.extend(serde_json::Value::from(tag).to_string().into_bytes());
    if value != b"{}" {
        stored.push(b',');
    }
    stored.extend_from_slice(&value[1..]);
    stored
}

fn split_member(stored: &[u8]) -> Option<(Option<String>, Bytes)> {
    let member = stored.strip_prefix(TAG)?;
    let mut texts = serde_json::Deserializer::from_slice(member).into_iter::<String>();
    let tag = texts.next()?.ok()?;
    let value = match &member[texts.byte_offset()..] {
        b"}" => b"{}".to_vec(),
        rest => [b"{", rest.strip_prefix(b",")?].concat(),
    };
    Some((Some(tag), Bytes::from(value)))
}

fn wrapped(tag: Option<&str>, value: &[u8]) -> Vec<u8> {
    // What JSON would have to escape at length is no text for people.
    let plain = |text: &&str| text.chars().all(|c| !c.is_control() || c == '\n');
    let text = std::str::from_utf8(value).ok().filter(plain).map(str::to_owned);
    let hex = text.is_none().then(|| value.iter().map(|byte| format!("{byte:02x}")).collect());
    let wrapped = Wrapped { tagged: tag.map(str::to_owned), text, hex };
    serde_json::to_vec(&wrapped).expect("texts can always be written as JSON")
}

fn unwrap(stored: &[u8]) -> Option<(Option<String>, Bytes)> {
    let wrapped: Wrapped = serde_json::from_slice(stored).ok()?;
    let value = match (wrapped.text, wrapped.hex) {
        (Some(text), None) => Bytes::from(text),
        (None, Some(hex)) => from_hex(&hex)?,
        _ => return None,
    };
    Some((wrapped.tagged, value))
}

fn from_hex(hex: &str) -> Option<Bytes> {
    let digits = hex.as_bytes().chunks_exact(2);
    let odd = !digits.remainder().is_empty();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.map(byte).collect();
    bytes.filter(|_| !odd).map(Bytes::from)
}

const TAG: &[u8] = b"{\"tag\":";
const WRAPPED: &[u8] = b"{\"tagged\":";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(tag: Option<&str>, value: &str) -> String {
        String::from_utf8(encode(tag, value.as_bytes())).unwrap()
    }

    /// Proves: R489
    #[test]
    fn objects_stay_what_they_are_and_show_their_tag() {
        let lease = r#"{"state":"live","seq":3}"#;
        assert_eq!(text(None, lease), lease);
        assert_eq!(text(Some("00ab"), lease), r#"{"tag":"00ab","state":"live","seq":3}"#);
        assert_eq!(text(Some("00ab"), "{}"), r#"{"tag":"00ab"}"#);
    }

    #[test]
    fn what_is_no_object_is_wrapped_in_one() {
        assert_eq!(text(Some("a"), "one"), r#"{"tagged":"a","text":"one"}"#);
        assert_eq!(encode(None, b"\xff\x00"), br#"{"tagged":null,"hex":"ff00"}"#);
        assert_eq!(text(None, "\u{1}\u{2}"), r#"{"tagged":null,"hex":"0102"}"#);
    }

    #[test]
    fn what_somebody_else_wrote_is_a_value_without_a_tag() {
        for foreign in
            ["", "7", "{\"tag\":7}", "{\"tag\":\"a\";}", "{\"tagged\":\"a\",\"hex\":\"0\"}", "{\"tag\":\"a"]
        {
            assert_eq!(decode(foreign.as_bytes()), (None, Bytes::from(foreign)), "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            tag in proptest::option::of(".{0,8}"),
            value in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                r#"\{("tag"|"tagged"|"a"):("x"|7|null)?,?.{0,8}\}"#.prop_map(String::into_bytes),
                ".{0,12}".prop_map(String::into_bytes),
            ],
        ) {
            prop_assert_eq!(decode(&encode(tag.as_deref(), &value)), (tag, Bytes::from(value)));
        }
    }
}
