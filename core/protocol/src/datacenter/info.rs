//! What a datacenter tells the others about itself.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::id::{DataCenterId, DataCenterIdError, is_plain};
use crate::identity::NodeAddress;

/// The metadata of a datacenter: only what routing and placement need. Every value was checked when it was made, also
/// when it was decoded, so a record never outgrows a store's limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct DataCenterInfo {
    id: DataCenterId,
    name: String,
    region: String,
    zone: String,
    labels: BTreeMap<String, String>,
    endpoints: Vec<NodeAddress>,
}

impl DataCenterInfo {
    /// The greatest length of a name, region, zone, label or value of a label, in bytes.
    pub const MAX_TEXT: usize = 64;
    /// The greatest number of labels.
    pub const MAX_LABELS: usize = 64;
    /// The greatest number of endpoints.
    pub const MAX_ENDPOINTS: usize = 64;

    /// A datacenter without labels and endpoints. Its id is `zone.region.name`; region and zone may be empty.
    ///
    /// # Errors
    ///
    /// The name is empty, or a part is too long or holds other characters than `[A-Za-z0-9._-]`.
    pub fn new(name: &str, region: &str, zone: &str) -> Result<Self, DataCenterInfoError> {
        Unchecked {
            id: DataCenterId::of_parts(zone, region, name)?,
            name: name.into(),
            region: region.into(),
            zone: zone.into(),
            labels: BTreeMap::new(),
            endpoints: Vec::new(),
        }
        .check()
    }

    /// The same under an id of the operator's choice.
    pub fn with_id(self, id: DataCenterId) -> Self {
        Self { id, ..self }
    }

    /// The same with these labels, by which policies choose.
    ///
    /// # Errors
    ///
    /// There are too many, one is too long, or holds control characters.
    pub fn with_labels(self, labels: BTreeMap<String, String>) -> Result<Self, DataCenterInfoError> {
        check_labels(&labels)?;
        Ok(Self { labels, ..self })
    }

    /// The same with these addresses, in order of preference, at which other datacenters reach it.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn with_endpoints(self, endpoints: Vec<NodeAddress>) -> Result<Self, DataCenterInfoError> {
        check_endpoints(&endpoints)?;
        Ok(Self { endpoints, ..self })
    }

    /// The stable identity.
    pub const fn id(&self) -> &DataCenterId {
        &self.id
    }

    /// The name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The region; may be empty.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The zone; may be empty.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// The labels.
    pub const fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Where other datacenters reach it.
    pub fn endpoints(&self) -> &[NodeAddress] {
        &self.endpoints
    }
}

/// Why something is not the metadata of a datacenter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DataCenterInfoError {
    /// The id is not one.
    #[error(transparent)]
    Id(#[from] DataCenterIdError),
    /// A datacenter has a name.
    #[error("a datacenter has a name")]
    NoName,
    /// A text is too long or holds characters that it may not hold.
    #[error("the {field} has more than {} bytes, or other characters than allowed", DataCenterInfo::MAX_TEXT)]
    Text {
        /// Which one.
        field: &'static str,
    },
    /// There are too many of them.
    #[error("{len} {field} are more than the {max} allowed")]
    TooMany {
        /// Of what.
        field: &'static str,
        /// How many there are.
        len: usize,
        /// How many there may be.
        max: usize,
    },
}

/// The same fields as somebody wrote them.
#[derive(Deserialize)]
struct Unchecked {
    id: DataCenterId,
    name: String,
    #[serde(default)]
    region: String,
    #[serde(default)]
    zone: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    endpoints: Vec<NodeAddress>,
}

impl Unchecked {
    fn check(self) -> Result<DataCenterInfo, DataCenterInfoError> {
        let Self { id, name, region, zone, labels, endpoints } = self;
        if name.is_empty() {
            return Err(DataCenterInfoError::NoName);
        }
        for (field, text) in [("name", &name), ("region", &region), ("zone", &zone)] {
            check_text(field, text, is_plain)?;
        }
        check_labels(&labels)?;
        check_endpoints(&endpoints)?;
        Ok(DataCenterInfo { id, name, region, zone, labels, endpoints })
    }
}

impl TryFrom<Unchecked> for DataCenterInfo {
    type Error = DataCenterInfoError;
    fn try_from(unchecked: Unchecked) -> Result<Self, DataCenterInfoError> {
        unchecked.check()
    }
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), DataCenterInfoError> {
    check_count("labels", labels.len(), DataCenterInfo::MAX_LABELS)?;
    let mut texts = labels.iter().flat_map(|(label, value)| [label, value]);
    texts.try_for_each(|text| check_text("label", text, |c| !c.is_control()))
}

fn check_endpoints(endpoints: &[NodeAddress]) -> Result<(), DataCenterInfoError> {
    check_count("endpoints", endpoints.len(), DataCenterInfo::MAX_ENDPOINTS)
}

fn check_count(field: &'static str, len: usize, max: usize) -> Result<(), DataCenterInfoError> {
    if len > max { Err(DataCenterInfoError::TooMany { field, len, max }) } else { Ok(()) }
}

fn check_text(
    field: &'static str,
    text: &str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), DataCenterInfoError> {
    let fits = text.len() <= DataCenterInfo::MAX_TEXT && text.chars().all(allowed);
    if fits { Ok(()) } else { Err(DataCenterInfoError::Text { field }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: R353
    #[test]
    fn the_id_is_zone_region_and_name_or_the_name_alone() {
        let id = |name, region, zone| DataCenterInfo::new(name, region, zone).unwrap().id().clone();
        assert_eq!(id("main", "eu-west", "a").as_str(), "a.eu-west.main");
        assert_eq!(id("main", "", "").as_str(), "main");
        assert_eq!(id("main", "eu-west", "").as_str(), "eu-west.main");
        let chosen = DataCenterId::new("north").unwrap();
        assert_eq!(DataCenterInfo::new("main", "", "").unwrap().with_id(chosen.clone()).id(), &chosen);
    }

    /// Proves: R350, R351, R354
    #[test]
    fn metadata_survives_json_and_is_readable() {
        let labels = BTreeMap::from([("tier".into(), "prod".into())]);
        let endpoints = alloc::vec!["10.0.0.1:4710".parse().unwrap()];
        let info = DataCenterInfo::new("main", "eu", "a").unwrap();
        let info = info.with_labels(labels).unwrap().with_endpoints(endpoints).unwrap();
        let json = serde_json::to_string(&info).unwrap();
        let expected = r#"{"id":"a.eu.main","name":"main","region":"eu","zone":"a","labels":{"tier":"prod"},"endpoints":["10.0.0.1:4710"]}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<DataCenterInfo>(&json).unwrap(), info);
    }

    #[test]
    fn each_fault_is_refused_when_made_and_when_decoded() {
        assert_eq!(DataCenterInfo::new("", "eu", ""), Err(DataCenterInfoError::NoName));
        let long = "x".repeat(65);
        assert_eq!(DataCenterInfo::new("a", &long, ""), Err(DataCenterInfoError::Text { field: "region" }));
        let info = DataCenterInfo::new("a", "", "").unwrap();
        let label = |text: &str| BTreeMap::from([(text.into(), String::new())]);
        assert_eq!(
            info.clone().with_labels(label("a\nb")),
            Err(DataCenterInfoError::Text { field: "label" })
        );
        let many = (0..65).map(|port| NodeAddress::new("h", port).unwrap()).collect();
        let refused = DataCenterInfoError::TooMany { field: "endpoints", len: 65, max: 64 };
        assert_eq!(info.with_endpoints(many), Err(refused));
        assert!(serde_json::from_str::<DataCenterInfo>(r#"{"id":"a","name":""}"#).is_err());
        assert!(serde_json::from_str::<DataCenterInfo>(r#"{"id":"a","name":"b c"}"#).is_err());
        assert!(serde_json::from_str::<DataCenterInfo>(r#"{"id":"a","name":"b"}"#).is_ok());
    }
}
