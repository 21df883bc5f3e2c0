//! Which of its contacts a client asks first.
//!
//! A client knows a few nodes by address and asks one of them at a time. [`Contacts`] decides the order: it stays with the
//! one that answered last, goes on to the next when that one fails, and tries those that are connected before those that
//! would have to be dialled. It does no I/O; its shell asks and says what came of it.
//!
//! Invariant: every order names each contact exactly once, so a contact that answers is found in one round.

use alloc::vec::Vec;

/// The contacts of a client, by their place in its list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contacts {
    count: usize,
    first: usize,
}

impl Contacts {
    /// So many contacts; `random` decides which one comes first, so that many clients do not all ask the same one.
    pub fn new(count: usize, random: u64) -> Self {
        let first = usize::try_from(random % (count.max(1) as u64)).unwrap_or(0);
        Self { count, first }
    }

    /// In which order to ask, given which of them are connected.
    pub fn order(&self, is_connected: impl Fn(usize) -> bool) -> Vec<usize> {
        let all = (0..self.count).map(|step| (self.first + step) % self.count);
        let (mut order, others): (Vec<usize>, Vec<usize>) = all.partition(|&place| is_connected(place));
        order.extend(others);
        order
    }

    /// A contact has answered: it comes first from now on.
    pub const fn answered(&mut self, place: usize) {
        self.first = place;
    }

    /// A contact has not answered: the one after it comes first, unless another already does.
    pub const fn failed(&mut self, place: usize) {
        if self.first == place && self.count > 0 {
            self.first = (place + 1) % self.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_contact_that_answered_last_is_asked_first() {
        let mut contacts = Contacts::new(3, 7);
        assert_eq!(contacts.order(|_| true), [1, 2, 0]);
        contacts.answered(2);
        assert_eq!(contacts.order(|_| true), [2, 0, 1]);
    }

    #[test]
    fn a_contact_that_fails_is_asked_last_and_a_late_failure_of_another_changes_nothing() {
        let mut contacts = Contacts::new(3, 0);
        contacts.failed(0);
        assert_eq!(contacts.order(|_| false), [1, 2, 0]);
        contacts.failed(0);
        assert_eq!(contacts.order(|_| false), [1, 2, 0]);
    }

    #[test]
    fn connected_contacts_come_before_those_that_must_be_dialled() {
        let contacts = Contacts::new(4, 0);
        assert_eq!(contacts.order(|place| place == 3 || place == 2), [2, 3, 0, 1]);
    }

    #[test]
    fn nobody_is_asked_if_there_is_nobody() {
        let mut contacts = Contacts::new(0, 5);
        contacts.failed(0);
        assert!(contacts.order(|_| true).is_empty());
    }

    proptest! {
        #[test]
        fn every_order_names_each_contact_once(
            count in 1..6_usize, random: u64, steps in prop::collection::vec((0..6_usize, any::<bool>()), 0..8), up: u8,
        ) {
            let mut contacts = Contacts::new(count, random);
            for (place, answered) in steps {
                let place = place % count;
                if answered { contacts.answered(place) } else { contacts.failed(place) }
            }
            let mut order = contacts.order(|place| up & (1 << place) != 0);
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }
}
