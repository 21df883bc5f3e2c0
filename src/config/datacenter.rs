//! `[datacenter]`: what this node's datacenter says about itself, and how it follows the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::datacenter::{
    ChooseDataCenter, ControllerSettings, DataCenterId, DataCenterInfo, DataCenterInfoError, HomeByKey,
    NearestFirst, RegionFirst,
};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;
use serde::{Deserialize, Deserializer, Serialize};

use super::leaf::{Leaf, Shape};
use super::{optional, span};

/// `[datacenter]`: the datacenter of this node; the same on all its nodes. Everything but the name is of effect only with a
/// control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct DataCenterSettings {
    /// Its identity among all datacenters; none is zone, region and name, joined with dots.
    #[serde(with = "optional")]
    pub id: Option<DataCenterId>,
    /// Its name. Nodes of another datacenter are refused as members.
    pub name: String,
    /// Its region; may be empty.
    pub region: String,
    /// Its zone; may be empty.
    pub zone: String,
    /// `[datacenter.labels]`: by what others choose it.
    pub labels: BTreeMap<String, String>,
    /// Where other datacenters reach it; none is what `gateways` says.
    pub endpoints: Vec<NodeAddress>,
    /// Whose addresses other datacenters are told.
    pub gateways: Gateways,
    /// Between two heartbeats.
    #[serde(with = "span")]
    pub heartbeat: Duration,
    /// Between two readings of all datacenters.
    #[serde(with = "span")]
    pub refresh: Duration,
    /// How often to look which node leads.
    #[serde(with = "span")]
    pub leader_check: Duration,
    /// Without an answer for longer than this the datacenters are stale.
    #[serde(with = "span")]
    pub max_staleness: Duration,
    /// How long one request to the control plane may take.
    #[serde(with = "span")]
    pub request_timeout: Duration,
    /// Whether changes are watched, too.
    pub watch: bool,
    /// The longest pause after a request that failed.
    #[serde(with = "span")]
    pub max_backoff: Duration,
    /// Which of several datacenters that fit takes an actor that this node places.
    pub placement: DataCenterPlacement,
    /// What to do about an actor that nobody has, as far as anybody answers, while a datacenter says nothing at all.
    pub on_silence: OnSilence,
    /// `[datacenter.on_stale]`: what to do while the datacenters are stale.
    pub on_stale: OnStaleSettings,
}

/// `[datacenter.on_stale]`: what to do while the control plane has not answered for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct OnStaleSettings {
    /// When an actor is looked for in other datacenters.
    pub lookup: OnStale,
    /// When an actor is placed in another datacenter.
    pub placement: OnStale,
}

/// What to do while the datacenters are stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnStale {
    /// Go on with what was known last.
    Proceed,
    /// Refuse.
    Fail,
}

/// What to do about an actor that was found nowhere while a datacenter says nothing at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnSilence {
    /// It comes to life at home, and may live in two datacenters.
    #[default]
    Proceed,
    /// The call fails.
    Fail,
}

/// Which of several datacenters takes an actor that is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DataCenterPlacement {
    /// The one that follows from the key, the same for every node.
    #[default]
    ByKey,
    /// The one that answers this node fastest.
    Nearest,
    /// One of the own region, the own zone first; the nearest of them.
    Region,
}

/// Whose addresses other datacenters are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gateways {
    /// Those of all nodes.
    All,
    /// That of the node that speaks for the datacenter.
    Leader,
}

impl DataCenterSettings {
    /// What the datacenter says about itself.
    ///
    /// # Errors
    ///
    /// Something is too long, or there is too much of it.
    pub(crate) fn info(&self) -> Result<DataCenterInfo, DataCenterInfoError> {
        let info = DataCenterInfo::new(&self.name, &self.region, &self.zone)?;
        let info = info.with_labels(self.labels.clone())?.with_endpoints(self.endpoints.clone())?;
        Ok(match &self.id {
            Some(id) => info.with_id(id.clone()),
            None => info,
        })
    }

    /// How often the controller does what, with leases of `lease_ttl`.
    pub(crate) fn controller(&self, lease_ttl: Duration) -> ControllerSettings {
        ControllerSettings {
            heartbeat: Millis::from_duration(self.heartbeat),
            refresh: Millis::from_duration(self.refresh),
            leader_check: Millis::from_duration(self.leader_check),
            max_staleness: Millis::from_duration(self.max_staleness),
            request_timeout: Millis::from_duration(self.request_timeout),
            watch: self.watch,
            max_backoff: Millis::from_duration(self.max_backoff),
            lease_ttl: Millis::from_duration(lease_ttl),
        }
    }
}

impl Default for DataCenterSettings {
    fn default() -> Self {
        let controller = ControllerSettings::default();
        Self {
            id: None,
            name: "local".to_owned(),
            region: String::new(),
            zone: String::new(),
            labels: BTreeMap::new(),
            endpoints: Vec::new(),
            gateways: Gateways::All,
            heartbeat: controller.heartbeat.to_duration(),
            refresh: controller.refresh.to_duration(),
            leader_check: controller.leader_check.to_duration(),
            max_staleness: controller.max_staleness.to_duration(),
            request_timeout: controller.request_timeout.to_duration(),
            watch: controller.watch,
            max_backoff: controller.max_backoff.to_duration(),
            placement: DataCenterPlacement::default(),
            on_silence: OnSilence::default(),
            on_stale: OnStaleSettings::default(),
        }
    }
}

impl Default for OnStaleSettings {
    fn default() -> Self {
        Self { lookup: OnStale::Proceed, placement: OnStale::Fail }
    }
}

impl From<OnStale> for archipelago_protocol::datacenter::OnStale {
    fn from(choice: OnStale) -> Self {
        match choice {
            OnStale::Proceed => Self::Proceed,
            OnStale::Fail => Self::Fail,
        }
    }
}

impl From<OnSilence> for archipelago_protocol::datacenter::OnSilence {
    fn from(choice: OnSilence) -> Self {
        match choice {
            OnSilence::Proceed => Self::Proceed,
            OnSilence::Fail => Self::Fail,
        }
    }
}

impl From<DataCenterPlacement> for Arc<dyn ChooseDataCenter> {
    fn from(choice: DataCenterPlacement) -> Self {
        match choice {
            DataCenterPlacement::ByKey => Arc::new(HomeByKey),
            DataCenterPlacement::Nearest => Arc::new(NearestFirst),
            DataCenterPlacement::Region => Arc::new(RegionFirst),
        }
    }
}

impl From<Gateways> for archipelago_runtime::Gateways {
    fn from(choice: Gateways) -> Self {
        match choice {
            Gateways::All => Self::All,
            Gateways::Leader => Self::Leader,
        }
    }
}

impl Leaf for OnStale {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""proceed" or "fail""#.to_owned()
    }
}

impl Leaf for OnSilence {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""proceed" or "fail""#.to_owned()
    }
}

impl Leaf for DataCenterPlacement {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""by-key", "nearest" or "region""#.to_owned()
    }
}

impl Leaf for Gateways {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""all" or "leader""#.to_owned()
    }
}

impl Leaf for DataCenterId {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "1 to 200 letters, digits, dots, dashes and underscores".to_owned()
    }
}

/// The name of a datacenter, a region or a zone.
pub(super) struct PlaceName;

impl<'de> Deserialize<'de> for PlaceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        DataCenterInfo::new(&text, "", "").map(|_| Self).map_err(serde::de::Error::custom)
    }
}

impl Leaf for PlaceName {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "1 to 64 letters, digits, dots, dashes and underscores".to_owned()
    }
}

/// The value of a label.
pub(super) struct LabelValue;

impl<'de> Deserialize<'de> for LabelValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = text.len() <= DataCenterInfo::MAX_TEXT && !text.chars().any(char::is_control);
        if fits { Ok(Self) } else { Err(serde::de::Error::custom("no value of a label")) }
    }
}

impl Leaf for LabelValue {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        format!("text of at most {} bytes", DataCenterInfo::MAX_TEXT)
    }
}
