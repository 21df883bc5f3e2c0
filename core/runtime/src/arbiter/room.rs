//! Keeps the number of active actors within `actors.max_active`, as far as they can go.

use archipelago_protocol::time::Millis;

use super::ArbiterLocal;
use crate::events::Event;

impl ArbiterLocal {
    /// Asks the least recently used actors to leave, if more are active than may be. Looks at a few per turn, so that the
    /// arbiter's other work does not wait; what is left over is looked at in the next.
    pub(super) fn make_room(&self, now: Millis) {
        let (on_node, here) = (self.node().active_actors(), self.active_actors());
        let mut unasked = self.crowd().borrow().surplus(on_node, here);
        if unasked == 0 && !self.crowd().borrow().is_overflowing() {
            return;
        }
        let mut looks = 0;
        while unasked > 0 && looks < LOOKS {
            let Some(kind) = self.longest_unused() else { break };
            looks += 1;
            if self.all_kinds().nth(kind).is_some_and(|kind| kind.look_for_room(now)) {
                self.crowd().borrow_mut().asked();
                unasked -= 1;
            }
        }
        self.meters().over_bound.set(unasked as f64);
        self.meters().room_looks.increment(looks);
        let begins = self.crowd().borrow_mut().looked(unasked);
        if begins {
            let bound = self.crowd().borrow().bound();
            tracing::warn!(active = on_node, bound, "more actors are active than may be");
            self.node().events().publish(Event::ActorsOverBound { active: on_node, bound });
        }
    }

    /// Notes that an actor that was asked to make room has gone.
    pub(crate) fn room_made(&self) {
        self.crowd().borrow_mut().gone();
    }

    /// When to look for room again, if too few could go.
    pub(super) fn next_room_look(&self, now: Millis) -> Option<Millis> {
        self.crowd().borrow().is_overflowing().then_some(now + LOOK_AGAIN)
    }

    /// The kind whose first actor was longest not known to be used.
    fn longest_unused(&self) -> Option<usize> {
        let kinds = self.all_kinds().enumerate();
        let oldest = kinds.filter_map(|(index, kind)| Some((kind.longest_unused()?, index))).min();
        oldest.map(|(_, index)| index)
    }
}

/// How many actors are looked at in one turn.
const LOOKS: u64 = 256;

/// How soon to look again after too few could go.
const LOOK_AGAIN: Millis = Millis(100);
