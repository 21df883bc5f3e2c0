//! What one key's owner record does, one request at a time.

use stateright::semantics::SequentialSpec;

/// Who owns a key, at which generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owned {
    /// The session.
    pub node: u64,
    /// The generation.
    pub generation: u64,
}

/// A request about a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Claims it for a session that lives.
    Claim {
        /// The session.
        by: u64,
    },
    /// Gives it up.
    Release(Owned),
    /// Gives it to another session that lives.
    Transfer {
        /// What is given.
        owned: Owned,
        /// To whom.
        to: u64,
    },
    /// Asks who owns it.
    Lookup,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ret {
    /// The claimer, or the receiver, owns the key at this generation.
    Placed(u64),
    /// Another session owns it.
    Held(Owned),
    /// Nobody owns it any more.
    Released,
    /// The caller does not own what it named; this is who does.
    NotOwner(Option<Owned>),
    /// Who owns it.
    Found(Option<Owned>),
    /// Nothing was done.
    Nothing,
}

impl Ret {
    /// What the asker of `op` may try to give away after this answer.
    pub(super) fn owned(&self, op: &Op) -> Option<Owned> {
        match (self, op) {
            (Self::Placed(generation), Op::Claim { by: node } | Op::Transfer { to: node, .. }) => {
                Some(Owned { node: *node, generation: *generation })
            }
            (Self::Held(owned) | Self::Found(Some(owned)), _) => Some(*owned),
            _ => None,
        }
    }
}

/// The record of one key. All sessions live, so an owner is replaced only by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct KeySpec {
    owner: Owner,
    /// The greatest generation that was ever answered.
    greatest: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Owner {
    #[default]
    Nobody,
    Known(Owned),
    /// Made by a request that was never answered: the generation shows when somebody reads it.
    Unread(u64),
}

impl KeySpec {
    fn node(&self) -> Option<u64> {
        match self.owner {
            Owner::Nobody => None,
            Owner::Known(Owned { node, .. }) | Owner::Unread(node) => Some(node),
        }
    }

    /// Whether the record is this one. Reading a record of unknown generation makes it known.
    fn is(&mut self, shown: Option<Owned>) -> bool {
        match (&self.owner, shown) {
            (Owner::Nobody, None) => true,
            (Owner::Known(owned), Some(shown)) => *owned == shown,
            (Owner::Unread(node), Some(shown)) => {
                *node == shown.node && self.place(shown.node, shown.generation)
            }
            _ => false,
        }
    }

    /// Whether a new owner at this generation may follow all before.
    fn place(&mut self, node: u64, generation: u64) -> bool {
        let grows = generation > self.greatest;
        (self.owner, self.greatest) = (Owner::Known(Owned { node, generation }), generation);
        grows
    }

    fn may_claim(&self, by: u64) -> bool {
        self.node().is_none_or(|node| node == by)
    }
}

impl SequentialSpec for KeySpec {
    type Op = Op;
    type Ret = Ret;

    /// What happens if nobody is told: only for requests without an answer.
    fn invoke(&mut self, op: &Op) -> Ret {
        match op {
            Op::Claim { by } if self.may_claim(*by) => self.owner = Owner::Unread(*by),
            Op::Release(owned) if self.is(Some(*owned)) => self.owner = Owner::Nobody,
            Op::Transfer { owned, to } if self.is(Some(*owned)) => self.owner = Owner::Unread(*to),
            _ => {}
        }
        Ret::Nothing
    }

    fn is_valid_step(&mut self, op: &Op, ret: &Ret) -> bool {
        match (op, ret) {
            (_, Ret::Nothing) => true,
            (Op::Claim { by }, Ret::Placed(generation)) => {
                self.may_claim(*by) && self.place(*by, *generation)
            }
            (Op::Claim { by }, Ret::Held(owned)) => owned.node != *by && self.is(Some(*owned)),
            (Op::Release(owned), Ret::Released) => {
                let is_owner = self.is(Some(*owned));
                self.owner = Owner::Nobody;
                is_owner
            }
            (Op::Transfer { owned, to }, Ret::Placed(generation)) => {
                self.is(Some(*owned)) && self.place(*to, *generation)
            }
            (Op::Release(owned) | Op::Transfer { owned, .. }, Ret::NotOwner(shown)) => {
                *shown != Some(*owned) && self.is(*shown)
            }
            (Op::Lookup, Ret::Found(shown)) => self.is(*shown),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explains(steps: &[(Op, Ret)]) -> bool {
        KeySpec::default().is_valid_history(steps.iter().cloned())
    }

    fn owned(node: u64, generation: u64) -> Owned {
        Owned { node, generation }
    }

    #[test]
    fn what_a_directory_may_answer_is_explained() {
        assert!(explains(&[
            (Op::Lookup, Ret::Found(None)),
            (Op::Claim { by: 1 }, Ret::Placed(3)),
            (Op::Claim { by: 2 }, Ret::Held(owned(1, 3))),
            (Op::Claim { by: 1 }, Ret::Placed(4)),
            (Op::Release(owned(1, 3)), Ret::NotOwner(Some(owned(1, 4)))),
            (Op::Transfer { owned: owned(1, 4), to: 2 }, Ret::Placed(7)),
            (Op::Lookup, Ret::Found(Some(owned(2, 7)))),
            (Op::Release(owned(2, 7)), Ret::Released),
            (Op::Release(owned(2, 7)), Ret::NotOwner(None)),
        ]));
    }

    #[test]
    fn what_a_directory_may_not_answer_is_not() {
        let placed = (Op::Claim { by: 1 }, Ret::Placed(3));
        for wrong in [
            (Op::Claim { by: 2 }, Ret::Placed(4)),
            (Op::Claim { by: 1 }, Ret::Placed(3)),
            (Op::Lookup, Ret::Found(None)),
            (Op::Lookup, Ret::Found(Some(owned(1, 2)))),
            (Op::Release(owned(1, 2)), Ret::Released),
            (Op::Release(owned(1, 3)), Ret::NotOwner(None)),
            (Op::Transfer { owned: owned(1, 3), to: 2 }, Ret::Placed(3)),
        ] {
            assert!(!explains(&[placed.clone(), wrong.clone()]), "{wrong:?}");
        }
    }

    #[test]
    fn a_request_without_an_answer_may_have_happened() {
        let mut spec = KeySpec::default();
        spec.invoke(&Op::Claim { by: 1 });
        assert!(!spec.clone().is_valid_step(&Op::Claim { by: 2 }, &Ret::Placed(5)));
        assert!(spec.is_valid_step(&Op::Lookup, &Ret::Found(Some(owned(1, 4)))));
        assert!(!spec.is_valid_step(&Op::Lookup, &Ret::Found(Some(owned(1, 5)))), "read once, it is known");
    }
}
