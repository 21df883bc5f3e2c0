//! The one hash of the protocol: the same 64 bits on every machine, in every version.
//!
//! It names messages on the wire and picks arbiters and shards, so changing it is a change of protocol.

/// Hashes `bytes` to 64 bits: FNV-1a, then a finaliser so that every bit of the input moves every bit of the
/// result (`FNV` alone leaves the low bits of short, similar keys close together, and shards use the low bits).
pub const fn stable_hash(bytes: &[u8]) -> u64 {
    finish(append(START, bytes))
}

/// Hashes several parts as one text, with a separator no part can contain, without joining them first.
pub const fn stable_hash_parts(parts: &[&str]) -> u64 {
    finish(append_parts(START, parts))
}

const fn append_parts(mut state: u64, parts: &[&str]) -> u64 {
    let mut i = 0;
    while i < parts.len() {
        state = append(state, parts[i].as_bytes());
        state = append(state, &[0xff]);
        i += 1;
    }
    state
}

/// Scatters the bits of a number: each bit of it moves every bit of the result. For ranking numbers that may be close.
pub const fn mix(number: u64) -> u64 {
    finish(number)
}

/// The hash of the first parts of a text, to be continued with its last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashPrefix(u64);

impl HashPrefix {
    /// After `parts`.
    pub const fn of(parts: &[&str]) -> Self {
        Self(append_parts(START, parts))
    }

    /// The hash of all parts: as [`stable_hash_parts`] gives it.
    pub const fn and(self, last: &str) -> u64 {
        finish(append_parts(self.0, &[last]))
    }
}

const fn append(mut state: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        state = (state ^ bytes[i] as u64).wrapping_mul(PRIME);
        i += 1;
    }
    state
}

const fn finish(mut state: u64) -> u64 {
    state ^= state >> 33;
    state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^= state >> 33;
    state = state.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ (state >> 33)
}

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    #[test]
    fn a_hash_in_two_steps_is_the_same_hash() {
        let whole = super::stable_hash_parts(&["default", "Account", "alice"]);
        assert_eq!(super::HashPrefix::of(&["default", "Account"]).and("alice"), whole);
    }

    use super::*;

    #[test]
    fn similar_keys_spread_over_the_low_bits() {
        let mut counts = [0_u32; 16];
        for n in 0..1_600_u32 {
            let key = alloc::format!("account-{n}");
            counts[usize::try_from(stable_hash(key.as_bytes()) % 16).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&n| (60..=140).contains(&n)), "uneven: {counts:?}");
    }

    /// The vectors that `docs/handoff.md` publishes, computed by an independent implementation.
    ///
    /// Proves: R290
    #[test]
    fn the_hash_has_the_published_values() {
        for (bytes, expected) in [
            (&b""[..], 0xefd0_1f60_ba99_2926),
            (b"a", 0x82a2_a958_a9be_ce5b),
            (b"account-7", 0x08af_1142_a54e_3728),
        ] {
            assert_eq!(stable_hash(bytes), expected, "{bytes:?}");
        }
        for (parts, expected) in [
            (["default", "Account", "alice"], 0xc732_6274_145d_e4c8_u64),
            (["default", "Account", "bob"], 0x77ad_af2e_a903_dc78),
            (["tenant", "Konto", "Zoë"], 0xee04_54bc_faf5_eadf),
        ] {
            assert_eq!(stable_hash_parts(&parts), expected, "{parts:?}");
        }
    }

    #[test]
    fn parts_are_not_confused_with_their_join() {
        assert_ne!(stable_hash_parts(&["ab", "c"]), stable_hash_parts(&["a", "bc"]));
    }
}
