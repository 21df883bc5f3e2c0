//! The value of a kind's table record: JSON, because people read it when something is wrong.

use archipelago_protocol::contract::{
    BoxError, Epoch, RecordVersion, RoutingTableError, SavedTable, TableVersion,
};
use archipelago_protocol::identity::{ActorKey, NodeAddress, NodeId, PartitionName};
use archipelago_protocol::ranges::{KeyRange, OwnerStatus, RangeTable, RouteEntry, RouteOwner};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::record::Record;

#[derive(Serialize, Deserialize)]
struct Value {
    version: u64,
    epoch: Epoch,
    /// Empty if the record was sealed before there was a table: a table is never empty.
    entries: Vec<EntryValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryValue {
    partition_id: PartitionName,
    key_range_start: String,
    /// Empty = no upper bound.
    key_range_end: String,
    node_id: String,
    node_address: NodeAddress,
    node_status: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<PartitionName>,
}

pub(super) fn encode(saved: &SavedTable) -> Result<Bytes, RoutingTableError> {
    let entries = saved.table.iter().flat_map(RangeTable::entries).map(entry_value).collect();
    let value = Value { version: saved.version.0, epoch: saved.epoch, entries };
    let bytes = serde_json::to_vec(&value);
    bytes.map(Bytes::from).map_err(|error| invalid("a table cannot be written", Box::new(error)))
}

pub(super) fn decode(record: &Record) -> Result<SavedTable, RoutingTableError> {
    let unreadable = |error| invalid("a table cannot be read", error);
    let value: Value = serde_json::from_slice(&record.value).map_err(|error| unreadable(Box::new(error)))?;
    let entries = value.entries.into_iter().map(entry).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let table = (!entries.is_empty()).then(|| RangeTable::new(entries)).transpose();
    Ok(SavedTable {
        version: TableVersion(value.version),
        record: RecordVersion(record.version.0),
        epoch: value.epoch,
        table: table.map_err(|error| unreadable(Box::new(error)))?,
    })
}

fn entry_value(entry: &RouteEntry) -> EntryValue {
    let bound = |bound: Option<&ActorKey>| bound.map_or_else(String::new, |key| key.as_str().to_owned());
    EntryValue {
        partition_id: entry.partition.clone(),
        key_range_start: bound(entry.range.start()),
        key_range_end: bound(entry.range.end()),
        node_id: entry.owner.node.to_string(),
        node_address: entry.owner.address.clone(),
        node_status: match entry.owner.status {
            OwnerStatus::Up => 0,
            OwnerStatus::Leaving => 1,
            OwnerStatus::Down => 2,
        },
        parents: entry.parents.clone(),
    }
}

fn entry(value: EntryValue) -> Result<RouteEntry, BoxError> {
    let bound = |text: String| if text.is_empty() { Ok(None) } else { ActorKey::new(&text).map(Some) };
    let range = KeyRange::new(bound(value.key_range_start)?, bound(value.key_range_end)?);
    let node: NodeId = value.node_id.parse()?;
    let status = match value.node_status {
        0 => OwnerStatus::Up,
        1 => OwnerStatus::Leaving,
        2 => OwnerStatus::Down,
        other => return Err(format!("{other} is not the status of a node").into()),
    };
    Ok(RouteEntry {
        partition: value.partition_id,
        range: range.ok_or("a range is empty")?,
        owner: RouteOwner { node, address: value.node_address, status },
        parents: value.parents,
    })
}

fn invalid(what: &'static str, source: BoxError) -> RoutingTableError {
    RoutingTableError::Invalid { what, source: Some(source) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordId, Space, Version};

    fn stored(value: Bytes) -> Record {
        Record { id: RecordId::new(Space::TABLES, "Account"), tag: None, value, version: Version(7) }
    }

    fn saved() -> SavedTable {
        let address = NodeAddress::new("10.0.0.1", 4_710).unwrap();
        let owner = |status| RouteOwner { node: NodeId::new(0xab), address: address.clone(), status };
        let name = |text| PartitionName::new(text).unwrap();
        let table = RangeTable::whole(name("all"), owner(OwnerStatus::Up));
        let (low, high) = ((name("low"), owner(OwnerStatus::Up)), (name("high"), owner(OwnerStatus::Down)));
        let table = table.split(&name("all"), &ActorKey::new("m").unwrap(), low, high).unwrap();
        let (version, record) = (TableVersion(2), RecordVersion(7));
        SavedTable { version, record, epoch: Epoch(3), table: Some(table) }
    }

    /// Proves: R110, R111, R112, R113, R323
    #[test]
    fn a_table_is_json_with_the_documented_names() {
        let value = encode(&saved()).unwrap();
        let expected = concat!(
            r#"{"version":2,"epoch":3,"entries":["#,
            r#"{"partitionId":"low","keyRangeStart":"","keyRangeEnd":"m","nodeId":"00000000000000ab","#,
            r#""nodeAddress":"10.0.0.1:4710","nodeStatus":0,"parents":["all"]},"#,
            r#"{"partitionId":"high","keyRangeStart":"m","keyRangeEnd":"","nodeId":"00000000000000ab","#,
            r#""nodeAddress":"10.0.0.1:4710","nodeStatus":2,"parents":["all"]}]}"#,
        );
        assert_eq!(value, expected.as_bytes());
        assert_eq!(decode(&stored(value)).unwrap(), saved());
    }

    #[test]
    fn a_sealed_record_without_a_table_survives() {
        let sealed = SavedTable { table: None, ..saved() };
        let value = encode(&sealed).unwrap();
        assert_eq!(value, r#"{"version":2,"epoch":3,"entries":[]}"#.as_bytes());
        assert_eq!(decode(&stored(value)).unwrap(), sealed);
    }

    /// The size of a table is what the store's limit is about: a thousand nodes with four partitions each fit.
    ///
    /// Proves: R338
    #[test]
    fn a_table_of_the_greatest_size_stays_below_the_default_limit() {
        let address = NodeAddress::new("node-1234.example.net", 4_710).unwrap();
        let entry = |n: usize| {
            let bound = |n: usize| (0 < n && n < RangeTable::MAX_PARTITIONS).then(|| format!("{n:08}"));
            let key = |n| bound(n).map(|text| ActorKey::new(&text).unwrap());
            RouteEntry {
                partition: PartitionName::new(&format!("p{n:08}")).unwrap(),
                range: KeyRange::new(key(n), key(n + 1)).unwrap(),
                owner: RouteOwner {
                    node: NodeId::new(n as u64),
                    address: address.clone(),
                    status: OwnerStatus::Up,
                },
                parents: Vec::new(),
            }
        };
        let table = RangeTable::new((0..RangeTable::MAX_PARTITIONS).map(entry).collect()).unwrap();
        let value = encode(&SavedTable { table: Some(table), ..saved() }).unwrap();
        assert!((600_000..768 << 10).contains(&value.len()), "{}", value.len());
    }

    #[test]
    fn what_is_no_table_is_invalid_and_not_absent() {
        let good = String::from_utf8(encode(&saved()).unwrap().to_vec()).unwrap();
        let broken = [
            "null".to_owned(),
            good.replace(r#""keyRangeEnd":"m""#, r#""keyRangeEnd":"n""#),
            good.replace(r#""nodeStatus":2"#, r#""nodeStatus":9"#),
            good.replace("00000000000000ab", "ab"),
            good.replace(r#""low""#, r#""high""#),
        ];
        for value in broken {
            let read = decode(&stored(Bytes::from(value.clone())));
            assert!(matches!(read, Err(RoutingTableError::Invalid { .. })), "{value}");
        }
    }
}
