//! The name by which the control plane knows a datacenter.

use alloc::string::String;
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::str::FromStr;

use crate::identity::text::serde_as_text;

/// The identity of a datacenter; never changes while its record lives.
///
/// 1 to 200 bytes of `[A-Za-z0-9._-]`, so it is its own key in every store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataCenterId(Arc<str>);

impl DataCenterId {
    /// The greatest length in bytes.
    pub const MAX_LEN: usize = 200;

    /// Checks `text` and takes a copy of it.
    ///
    /// # Errors
    ///
    /// It is empty, too long, or holds another character.
    pub fn new(text: &str) -> Result<Self, DataCenterIdError> {
        if text.is_empty() || text.len() > Self::MAX_LEN {
            return Err(DataCenterIdError::Length { len: text.len() });
        }
        match text.char_indices().find(|&(_, c)| !is_plain(c)) {
            Some((at, character)) => Err(DataCenterIdError::Character { character, at }),
            None => Ok(Self(Arc::from(text))),
        }
    }

    /// The id of a datacenter that names none: zone, region and name, joined with dots; empty parts are left out.
    pub(crate) fn of_parts(zone: &str, region: &str, name: &str) -> Result<Self, DataCenterIdError> {
        let mut id = String::new();
        for part in [zone, region, name].into_iter().filter(|part| !part.is_empty()) {
            if !id.is_empty() {
                id.push('.');
            }
            id.push_str(part);
        }
        Self::new(&id)
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not the id of a datacenter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DataCenterIdError {
    /// It is empty or too long.
    #[error("the id of a datacenter has 1 to {} bytes, this one {len}", DataCenterId::MAX_LEN)]
    Length {
        /// Its length in bytes.
        len: usize,
    },
    /// It holds a character that it may not hold.
    #[error(
        "the id of a datacenter holds letters, digits, '.', '_' and '-', but {character:?} is at byte {at}"
    )]
    Character {
        /// The first offending character.
        character: char,
        /// Where it starts.
        at: usize,
    },
}

pub(super) const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

impl FromStr for DataCenterId {
    type Err = DataCenterIdError;
    fn from_str(text: &str) -> Result<Self, DataCenterIdError> {
        Self::new(text)
    }
}

impl Borrow<str> for DataCenterId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DataCenterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serde_as_text!(DataCenterId, "the id of a datacenter");

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_fault_has_its_error() {
        assert_eq!(DataCenterId::new(""), Err(DataCenterIdError::Length { len: 0 }));
        assert_eq!(DataCenterId::new(&"x".repeat(201)), Err(DataCenterIdError::Length { len: 201 }));
        let slash = DataCenterIdError::Character { character: '/', at: 2 };
        assert_eq!(DataCenterId::new("eu/west"), Err(slash));
    }

    proptest! {
        #[test]
        fn what_is_refused_when_made_is_refused_when_decoded(text in any::<String>(), name in "[A-c._\\-/ ]{0,4}") {
            for text in [text, name] {
                let json = serde_json::to_vec(&text).unwrap();
                let made = DataCenterId::new(&text).ok();
                prop_assert_eq!(serde_json::from_slice::<DataCenterId>(&json).ok(), made.clone());
                prop_assert_eq!(made.as_ref().map(ToString::to_string), made.as_ref().map(|_| text));
            }
        }
    }
}
