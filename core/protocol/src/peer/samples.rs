//! Hellos to test with.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::{AttemptId, Hello, KindEntry, LaneEnds, PeerKind, Seat, Versions};
use crate::identity::{Kind, Namespace, NodeId, NodeInfo};
use crate::message::{TypeHint, wire_id};

pub(super) fn kind(name: &str, messages: &[&str]) -> KindEntry {
    let messages: Vec<_> =
        messages.iter().map(|name| (wire_id(name), TypeHint::new(name).unwrap())).collect();
    KindEntry { name: Kind::new(name).unwrap(), messages }
}

/// A member with this id, on the link between the control arbiters.
pub(super) fn hello(id: u64) -> Hello {
    Hello {
        versions: Versions { oldest: 1, newest: 3 },
        cluster: "bank".into(),
        namespace: Namespace::new("prod").unwrap(),
        datacenter: "north".into(),
        node: NodeInfo {
            id: NodeId::new(id),
            name: "blue".into(),
            address: "10.0.0.7:4710".parse().unwrap(),
            roles: BTreeSet::from(["frontend".into()]),
            version: "0.1.0".into(),
            kinds: Default::default(),
        },
        kind: PeerKind::Member,
        lane: LaneEnds { from: Seat::Control, to: Seat::Control },
        attempt: AttemptId(1),
        expects: None,
        seats: vec![4710, 4711],
        kinds: vec![kind("Account", &["bank.Deposit", "bank.Withdraw"])],
        store: Some("etcd:1".into()),
        extensions: Vec::new(),
    }
}
