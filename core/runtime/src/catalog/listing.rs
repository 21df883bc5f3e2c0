//! Showing the actors of a kind to whoever operates the node.

use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::time::Millis;

use super::kind::{KindCatalog, Target};
use super::slot::Slot;
use crate::inspect::{ActorView, Listed, Wanted};
use crate::message::VirtualActor;

impl<A: VirtualActor> KindCatalog<A> {
    /// Looks at some actors of one table, in the order of their hashes.
    pub(super) fn list(&self, wanted: &Wanted<'_>, now: Millis) -> Listed {
        let (slots, more) = self.slots().after(wanted.table, wanted.after, wanted.look_at);
        let mut listed = Listed::default();
        for slot in &slots {
            if listed.actors.len() >= wanted.room {
                break;
            }
            listed.looked_at += 1;
            if slot.id.key().as_str().starts_with(wanted.prefix) {
                listed.actors.push(self.view_of(slot, now));
            }
        }
        let last = listed.looked_at.checked_sub(1).and_then(|last| slots.get(last));
        listed.last = last
            .filter(|_| more || listed.looked_at < slots.len())
            .map(|slot| (slot.hash, slot.id.key().as_str().to_owned()));
        listed
    }

    /// How one actor is doing, if it has a slot.
    pub(super) fn view(&self, target: &Target, now: Millis) -> Option<ActorView> {
        let slot = self.find(target.hash, target.id.key().as_str())?;
        Some(self.view_of(&slot, now))
    }

    fn view_of(&self, slot: &Slot<A>, now: Millis) -> ActorView {
        let inner = slot.inner.borrow();
        let shard = match self.shared().layout() {
            KindLayout::Shard { shards } => u32::try_from(shards.shard_of(slot.hash)).ok(),
            _ => None,
        };
        ActorView {
            actor: slot.id.clone(),
            shard,
            generation: self.generation(slot.hash),
            state: inner.life.state(),
            leaving: inner.life.leaving(),
            running: inner.life.running(),
            waiting: inner.queue.len(),
            idle: now.since(inner.life.last_used()),
        }
    }
}
