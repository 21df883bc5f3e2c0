//! What two nodes tell each other before anything else.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::refusal::{Refusal, RefusalReason};
use crate::identity::{Kind, Namespace, NodeId, NodeInfo};
use crate::message::{TypeHint, WireId};

/// Who one side of a connection is, and what it can do.
///
/// Its fields never change, since peers of other versions must read it: what later versions add goes into
/// [`extensions`](Self::extensions), and whoever does not know a tag there passes over it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hello {
    /// The versions of the protocol it speaks.
    pub versions: Versions,
    /// The name of its cluster.
    pub cluster: String,
    /// The namespace of its actors.
    pub namespace: Namespace,
    /// The name of its datacenter.
    pub datacenter: String,
    /// The node itself.
    pub node: NodeInfo,
    /// As what it takes part.
    pub kind: PeerKind,
    /// Between which seats the connection is, as the sender of this sees it.
    pub lane: LaneEnds,
    /// The number of the sender's newest dial on this link, so that a hello that was overtaken is known as such.
    pub attempt: AttemptId,
    /// Whom the sender means to talk to; none if it only knows an address.
    pub expects: Option<NodeId>,
    /// The ports where its arbiters listen: the control arbiter first, then the data arbiters.
    pub seats: Vec<u16>,
    /// The kinds it knows; frames to it name a kind by its place here.
    pub kinds: Vec<KindEntry>,
    /// Which store it sees, where two nodes may believe to share one and do not.
    pub store: Option<String>,
    /// What later versions add.
    pub extensions: Vec<(u16, Bytes)>,
}

/// The answer to a hello that fits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u16,
    /// The side that was dialled.
    pub hello: Hello,
}

impl Welcome {
    /// Checks the answer to our own hello `ours`, and says which version to speak.
    ///
    /// # Errors
    ///
    /// As [`negotiate`](super::negotiate); also if the other side chose a version that we do not speak.
    pub fn check(&self, ours: &Hello) -> Result<u16, Refusal> {
        super::negotiate(ours, &self.hello)?;
        if ours.versions.contain(self.version) {
            return Ok(self.version);
        }
        let text = alloc::format!("the peer chose version {}, we speak {}", self.version, ours.versions);
        Err(Refusal::new(RefusalReason::Version, text))
    }
}

/// A range of protocol versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Versions {
    /// The oldest.
    pub oldest: u16,
    /// The newest.
    pub newest: u16,
}

impl Versions {
    /// Whether `version` is one of them.
    pub const fn contain(self, version: u16) -> bool {
        self.oldest <= version && version <= self.newest
    }

    /// The newest version of both ranges.
    pub fn newest_common(self, other: Self) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (self.contain(newest) && other.contain(newest)).then_some(newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.oldest, self.newest)
    }
}

/// As what a node takes part in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerKind {
    /// A member of the same cluster and datacenter.
    Member,
    /// Hosts nothing, only sends.
    Client,
    /// Speaks for another datacenter.
    Datacenter,
    /// A kind that this version does not know.
    Other(u16),
}

impl PeerKind {
    const fn as_u16(self) -> u16 {
        match self {
            Self::Member => 0,
            Self::Client => 1,
            Self::Datacenter => 2,
            Self::Other(code) => code,
        }
    }

    const fn from_u16(code: u16) -> Self {
        match code {
            0 => Self::Member,
            1 => Self::Client,
            2 => Self::Datacenter,
            other => Self::Other(other),
        }
    }
}

impl Serialize for PeerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_u16().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PeerKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u16::deserialize(deserializer).map(Self::from_u16)
    }
}

/// One arbiter of a node, as an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Seat {
    /// The arbiter of membership, sessions and administration.
    Control,
    /// A data arbiter, by its number from zero.
    Data(u16),
}

impl Seat {
    /// Its place in [`Hello::seats`].
    pub const fn place(self) -> usize {
        match self {
            Self::Control => 0,
            Self::Data(number) => number as usize + 1,
        }
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Data(number) => write!(f, "data {number}"),
        }
    }
}

/// The two ends of a connection, as one side sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneEnds {
    /// The seat of this side.
    pub from: Seat,
    /// The seat of the other side.
    pub to: Seat,
}

impl LaneEnds {
    /// The same ends as the other side sees them.
    pub const fn mirrored(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// One dial of a node on one link; later ones have greater numbers. Zero: never dialled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u64);

/// A kind of actors that a node knows, and its messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KindEntry {
    /// The kind.
    pub name: Kind,
    /// Its messages; frames name a message by its place here.
    pub messages: Vec<(WireId, TypeHint)>,
}
