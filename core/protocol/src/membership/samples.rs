//! Members for tests.

use alloc::collections::BTreeSet;
use alloc::format;

use super::{Member, MemberStatus};
use crate::identity::{NodeId, NodeInfo};

pub(crate) fn info(id: u64) -> NodeInfo {
    info_at(id, &format!("node-{id:04}:4710"))
}

pub(crate) fn info_at(id: u64, address: &str) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        name: format!("n{id}"),
        address: address.parse().unwrap(),
        roles: BTreeSet::new(),
        version: "0.1.0".into(),
        kinds: Default::default(),
    }
}

pub(crate) fn member(id: u64, status: MemberStatus) -> Member {
    Member { status, up_number: id, ..Member::joining(info(id)) }
}
