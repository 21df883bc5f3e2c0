//! The value of a state record: a line of JSON that says whose it is and how to read it, then the bytes of the state.
//!
//! People read the line, and the state too if it is text; nothing is encoded twice.

use archipelago_protocol::contract::{Schema, StateStoreError, StoredState};
use archipelago_protocol::identity::Generation;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::invalid;
use crate::record::Record;

/// What a state record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// The highest generation that has loaded the state.
    pub(super) generation: Generation,
    /// The state, if one was saved.
    pub(super) state: Option<StoredState>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    generation: Generation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
}

pub(super) fn encode(value: &Value) -> Result<Bytes, StateStoreError> {
    let schema = value.state.as_ref().map(|state| &state.schema);
    let head = Head {
        generation: value.generation,
        schema: schema.map(|schema| schema.name.clone()),
        version: schema.map(|schema| schema.version),
    };
    let mut bytes = serde_json::to_vec(&head).map_err(|error| StateStoreError::Invalid {
        what: "the head of a state cannot be written",
        source: Some(Box::new(error)),
    })?;
    // JSON escapes line breaks, so the first one ends the head.
    bytes.push(b'\n');
    if let Some(state) = &value.state {
        bytes.extend_from_slice(&state.bytes);
    }
    Ok(bytes.into())
}

pub(super) fn decode(record: &Record) -> Result<Value, StateStoreError> {
    let value = &record.value;
    let end = value.iter().position(|byte| *byte == b'\n').ok_or_else(|| invalid("a state has no head"))?;
    let head: Head = serde_json::from_slice(&value[..end]).map_err(|error| StateStoreError::Invalid {
        what: "the head of a state cannot be read",
        source: Some(Box::new(error)),
    })?;
    let bytes = value.slice(end + 1..);
    let state = match (head.schema, head.version) {
        (Some(name), Some(version)) => Some(StoredState { schema: Schema { name, version }, bytes }),
        (None, None) if bytes.is_empty() => None,
        _ => return Err(invalid("a state has half a head")),
    };
    Ok(Value { generation: head.generation, state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordId, Space, Version};

    fn stored(value: impl Into<Bytes>) -> Record {
        let id = RecordId::new(Space::STATES, "n::Account/a");
        Record { id, tag: None, value: value.into(), version: Version(7) }
    }

    fn value(state: Option<(&str, u32, &'static [u8])>) -> Value {
        let state = state.map(|(name, version, bytes)| StoredState {
            schema: Schema::new(name, version),
            bytes: Bytes::from_static(bytes),
        });
        Value { generation: Generation::new(3), state }
    }

    #[test]
    fn a_state_is_a_line_that_people_can_read_and_its_bytes() {
        let saved = value(Some(("Account", 2, br#"{"balance":5}"#)));
        let written = encode(&saved).unwrap();
        let expected = "{\"generation\":3,\"schema\":\"Account\",\"version\":2}\n{\"balance\":5}";
        assert_eq!(written, expected.as_bytes());
        assert_eq!(decode(&stored(written)).unwrap(), saved);
    }

    #[test]
    fn whatever_the_bytes_are_they_come_back() {
        let values = [
            value(None),
            value(Some(("Account", 0, b""))),
            value(Some(("a\u{e4}\"b", u32::MAX, b"\n\0\xff\n"))),
        ];
        for value in values {
            assert_eq!(decode(&stored(encode(&value).unwrap())).unwrap(), value);
        }
        assert_eq!(encode(&value(None)).unwrap(), &b"{\"generation\":3}\n"[..]);
    }

    #[test]
    fn what_cannot_be_read_is_invalid_and_not_absent() {
        for value in [
            "",
            "{\"generation\":3}",
            "\n",
            "{}\n",
            "{\"generation\":3}\nrest",
            "{\"generation\":3,\"schema\":\"A\"}\n",
            "{\"generation\":3,\"owner\":1}\n",
        ] {
            let read = decode(&stored(value));
            assert!(matches!(read, Err(StateStoreError::Invalid { .. })), "{value:?}: {read:?}");
        }
    }
}
