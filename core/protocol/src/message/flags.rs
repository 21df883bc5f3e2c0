//! What a message asks of the node that handles it.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use serde::{Deserialize, Serialize};

/// A set of promises and wishes of one message.
///
/// Whatever interleaves only reads: a set with [`ALWAYS_INTERLEAVE`](Self::ALWAYS_INTERLEAVE) contains
/// [`READ_ONLY`](Self::READ_ONLY), however it was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct MessageFlags(u16);

impl MessageFlags {
    /// The handler does not change the actor's state.
    pub const READ_ONLY: Self = Self(1);
    /// The message may run beside others that only read; brings [`READ_ONLY`](Self::READ_ONLY) with it.
    pub const ALWAYS_INTERLEAVE: Self = Self(INTERLEAVE_BIT | 1);
    /// The message never leaves its node: if the actor is elsewhere, it fails.
    pub const IS_LOCAL_ONLY: Self = Self(1 << 2);
    /// The message does not keep an otherwise idle actor alive.
    pub const SUPPRESS_KEEP_ALIVE: Self = Self(1 << 3);

    /// No flags.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// The flags with these bits; bit 1 (interleave) brings bit 0 (read only) with it.
    ///
    /// # Errors
    ///
    /// Some bit has no meaning here: a newer node may mean something by it that must not be ignored.
    pub const fn from_bits(bits: u16) -> Result<Self, UnknownFlags> {
        let unknown = bits & !KNOWN;
        if unknown != 0 {
            return Err(UnknownFlags { bits: unknown });
        }
        let implied = if bits & INTERLEAVE_BIT != 0 { Self::READ_ONLY.0 } else { 0 };
        Ok(Self(bits | implied))
    }

    /// The bits, as on the wire.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These flags and those of `other`; `|` for constants.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Some bits of a flag set have no meaning in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("unknown message flags {bits:#06x}")]
pub struct UnknownFlags {
    /// The bits without meaning.
    pub bits: u16,
}

impl BitOr for MessageFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl BitOrAssign for MessageFlags {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.with(other);
    }
}

impl TryFrom<u16> for MessageFlags {
    type Error = UnknownFlags;
    fn try_from(bits: u16) -> Result<Self, UnknownFlags> {
        Self::from_bits(bits)
    }
}

impl From<MessageFlags> for u16 {
    fn from(flags: MessageFlags) -> Self {
        flags.0
    }
}

impl fmt::Debug for MessageFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMES.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| name);
        f.debug_set().entries(named).finish()
    }
}

const INTERLEAVE_BIT: u16 = 1 << 1;
const KNOWN: u16 = 0b1111;
const NAMES: [(MessageFlags, &str); 4] = [
    (MessageFlags::READ_ONLY, "READ_ONLY"),
    (MessageFlags::ALWAYS_INTERLEAVE, "ALWAYS_INTERLEAVE"),
    (MessageFlags::IS_LOCAL_ONLY, "IS_LOCAL_ONLY"),
    (MessageFlags::SUPPRESS_KEEP_ALIVE, "SUPPRESS_KEEP_ALIVE"),
];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    /// Proves: R74, R75, R76, R77, R78
    #[test]
    fn each_flag_has_its_bit() {
        let from = |bits| MessageFlags::from_bits(bits).unwrap();
        assert_eq!(from(0b0001), MessageFlags::READ_ONLY);
        assert_eq!(from(0b0010), MessageFlags::ALWAYS_INTERLEAVE);
        assert_eq!(from(0b0100), MessageFlags::IS_LOCAL_ONLY);
        assert_eq!(from(0b1000), MessageFlags::SUPPRESS_KEEP_ALIVE);
        assert_eq!(MessageFlags::IS_LOCAL_ONLY.bits(), 4);
        assert!(!MessageFlags::READ_ONLY.contains(MessageFlags::ALWAYS_INTERLEAVE));
    }

    #[test]
    fn unknown_bits_are_refused_by_every_decoder() {
        assert_eq!(MessageFlags::from_bits(0x8011), Err(UnknownFlags { bits: 0x8010 }));
        assert!(serde_json::from_str::<MessageFlags>("16").is_err());
        assert_eq!(UnknownFlags { bits: 16 }.to_string(), "unknown message flags 0x0010");
    }

    proptest! {
        /// Proves: R79
        #[test]
        fn whatever_interleaves_only_reads(a in 0_u16..16, b in 0_u16..16) {
            let decoded: MessageFlags = serde_json::from_str(&a.to_string()).unwrap();
            let flags = decoded | MessageFlags::from_bits(b).unwrap();
            if flags.bits() & 0b10 != 0 {
                prop_assert!(flags.contains(MessageFlags::READ_ONLY));
            }
            prop_assert_eq!(flags.bits() & !1, (a | b) & !1);
        }

        /// Proves: R74
        #[test]
        fn flags_survive_serde(bits in 0_u16..16) {
            let flags = MessageFlags::from_bits(bits).unwrap();
            prop_assert_eq!(serde_json::to_string(&flags).unwrap(), flags.bits().to_string());
            let bytes = postcard::to_allocvec(&flags).unwrap();
            prop_assert_eq!(postcard::from_bytes::<MessageFlags>(&bytes).unwrap(), flags);
        }

        #[test]
        fn any_bits_decode_or_are_refused(bits: u16) {
            prop_assert_eq!(MessageFlags::from_bits(bits).is_ok(), bits < 16);
        }
    }
}
