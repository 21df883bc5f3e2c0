//! The network's random numbers: the same from the same seed, everywhere.

/// Splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        self.bits() % most.saturating_add(1)
    }

    /// True `per_mille` times in a thousand. Draws nothing if the answer is certain.
    pub(crate) fn chance(&mut self, per_mille: u32) -> bool {
        match per_mille {
            0 => false,
            1_000.. => true,
            _ => self.up_to(999) < u64::from(per_mille),
        }
    }
}
