//! Changes inputs at random, the same way each time.

/// Makes new inputs of old ones.
pub(crate) struct Mutator<'a> {
    state: u64,
    inputs: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    /// Begins with `seed`; `inputs` are not empty.
    pub(crate) fn new(seed: u64, inputs: &'a [Vec<u8>]) -> Self {
        Self { state: seed, inputs }
    }

    /// One of the inputs, changed in one to four places.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.inputs[self.below(self.inputs.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let until = at + self.below((bytes.len() - at).min(16) + 1);
        match self.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..until)),
            2 => bytes.insert(at, self.word() as u8),
            3 => {
                let repeated = bytes[at..until].to_vec();
                bytes.splice(at..at, repeated);
            }
            4 => {
                let other = &self.inputs[self.below(self.inputs.len())];
                let rest = other[self.below(other.len() + 1)..].to_vec();
                bytes.splice(at.., rest);
            }
            5 => self.overwrite(bytes, at),
            6 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = byte.wrapping_add(1)),
            _ => {
                let bit = self.below(8);
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
            }
        }
    }

    /// Puts in a number that lengths and counts are often wrong at, of any width.
    fn overwrite(&mut self, bytes: &mut [u8], at: usize) {
        let number = EDGES[self.below(EDGES.len())].to_le_bytes();
        let width = 1 << self.below(4);
        for (place, byte) in bytes[at..].iter_mut().zip(&number[..width]) {
            *place = *byte;
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }

    /// SplitMix64.
    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
}

const EDGES: [u64; 9] = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
const LONGEST: usize = 8 << 10;
