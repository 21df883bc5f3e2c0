//! The records' names and values: JSON, because people read them when something is wrong.

use archipelago_protocol::contract::{DirectoryError, Move, OwnerRecord};
use archipelago_protocol::identity::{Generation, Kind, NodeId, NodeInfo, OwnedKey, Placement};
use archipelago_protocol::session::{Lease, LeaseSeen, LeaseVersion, Session};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::{Record, RecordId, Space};

/// The value of an owner record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnerValue {
    /// The session that owns the key, as text; the record's tag as well.
    pub session: String,
    /// That session's time to live, for whoever finds its lease missing.
    #[serde(rename = "ttl_ms")]
    pub ttl: Millis,
    /// The generation at which the tenure began; `None` = the one of this very record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Generation>,
    /// How the key came here, if it was handed over.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub moved: Option<Move>,
}

impl OwnerValue {
    /// The value that begins a tenure of `session`.
    pub fn new(session: Session, moved: Option<Move>) -> Self {
        Self { session: session.id.to_string(), ttl: session.ttl, since: None, moved }
    }
}

/// The value of an owner record that nothing follows.
#[derive(Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum FinalValue {
    /// The partition was divided or merged; by whom is for people.
    Retired { by: String },
}

/// What an owner record says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnerState {
    /// Somebody owns the key.
    Owned(OwnerRecord),
    /// Nobody does, for ever.
    Retired,
}

impl OwnerState {
    pub(crate) fn owned(self) -> Option<OwnerRecord> {
        match self {
            Self::Owned(record) => Some(record),
            Self::Retired => None,
        }
    }
}

/// The name of a session's lease record.
pub fn lease_id(id: NodeId) -> RecordId {
    RecordId::new(Space::LEASES, id.to_string())
}

/// The name of a node's poster record.
pub fn node_record_id(id: NodeId) -> RecordId {
    RecordId::new(Space::NODES, id.to_string())
}

/// The name of the record that says how a kind is divided.
pub fn kind_id(kind: &Kind) -> RecordId {
    RecordId::new(Space::KINDS, kind.as_str())
}

/// The name of a key's owner record.
pub fn owner_id(key: &OwnedKey) -> RecordId {
    RecordId::new(Space::OWNERS, key.to_string())
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Bytes, DirectoryError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| invalid("a record cannot be written", error))
}

pub(crate) fn encode_retired(by: NodeId) -> Result<Bytes, DirectoryError> {
    encode(&FinalValue::Retired { by: by.to_string() })
}

pub(crate) fn decode_lease(record: &Record) -> Result<LeaseSeen, DirectoryError> {
    let lease: Lease = decode(record)?;
    Ok(LeaseSeen { id: decode_key(record)?, version: LeaseVersion(record.version.0), lease })
}

pub(crate) fn decode_node(record: &Record) -> Result<NodeInfo, DirectoryError> {
    decode(record)
}

pub(crate) fn decode_owner_state(record: &Record) -> Result<OwnerState, DirectoryError> {
    if let Ok(FinalValue::Retired { .. }) = decode(record) {
        return Ok(OwnerState::Retired);
    }
    decode_owner(record).map(OwnerState::Owned)
}

fn decode_owner(record: &Record) -> Result<OwnerRecord, DirectoryError> {
    let value: OwnerValue = decode(record)?;
    let node = value.session.parse().map_err(|error| invalid("an owner record names no session", error))?;
    let key = record.id.key.parse().map_err(|error| invalid("an owner record has no valid key", error))?;
    let generation = Generation::new(record.version.0);
    Ok(OwnerRecord {
        placement: Placement { key, node, generation },
        since: value.since.unwrap_or(generation),
        ttl: value.ttl,
        moved: value.moved,
    })
}

pub(crate) fn decode_key(record: &Record) -> Result<NodeId, DirectoryError> {
    record.id.key.parse().map_err(|error| invalid("a record of a node has no valid key", error))
}

pub(crate) fn decode<T: DeserializeOwned>(record: &Record) -> Result<T, DirectoryError> {
    serde_json::from_slice(&record.value).map_err(|error| invalid("a record cannot be read", error))
}

fn invalid(what: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> DirectoryError {
    DirectoryError::Invalid { what, source: Some(Box::new(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Version;

    fn stored(id: RecordId, value: Bytes) -> Record {
        Record { id, tag: None, value, version: Version(7) }
    }

    /// Proves: R229
    #[test]
    fn an_owner_record_is_json_that_people_can_read() {
        let session = Session { id: NodeId::new(0xab), ttl: Millis(6_000) };
        let value = encode(&OwnerValue::new(session, None)).unwrap();
        assert_eq!(value, r#"{"session":"00000000000000ab","ttl_ms":6000}"#.as_bytes());
        let key = OwnedKey::role("leader").unwrap();
        let record = decode_owner(&stored(owner_id(&key), value)).unwrap();
        let expected = Placement { key, node: session.id, generation: Generation::new(7) };
        assert_eq!((record.placement, record.since), (expected, Generation::new(7)));
    }

    #[test]
    fn leases_survive_json() {
        for (lease, json) in [
            (
                Lease::Live { seq: 3, nonce: 4, ttl: Millis(6_000) },
                r#"{"state":"live","seq":3,"nonce":4,"ttl_ms":6000}"#,
            ),
            (Lease::Missing { ttl: Millis(9) }, r#"{"state":"missing","ttl_ms":9}"#),
            (
                Lease::Revoked { ttl: Millis(9), by: NodeId::new(1) },
                r#"{"state":"revoked","ttl_ms":9,"by":"0000000000000001"}"#,
            ),
        ] {
            let value = encode(&lease).unwrap();
            assert_eq!(value, json.as_bytes());
            assert_eq!(decode_lease(&stored(lease_id(NodeId::new(1)), value)).unwrap().lease, lease);
        }
    }

    #[test]
    fn a_retired_record_says_so_and_by_whom() {
        let value = encode_retired(NodeId::new(0xab)).unwrap();
        assert_eq!(value, r#"{"state":"retired","by":"00000000000000ab"}"#.as_bytes());
        let record = stored(RecordId::new(Space::OWNERS, "range/Account/a"), value);
        assert_eq!(decode_owner_state(&record).unwrap(), OwnerState::Retired);
    }

    #[test]
    fn what_cannot_be_read_is_invalid_and_not_absent() {
        for value in [&b"retired"[..], b"{}", br#"{"state":"owned","by":"00000000000000ab"}"#] {
            let record = stored(RecordId::new(Space::OWNERS, "role/leader"), Bytes::from_static(value));
            assert!(matches!(decode_owner_state(&record), Err(DirectoryError::Invalid { .. })));
        }
    }
}
