//! What a node is told about its datacenter.

use std::sync::Arc;

use archipelago_protocol::datacenter::{
    ChooseDataCenter, ControllerSettings, DataCenterInfo, HomeByKey, OnStale,
};

/// The datacenter of a node. Of effect only with a control plane.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DataCenterSettings {
    /// What it says about itself. Without endpoints, those follow from `gateways`. Default: the name `local`.
    pub info: DataCenterInfo,
    /// Whose addresses other datacenters are told, if `info` names none. Default: those of all nodes.
    pub gateways: Gateways,
    /// How often its controller does what.
    pub controller: ControllerSettings,
    /// What a placement in another datacenter does while the map is stale. Default: fail.
    pub stale_placement: OnStale,
    /// Which of several datacenters that fit takes an actor that is placed. Default: the key says it.
    pub placement: Arc<dyn ChooseDataCenter>,
}

/// Whose addresses other datacenters are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gateways {
    /// Those of all nodes that take part.
    #[default]
    All,
    /// That of the node with the controller's duty.
    Leader,
}

impl Default for DataCenterSettings {
    fn default() -> Self {
        Self {
            info: DataCenterInfo::new("local", "", "").expect("a plain name is valid"),
            gateways: Gateways::All,
            controller: ControllerSettings::default(),
            stale_placement: OnStale::Fail,
            placement: Arc::new(HomeByKey),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: C33
    #[test]
    fn while_the_map_is_stale_lookups_proceed_and_placements_fail() {
        let lookup = archipelago_protocol::datacenter::DiscoverySettings::default().on_stale;
        assert_eq!(
            (lookup, DataCenterSettings::default().stale_placement),
            (OnStale::Proceed, OnStale::Fail)
        );
    }
}
