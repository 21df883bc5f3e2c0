//! What a datacenter says about itself: its configuration, and the addresses of its nodes.

use std::sync::Arc;

use archipelago_protocol::datacenter::DataCenterInfo;
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::membership::MemberStatus;
use metrics::gauge;

use super::settings::Gateways;
use crate::node::NodeShared;

/// The description of this node's datacenter; `None` while there is nobody to be reached. A node that `speaks` for all knows
/// of all.
pub(super) fn described(node: &Arc<NodeShared>, speaks: bool) -> Option<DataCenterInfo> {
    let settings = &node.settings().datacenter;
    if !settings.info.endpoints().is_empty() {
        return Some(settings.info.clone());
    }
    let mut endpoints = vec![node.address()];
    if settings.gateways == Gateways::All && speaks {
        endpoints = addresses(node);
    }
    note_left_out("endpoints", endpoints.len().saturating_sub(DataCenterInfo::MAX_ENDPOINTS));
    endpoints.truncate(DataCenterInfo::MAX_ENDPOINTS);
    settings.info.clone().with_endpoints(endpoints).ok().filter(|info| !info.endpoints().is_empty())
}

/// Shows how many of something were more than the bound and are left out.
pub(super) fn note_left_out(what: &'static str, count: usize) {
    gauge!("archipelago_datacenter_left_out", "what" => what).set(count as f64);
}

/// Where the nodes that take part are reached, in the order of their ids, this one among them.
fn addresses(node: &NodeShared) -> Vec<NodeAddress> {
    let view = node.members().view();
    let stays = |status: MemberStatus| status < MemberStatus::Leaving;
    let others = view.members.values().filter(|member| member.info.id == node.id() || stays(member.status));
    let mut all: Vec<NodeAddress> = others.map(|member| member.info.address.clone()).collect();
    let own = node.address();
    if !all.contains(&own) {
        all.push(own);
    }
    all
}
