//! The names of messages, and the numbers that stand for them on the wire.

use alloc::sync::Arc;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::stable_hash;
use crate::identity::text::serde_as_text;

/// The number of a message type on the wire: the protocol's hash of its name.
///
/// Two messages of one actor with the same number are a compile error ([`assert_distinct`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WireId(u64);

impl WireId {
    /// The wire id with this number, as read from the wire; [`wire_id`] makes one from a name.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// The wire id of the message with this name.
pub const fn wire_id(name: &str) -> WireId {
    WireId(stable_hash(name.as_bytes()))
}

/// Stops the build, if used in a constant, when two of `ids` are equal.
///
/// ```
/// # use archipelago_protocol::message::{assert_distinct, wire_id};
/// const _: () = assert_distinct(&[wire_id("bank.Deposit"), wire_id("bank.Withdraw")]);
/// ```
/// ```compile_fail,E0080
/// # use archipelago_protocol::message::{assert_distinct, wire_id};
/// const _: () = assert_distinct(&[wire_id("bank.Deposit"), wire_id("bank.Deposit")]);
/// ```
///
/// # Panics
///
/// If two are equal; in a constant this is a compile error.
pub const fn assert_distinct(ids: &[WireId]) {
    let mut i = 0;
    while i < ids.len() {
        let mut j = i + 1;
        while j < ids.len() {
            assert!(
                ids[i].0 != ids[j].0,
                "two messages of one actor have the same wire id: give one of them another name"
            );
            j += 1;
        }
        i += 1;
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireId({self})")
    }
}

/// The stable name of a message type: crate and type name, or one given by hand such as `bank.withdraw.v2`.
///
/// Moving the type to another module changes nothing; changing its layout needs a new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageName(&'static str);

impl MessageName {
    /// The name `name`, for use in constants.
    ///
    /// # Panics
    ///
    /// If it is empty or longer than 200 bytes; in a constant this is a compile error.
    pub const fn new(name: &'static str) -> Self {
        assert!(!name.is_empty(), "the name of a message is empty");
        assert!(name.len() <= TypeHint::MAX_LEN, "the name of a message has more than 200 bytes");
        Self(name)
    }

    /// The name.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The number that stands for it.
    pub const fn wire_id(self) -> WireId {
        wire_id(self.0)
    }
}

impl fmt::Display for MessageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A message's name as it came over the wire, for a receiver that may not know its number.
///
/// 1 to 200 bytes without control characters, so that it can go into a log as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeHint(Arc<str>);

impl TypeHint {
    /// The longest hint, in bytes.
    pub const MAX_LEN: usize = 200;

    /// Checks `name` and takes a copy of it.
    ///
    /// # Errors
    ///
    /// It is empty, too long, or holds a control character.
    pub fn new(name: &str) -> Result<Self, TypeHintError> {
        let fits = (1..=Self::MAX_LEN).contains(&name.len());
        if fits && !name.contains(char::is_control) {
            Ok(Self(name.into()))
        } else {
            Err(TypeHintError { len: name.len() })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::str::FromStr for TypeHint {
    type Err = TypeHintError;
    fn from_str(text: &str) -> Result<Self, TypeHintError> {
        Self::new(text)
    }
}

serde_as_text!(TypeHint, "the name of a message type");

impl fmt::Display for TypeHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text cannot be a type hint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("a type hint has 1 to 200 bytes and no control characters, got {len} bytes")]
pub struct TypeHintError {
    len: usize,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    // Checked by the compiler.
    const IDS: [WireId; 3] =
        [wire_id("bank.Deposit"), wire_id("bank.Withdraw"), MessageName::new("x").wire_id()];
    const _: () = assert_distinct(&IDS);

    #[test]
    #[should_panic(expected = "two messages of one actor have the same wire id")]
    fn equal_wire_ids_stop_the_build() {
        assert_distinct(&[wire_id("a"), wire_id("b"), wire_id("c"), wire_id("b")]);
    }

    /// Proves: C23
    #[test]
    fn the_wire_id_is_the_protocols_hash_of_the_name() {
        assert_eq!(wire_id("bank.Deposit").as_u64(), stable_hash(b"bank.Deposit"));
        assert_eq!(wire_id("bank.Deposit").as_u64(), 0xd20b_3d9e_57d1_614c);
        assert_eq!(WireId::new(0xab).to_string(), "00000000000000ab");
    }

    #[test]
    fn a_hint_is_fit_for_logs() {
        assert!(TypeHint::new(&"x".repeat(200)).is_ok());
        for refused in ["", "a\nb", &"x".repeat(201)] {
            assert_eq!(TypeHint::new(refused), Err(TypeHintError { len: refused.len() }));
        }
        assert!(serde_json::from_str::<TypeHint>("\"\"").is_err());
    }

    proptest! {
        #[test]
        fn a_wire_id_survives_serde(number: u64) {
            let id = WireId::new(number);
            let bytes = postcard::to_allocvec(&id).unwrap();
            prop_assert_eq!(postcard::from_bytes::<WireId>(&bytes).unwrap(), id);
            prop_assert_eq!(serde_json::to_string(&id).unwrap(), number.to_string());
        }
    }
}
