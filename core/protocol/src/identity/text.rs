//! The alphabets of our names, percent-encoding, and serde by text.
//!
//! Two alphabets: a *name* holds only `[A-Za-z0-9._-]` and is written as it is; *free text* holds anything but
//! control characters and is percent-encoded wherever it becomes part of a longer text.
//!
//! Invariant: [`decode`] accepts exactly what [`Encoded`] writes, so equal values have equal texts.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::{ActorIdError, IdField};

/// Checks `text` as a name: not empty, not too long, `[A-Za-z0-9._-]`.
pub(crate) fn check_name(text: &str, field: IdField) -> Result<(), ActorIdError> {
    check(text, field, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Checks `text` as free text: not empty, not too long, no control characters.
pub(crate) fn check_free_text(text: &str, field: IdField) -> Result<(), ActorIdError> {
    check(text, field, |c| !c.is_control())
}

fn check(text: &str, field: IdField, allowed: impl Fn(char) -> bool) -> Result<(), ActorIdError> {
    if text.is_empty() {
        return Err(ActorIdError::Empty { field });
    }
    if text.len() > field.max_len() {
        return Err(ActorIdError::TooLong { field, len: text.len(), max: field.max_len() });
    }
    match text.char_indices().find(|&(_, c)| !allowed(c)) {
        Some((at, character)) => Err(ActorIdError::InvalidCharacter { field, character, at }),
        None => Ok(()),
    }
}

/// Displays free text percent-encoded: every byte outside `[A-Za-z0-9._~@-]` becomes `%XX`, upper case.
pub(crate) struct Encoded<'a>(pub(crate) &'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if is_plain(byte) { f.write_char(char::from(byte))? } else { write!(f, "%{byte:02X}")? }
        }
        Ok(())
    }
}

/// Undoes [`Encoded`]; a text that [`Encoded`] would not write is refused with the byte where it goes wrong.
pub(crate) fn decode(text: &str) -> Result<String, usize> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if is_plain(byte) {
            decoded.push(byte);
            at += 1;
        } else {
            decoded.push(escaped(&bytes[at..]).ok_or(at)?);
            at += 3;
        }
    }
    String::from_utf8(decoded).map_err(|_| 0)
}

/// The byte that the escape at the start of `bytes` stands for, if it needs an escape at all.
fn escaped(bytes: &[u8]) -> Option<u8> {
    let &[b'%', high, low, ..] = bytes else { return None };
    let byte = hex_digit(high)? << 4 | hex_digit(low)?;
    (!is_plain(byte)).then_some(byte)
}

const fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'@' | b'-')
}

/// Parses `text` as exactly `N` lower-case hexadecimal digits, at most 32.
pub(crate) fn parse_hex<const N: usize>(text: &str) -> Option<u128> {
    let exact = text.len() == N && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if exact { u128::from_str_radix(text, 16).ok() } else { None }
}

/// Serialises a type as its `Display` and deserialises it with its `FromStr`, in every format.
macro_rules! serde_as_text {
    ($name:ident, $expected:literal) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::identity::text::FromText::new($expected))
            }
        }
    };
}
pub(crate) use serde_as_text;

/// Reads a string with `T`'s `FromStr`, without copying it first.
pub(crate) struct FromText<T> {
    expected: &'static str,
    value: core::marker::PhantomData<T>,
}

impl<T> FromText<T> {
    pub(crate) const fn new(expected: &'static str) -> Self {
        Self { expected, value: core::marker::PhantomData }
    }
}

impl<T> serde::de::Visitor<'_> for FromText<T>
where
    T: core::str::FromStr,
    T::Err: fmt::Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_text_we_write_is_decoded() {
        assert_eq!(decode("a%20b"), Ok("a b".into()));
        for (refused, at) in
            [("a b", 1), ("%2f", 0), ("x%41", 1), ("x%", 1), ("x%2", 1), ("%G0", 0), ("é", 0)]
        {
            assert_eq!(decode(refused), Err(at), "{refused}");
        }
        assert_eq!(decode("%FF"), Err(0), "not UTF-8");
    }

    proptest! {
        /// Proves: C53
        #[test]
        fn percent_encoding_is_undone_for_any_text(text in any::<String>()) {
            let encoded = Encoded(&text).to_string();
            prop_assert!(encoded.bytes().all(|b| is_plain(b) || b == b'%'));
            prop_assert_eq!(decode(&encoded), Ok(text));
        }

        #[test]
        fn what_decodes_is_what_would_be_written(text in "[a-cA-C%0-9 é]{0,9}") {
            if let Ok(decoded) = decode(&text) {
                prop_assert_eq!(Encoded(&decoded).to_string(), text);
            }
        }
    }
}
