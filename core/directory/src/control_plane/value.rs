//! The value of a datacenter's record: JSON, because people read it when something is wrong.

use archipelago_protocol::contract::{ControlPlaneError, Epoch};
use archipelago_protocol::datacenter::{
    DataCenterInfo, DataCenterRecord, DataCenterState, DataCenterVersion,
};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::record::Record;

#[derive(Serialize, Deserialize)]
struct Value {
    #[serde(flatten)]
    info: DataCenterInfo,
    state: DataCenterState,
    epoch: Epoch,
    lease_ttl_ms: Millis,
    lease_expiry_ms: u64,
}

pub(super) fn encode(record: &DataCenterRecord) -> Result<Bytes, ControlPlaneError> {
    let value = Value {
        info: record.info.clone(),
        state: record.state,
        epoch: record.epoch,
        lease_ttl_ms: record.lease_ttl,
        lease_expiry_ms: record.lease_expiry_ms,
    };
    let bytes = serde_json::to_vec(&value).map_err(|error| invalid("a record cannot be written", error))?;
    Ok(bytes.into())
}

pub(super) fn decode(record: &Record) -> Result<DataCenterRecord, ControlPlaneError> {
    let value: Value = serde_json::from_slice(&record.value)
        .map_err(|error| invalid("the record of a datacenter cannot be read", error))?;
    if value.info.id().as_str() != record.id.key {
        return Err(ControlPlaneError::Invalid {
            what: "the record of a datacenter is under another's name",
            source: None,
        });
    }
    Ok(DataCenterRecord {
        info: value.info,
        state: value.state,
        epoch: value.epoch,
        lease_ttl: value.lease_ttl_ms,
        lease_expiry_ms: value.lease_expiry_ms,
        version: DataCenterVersion(record.version.0),
    })
}

fn invalid(what: &'static str, error: serde_json::Error) -> ControlPlaneError {
    ControlPlaneError::Invalid { what, source: Some(Box::new(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordId, Space, Version};

    fn stored(key: &str, value: Bytes) -> Record {
        Record { id: RecordId::new(Space::DATA_CENTERS, key), tag: None, value, version: Version(7) }
    }

    /// Proves: R352, R356
    #[test]
    fn a_record_is_json_that_people_can_read() {
        let record = DataCenterRecord {
            info: DataCenterInfo::new("main", "eu", "").unwrap(),
            state: DataCenterState::Active,
            epoch: Epoch(3),
            lease_ttl: Millis(30_000),
            lease_expiry_ms: 1_700_000_030_000,
            version: DataCenterVersion(7),
        };
        let value = encode(&record).unwrap();
        let expected = r#"{"id":"eu.main","name":"main","region":"eu","zone":"","labels":{},"endpoints":[],"state":"active","epoch":3,"lease_ttl_ms":30000,"lease_expiry_ms":1700000030000}"#;
        assert_eq!(value, expected.as_bytes());
        assert_eq!(decode(&stored("eu.main", value)).unwrap(), record);
    }

    #[test]
    fn what_cannot_be_read_is_invalid() {
        let other =
            r#"{"id":"a","name":"a","state":"active","epoch":3,"lease_ttl_ms":1,"lease_expiry_ms":1}"#;
        for (key, value) in [("a", "{}"), ("a", "null"), ("b", other)] {
            let read = decode(&stored(key, Bytes::from_static(value.as_bytes())));
            assert!(matches!(read, Err(ControlPlaneError::Invalid { .. })), "{key} {value}");
        }
        assert!(decode(&stored("a", Bytes::from_static(other.as_bytes()))).is_ok());
    }
}
