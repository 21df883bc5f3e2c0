//! Strategies that draw identities for property tests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{ActorId, ActorPath, Kind, Namespace, NodeAddress, OwnedKey};

/// Any valid key, mostly odd ones.
pub(crate) fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{1,40}",
        "[a-z0-9.@_-]{1,64}",
        "[/:%? ]{1,8}",
        any::<[char; 4]>().prop_map(|chars| {
            let kept: String = chars.into_iter().filter(|c| !c.is_control()).collect();
            if kept.is_empty() { "-".into() } else { kept }
        }),
    ]
}

pub(crate) fn actor_id() -> impl Strategy<Value = ActorId> {
    ("[A-Za-z0-9._-]{1,20}", "[A-Za-z0-9._-]{1,20}", key())
        .prop_map(|(namespace, kind, key)| Namespace::new(&namespace).unwrap().actor_id(&kind, &key).unwrap())
}

pub(crate) fn node_address() -> impl Strategy<Value = NodeAddress> {
    let host = prop_oneof![
        "[a-zA-Z0-9._-]{1,20}",
        any::<[u8; 4]>().prop_map(|ip| format!("{}", core::net::Ipv4Addr::from(ip))),
        any::<[u16; 8]>().prop_map(|ip| format!("{}", core::net::Ipv6Addr::from(ip))),
    ];
    (host, any::<u16>()).prop_map(|(host, port)| NodeAddress::new(&host, port).unwrap())
}

pub(crate) fn actor_path() -> impl Strategy<Value = ActorPath> {
    let segment = key().prop_map(|key| match key.replace('/', "%").as_str() {
        dots @ ("." | "..") => format!("{dots}x"),
        segment => segment.into(),
    });
    let segments = proptest::collection::vec(segment, 1..4);
    ("[A-Za-z0-9._-]{1,20}", proptest::option::of(node_address()), segments).prop_filter_map(
        "the path is too long",
        |(system, address, segments): (String, Option<NodeAddress>, Vec<String>)| {
            let path = format!("/{}", segments.join("/"));
            match address {
                None => ActorPath::local(&system, &path).ok(),
                Some(address) => ActorPath::remote(&system, address, &path).ok(),
            }
        },
    )
}

pub(crate) fn owned_key() -> impl Strategy<Value = OwnedKey> {
    let kind = || "[A-Za-z0-9._-]{1,20}".prop_map(|kind| Kind::new(&kind).unwrap());
    prop_oneof![
        actor_id().prop_map(OwnedKey::Actor),
        (kind(), any::<u32>()).prop_map(|(kind, shard)| OwnedKey::shard(kind, shard)),
        (kind(), key()).prop_map(|(kind, partition)| OwnedKey::range(kind, &partition).unwrap()),
        "[A-Za-z0-9._-]{1,20}".prop_map(|name| OwnedKey::role(&name).unwrap()),
    ]
}
