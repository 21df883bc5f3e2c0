//! Sizes in bytes as text: `"64 MiB"`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A number of bytes, written with its unit: `"512 KiB"`, `"64MiB"`, `"1 GB"`, `"100 B"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

/// The text is not a size. Write a whole number and one of B, kB, MB, GB, KiB, MiB, GiB.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a size such as \"64 MiB\"")]
pub struct BadSize {
    /// What was given.
    pub text: String,
}

impl Size {
    /// A size of so many bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, BadSize> {
        let bad = || BadSize { text: text.to_owned() };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, unit) = trimmed.split_at(digits);
        let number: u64 = number.parse().map_err(|_| bad())?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(bad)?;
        number.checked_mul(*factor).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.iter().find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor));
        let (unit, factor) = exact.copied().unwrap_or(("B", 1));
        write!(f, "{} {unit}", self.0 / factor)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Largest binary unit first, so that `Display` picks the one a person would.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_binary_and_decimal_units() {
        for (text, bytes) in [("64 MiB", 64 << 20), ("1KiB", 1024), (" 2 GB ", 2_000_000_000), ("7 B", 7)] {
            assert_eq!(text.parse(), Ok(Size::from_bytes(bytes)), "{text:?}");
        }
    }

    #[test]
    fn sizes_without_a_unit_or_too_large_are_refused() {
        for text in ["64", "", "MiB", "1.5 MiB", "-1 B", "64 mib", "99999999999999 GiB"] {
            assert_eq!(text.parse::<Size>(), Err(BadSize { text: text.to_owned() }));
        }
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_size() {
        for bytes in [0, 1, 1000, 1024, 1025, 64 << 20, 3_000_000_000] {
            let size = Size::from_bytes(bytes);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        assert_eq!(Size::from_bytes(64 << 20).to_string(), "64 MiB");
    }
}
