//! What a single key can hold: how text becomes its value, and what to say when it does not fit.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use archipelago_protocol::identity::{ActorKey, Namespace, NodeAddress};
use archipelago_protocol::placement::ShardCount;
use archipelago_protocol::session::OnStuck;
use figment::value::Value;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::backend::{self, BackendKind};
use super::lanes::Overflow;
use super::membership::{Leader, Placement, SplitBrain};
use super::optional;
use super::placement::Divided;
use super::sharding::Strategy;
use super::size::Size;
use super::span::{Idle, Pause, Span};
use super::transport::{Host, TransportKind};

/// The type of a key's value.
pub(super) trait Leaf: DeserializeOwned {
    /// How the text of a variable or of a builder call is read.
    const SHAPE: Shape;

    /// What would have been right, as the end of "expected ...".
    fn expected() -> String;
}

/// How plain text becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Taken as it is, so `007` stays text where text is wanted.
    Text,
    /// A whole number; text that is none stays text and is refused by the type.
    Number,
    /// `true` or `false`; other text stays text and is refused by the type.
    Truth,
    /// `a, b` or `[a, b]`.
    List,
}

impl Shape {
    pub(super) fn read(self, text: &str) -> Value {
        match self {
            Self::Text => Value::from(text),
            Self::Number => text.trim().parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
            Self::Truth => text.trim().parse::<bool>().map_or_else(|_| Value::from(text), Value::from),
            Self::List => Value::from(items(text)),
        }
    }
}

/// Text of at least one character.
pub(super) struct Text;

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() { Err(serde::de::Error::custom("empty text")) } else { Ok(Self) }
    }
}

impl Leaf for Text {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "text that is not empty".to_owned()
    }
}

impl Leaf for Namespace {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "1 to 64 letters, digits, dots, dashes and underscores".to_owned()
    }
}

impl Leaf for Span {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"a duration such as "500ms", "5s" or "10min""#.to_owned()
    }
}

impl Leaf for Pause {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"a duration such as "500ms" or "3s", or "0s""#.to_owned()
    }
}

impl Leaf for Idle {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"a duration such as "500ms", "5s" or "10min", or "never""#.to_owned()
    }
}

impl Leaf for NonZeroU32 {
    const SHAPE: Shape = Shape::Number;

    fn expected() -> String {
        format!("a whole number from 1 to {}", Self::MAX)
    }
}

impl Leaf for BTreeSet<String> {
    const SHAPE: Shape = Shape::List;

    fn expected() -> String {
        r#"a list of texts such as ["web", "worker"]"#.to_owned()
    }
}

impl Leaf for BTreeSet<ActorKey> {
    const SHAPE: Shape = Shape::List;

    fn expected() -> String {
        r#"a list of keys such as ["g", "n"]"#.to_owned()
    }
}

impl Leaf for bool {
    const SHAPE: Shape = Shape::Truth;

    fn expected() -> String {
        "true or false".to_owned()
    }
}

impl Leaf for PathBuf {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        "a path".to_owned()
    }
}

impl Leaf for NodeAddress {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"an address such as "127.0.0.1:4710""#.to_owned()
    }
}

impl Leaf for Host {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"a host without a port such as "10.0.0.1" or "node-1.example.org""#.to_owned()
    }
}

impl Leaf for TransportKind {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""none", "quic" (cargo feature `quic`), "tcp" (cargo feature `tcp`) or "own""#.to_owned()
    }
}

impl Leaf for Overflow {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""fail", "wait" or "drop-oldest""#.to_owned()
    }
}

impl Leaf for OnStuck {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""abort" or "report""#.to_owned()
    }
}

impl Leaf for Placement {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""spread", "local", "random" or "least-loaded""#.to_owned()
    }
}

impl Leaf for Divided {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""shards" or "actors""#.to_owned()
    }
}

impl Leaf for ShardCount {
    const SHAPE: Shape = Shape::Number;

    fn expected() -> String {
        format!("a whole number from 1 to {}", Self::MAX)
    }
}

impl Leaf for Strategy {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""least-shards" or "weigh-load""#.to_owned()
    }
}

impl Leaf for SplitBrain {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""keep-majority", "keep-oldest" or "static-quorum""#.to_owned()
    }
}

impl Leaf for Leader {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#""lowest-address" or "oldest""#.to_owned()
    }
}

impl Leaf for BackendKind {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        format!("a backend; {}", backend::known())
    }
}

/// An address to dial: at port 0 there is nobody.
pub(super) struct Dialled;

impl<'de> Deserialize<'de> for Dialled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let address = NodeAddress::deserialize(deserializer)?;
        if address.port() == 0 { Err(serde::de::Error::custom("port 0")) } else { Ok(Self) }
    }
}

impl Leaf for Dialled {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"the address of a node such as "10.0.0.1:4710""#.to_owned()
    }
}

impl Leaf for Vec<Dialled> {
    const SHAPE: Shape = Shape::List;

    fn expected() -> String {
        r#"a list of addresses of nodes such as ["10.0.0.1:4710", "10.0.0.2:4710"]"#.to_owned()
    }
}

/// Room for something: a size above zero.
pub(super) struct Room;

impl<'de> Deserialize<'de> for Room {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let size = Size::deserialize(deserializer)?;
        if size.bytes() == 0 { Err(serde::de::Error::custom("no room")) } else { Ok(Self) }
    }
}

impl Leaf for Room {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"a size above zero such as "512 KiB" or "8 MiB""#.to_owned()
    }
}

/// What `T` takes, or empty text.
pub(super) struct Optional<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Optional<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        optional::deserialize::<T, D>(deserializer).map(|_| Self(PhantomData))
    }
}

impl<T: Leaf> Leaf for Optional<T> {
    const SHAPE: Shape = T::SHAPE;

    fn expected() -> String {
        format!(r#"{}, or "" for none"#, T::expected())
    }
}

/// A number of threads, or "auto".
pub(super) struct Arbiters(Option<NonZeroU16>);

impl<'de> Deserialize<'de> for Arbiters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(NonZeroU16),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self(Some(number))),
            Written::Text(text) if text == AUTO => Ok(Self(None)),
            Written::Text(_) => Err(serde::de::Error::custom("neither a number nor auto")),
        }
    }
}

impl Leaf for Arbiters {
    const SHAPE: Shape = Shape::Number;

    fn expected() -> String {
        format!("a whole number from 1 to {}, or {AUTO:?}", NonZeroU16::MAX)
    }
}

/// For `#[serde(with = "arbiters")]`.
pub(super) mod arbiters {
    use std::num::NonZeroU16;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{AUTO, Arbiters};

    pub(in super::super) fn serialize<S: Serializer>(
        number: &Option<NonZeroU16>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => number.serialize(serializer),
            None => serializer.serialize_str(AUTO),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NonZeroU16>, D::Error> {
        Arbiters::deserialize(deserializer).map(|arbiters| arbiters.0)
    }
}

fn items(text: &str) -> Vec<String> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let items = inner.split(',').map(|item| item.trim().trim_matches('"'));
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

const AUTO: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stay_text_where_text_is_wanted() {
        assert_eq!(Shape::Text.read("007").as_str(), Some("007"));
        assert_eq!(Shape::Number.read("007").to_i128(), Some(7));
    }

    #[test]
    fn lists_are_read_with_and_without_brackets() {
        for text in ["a,b", " [a, b] ", r#"["a", "b"]"#] {
            assert_eq!(items(text), ["a", "b"], "{text:?}");
        }
        assert!(items("[]").is_empty() && items("").is_empty());
    }
}
