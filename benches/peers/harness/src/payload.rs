//! The payload.

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The length of a payload.
pub const PAYLOAD_BYTES: usize = 100;

/// 100 bytes that nobody looks at, as in `benches/remote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload(pub [u8; PAYLOAD_BYTES]);

impl Payload {
    /// What is sent.
    pub const fn new() -> Self {
        Self([7; PAYLOAD_BYTES])
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::new()
    }
}

/// As one piece: serde would write an array byte by byte.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Whole)
    }
}

struct Whole;

impl Visitor<'_> for Whole {
    type Value = Payload;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("100 bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Payload, E> {
        bytes.try_into().map(Payload).map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}
