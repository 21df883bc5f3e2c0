//! Who waits for a call: what finds a cycle of calls before it hangs.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// The activations that wait for a request, as tokens (hashes), oldest first, at most 8.
///
/// An activation that finds its own token in a request would wait for itself and answers `CallCycle` instead. Longer
/// chains lose their oldest tokens: a cycle of more than 8 activations ends by its deadline.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CallChain {
    len: u8,
    // Zero beyond `len`, so that derived equality holds.
    tokens: [u64; CallChain::MAX_LEN],
}

impl CallChain {
    /// How many tokens are kept.
    pub const MAX_LEN: usize = 8;

    /// Nobody waits.
    pub const fn empty() -> Self {
        Self { len: 0, tokens: [0; Self::MAX_LEN] }
    }

    /// The chain with `token` as its newest; the oldest is dropped if there are 8 already.
    #[must_use]
    pub fn push(mut self, token: u64) -> Self {
        if self.len() == Self::MAX_LEN {
            self.tokens.rotate_left(1);
            self.tokens[Self::MAX_LEN - 1] = token;
        } else {
            self.tokens[self.len()] = token;
            self.len += 1;
        }
        self
    }

    /// Whether `token` waits for this call.
    pub fn contains(&self, token: u64) -> bool {
        self.as_slice().contains(&token)
    }

    /// Whether nobody waits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many tokens there are.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// The tokens, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.as_slice().iter().copied()
    }

    fn as_slice(&self) -> &[u64] {
        &self.tokens[..self.len()]
    }
}

impl Serialize for CallChain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CallChain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Tokens)
    }
}

struct Tokens;

impl<'de> Visitor<'de> for Tokens {
    type Value = CallChain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} tokens", CallChain::MAX_LEN)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut tokens: A) -> Result<CallChain, A::Error> {
        let mut chain = CallChain::empty();
        while let Some(token) = tokens.next_element()? {
            if chain.len() == CallChain::MAX_LEN {
                return Err(A::Error::invalid_length(CallChain::MAX_LEN + 1, &self));
            }
            chain = chain.push(token);
        }
        Ok(chain)
    }
}

impl fmt::Debug for CallChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|token| alloc::format!("{token:016x}"))).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn chain(tokens: &[u64]) -> CallChain {
        tokens.iter().fold(CallChain::empty(), |chain, &token| chain.push(token))
    }

    #[test]
    fn an_empty_chain_contains_nothing() {
        assert!(CallChain::empty().is_empty());
        assert!(!CallChain::empty().contains(0));
    }

    #[test]
    fn a_longer_chain_than_ours_is_refused() {
        assert!(serde_json::from_str::<CallChain>("[1,2,3,4,5,6,7,8]").is_ok());
        assert!(serde_json::from_str::<CallChain>("[1,2,3,4,5,6,7,8,9]").is_err());
    }

    proptest! {
        #[test]
        fn the_newest_eight_are_kept(tokens in proptest::collection::vec(any::<u64>(), 0..20)) {
            let chain = chain(&tokens);
            let newest = &tokens[tokens.len().saturating_sub(8)..];
            prop_assert_eq!(chain.iter().collect::<Vec<_>>(), newest);
            prop_assert!(newest.iter().all(|&token| chain.contains(token)));
            prop_assert_eq!(chain.is_empty(), tokens.is_empty());
        }

        #[test]
        fn chains_are_equal_however_they_were_made(tokens in proptest::collection::vec(any::<u64>(), 8..20)) {
            prop_assert_eq!(chain(&tokens), chain(&tokens[tokens.len() - 8..]));
        }

        #[test]
        fn a_chain_survives_serde(tokens in proptest::collection::vec(any::<u64>(), 0..9)) {
            let chain = chain(&tokens);
            let bytes = postcard::to_allocvec(&chain).unwrap();
            prop_assert_eq!(postcard::from_bytes::<CallChain>(&bytes).unwrap(), chain);
        }

        #[test]
        fn decoding_any_bytes_as_chain_never_panics(bytes in any::<Vec<u8>>()) {
            let _ = postcard::from_bytes::<CallChain>(&bytes);
        }
    }
}
