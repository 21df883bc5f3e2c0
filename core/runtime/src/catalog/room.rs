//! Which actors of a kind make room when more are active than may be.
//!
//! Each active actor has one entry, by when it was last known to be used. Only a look at the entry brings it up to date, so
//! the path of messages knows nothing of it.

use std::rc::Rc;

use archipelago_protocol::activation::RoomLook;
use archipelago_protocol::time::Millis;

use super::kind::KindCatalog;
use super::slot::Slot;
use crate::message::VirtualActor;

impl<A: VirtualActor> KindCatalog<A> {
    /// Has an eye on a new activation, which may have to make room.
    pub(super) fn rank(&self, slot: &Rc<Slot<A>>) {
        let used = {
            let mut inner = slot.inner.borrow_mut();
            if std::mem::replace(&mut inner.ranked, true) {
                // Its entry is older: it is from an earlier life in the same slot.
                return;
            }
            inner.life.last_used()
        };
        let mut ranks = self.ranks().borrow_mut();
        ranks.push(used, Rc::downgrade(slot));
        // Slots that have gone would stay in memory until it is their turn.
        if ranks.len() > 2 * self.count() + 64 {
            ranks.retain(|slot| slot.strong_count() > 0);
        }
    }

    /// When the actor that is next to make room was last known to be used.
    pub(super) fn longest_unused(&self) -> Option<Millis> {
        self.ranks().borrow().next_at()
    }

    /// Looks at the actor that is next to make room; true if it was asked to leave.
    pub(super) fn look_for_room(&self, now: Millis) -> bool {
        let first = self.ranks().borrow_mut().pop_first();
        let Some((known, slot)) = first.and_then(|(known, slot)| Some((known, slot.upgrade()?))) else {
            return false;
        };
        let look = {
            let mut inner = slot.inner.borrow_mut();
            let waiting = !inner.queue.is_empty();
            let look = inner.life.look_for_room(now, known, waiting);
            inner.ranked = matches!(look, RoomLook::UsedAt(_));
            look
        };
        match look {
            RoomLook::UsedAt(used) => self.ranks().borrow_mut().push(used, Rc::downgrade(&slot)),
            RoomLook::Asked => slot.wake(),
            RoomLook::Leaves => {}
        }
        look == RoomLook::Asked
    }
}
