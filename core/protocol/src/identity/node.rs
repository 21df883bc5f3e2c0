//! A node: one process while it is a member, and what the others know about it.

use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::NodeAddress;
use super::text::parse_hex;

/// One incarnation of a node: drawn at random each time a process joins, never reused.
///
/// So no separate incarnation number is needed: a process that comes back is another node. Text: 16 lower-case
/// hexadecimal digits; serialised as a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The node with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl FromStr for NodeId {
    type Err = NodeIdError;
    fn from_str(text: &str) -> Result<Self, NodeIdError> {
        let number = parse_hex::<16>(text).and_then(|n| u64::try_from(n).ok());
        number.map(Self).ok_or(NodeIdError { len: text.len() })
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// The text is not a node id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("a node id is 16 lower-case hexadecimal digits, got {len} bytes that are not")]
pub struct NodeIdError {
    len: usize,
}

/// What a node tells the others about itself. Stored as JSON, for people to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The incarnation.
    pub id: NodeId,
    /// A name for people; two nodes may have the same one.
    pub name: String,
    /// Where the others reach it.
    pub address: NodeAddress,
    /// What it offers to do, for placement.
    pub roles: BTreeSet<String>,
    /// The version of the software it runs.
    pub version: String,
    /// The kinds whose actors it hosts.
    #[serde(default)]
    pub kinds: BTreeSet<String>,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    /// Proves: R114
    #[test]
    fn node_info_is_readable_json_and_back() {
        let info = NodeInfo {
            id: NodeId::new(7),
            name: "blue".into(),
            address: "10.0.0.7:4710".parse().unwrap(),
            roles: BTreeSet::from(["frontend".into()]),
            version: "0.1.0".into(),
            kinds: BTreeSet::from(["Account".into()]),
        };
        let json = serde_json::to_string(&info).unwrap();
        let expected = r#"{"id":7,"name":"blue","address":"10.0.0.7:4710","roles":["frontend"],"version":"0.1.0","kinds":["Account"]}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<NodeInfo>(&json).unwrap(), info);
    }

    #[test]
    fn a_node_id_has_one_text() {
        assert_eq!(NodeId::new(0xab).to_string(), "00000000000000ab");
        for refused in
            ["", "ab", "00000000000000AB", "+0000000000000ab", "000000000000000ab", "00000000000000ag"]
        {
            assert!(refused.parse::<NodeId>().is_err(), "{refused}");
        }
    }

    proptest! {
        /// Proves: R25
        #[test]
        fn a_node_id_survives_text_and_serde(number: u64) {
            let id = NodeId::new(number);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(serde_json::to_string(&id).unwrap(), number.to_string());
            let bytes = postcard::to_allocvec(&id).unwrap();
            prop_assert_eq!(postcard::from_bytes::<NodeId>(&bytes).unwrap(), id);
        }

        #[test]
        fn parsing_any_text_as_node_id_never_panics(text in any::<String>()) {
            let _ = text.parse::<NodeId>();
        }
    }
}
