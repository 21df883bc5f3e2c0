//! The actor that follows the records of single actors, so that the places a node remembers are right before they are used.
//!
//! Only if the settings say so: every node then has the traffic of all changes. Without it a place that has become wrong is
//! found out by the first message that is sent there, which comes back.

use std::sync::Arc;

use actix::{Actor, Context, Handler};
use archipelago_protocol::contract::{Entry, EntryId, OwnerRecord, WatchEvent, WatchScope};
use archipelago_protocol::handoff::Owned;
use archipelago_protocol::identity::{ActorId, OwnedKey};
use archipelago_protocol::link::Hint;
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::route::RouteEvent;

use crate::arbiter::ArbiterLocal;
use crate::cluster::{Watched, watch};
use crate::node::NodeShared;
use crate::remote::Shard;

/// Starts the actor, if the node is to follow the records and has a use for them. Call it on the control arbiter.
pub(crate) fn start(node: &Arc<NodeShared>) {
    let has_records = |layout: KindLayout| layout.is_by_actor() && !layout.is_by_range();
    let by_actor = node.kinds().iter().any(|kind| has_records(kind.layout()));
    if by_actor && node.settings().placement_cache.watch && node.remoting().transport().is_some() {
        Follower { node: Arc::clone(node) }.start();
    }
}

struct Follower {
    node: Arc<NodeShared>,
}

impl Follower {
    fn take_in(&self, change: WatchEvent) {
        match change {
            WatchEvent::Snapshot { entries, .. } => {
                for entry in entries {
                    if let Entry::Owner(record) = entry {
                        self.owned(&record);
                    }
                }
            }
            WatchEvent::Put { entry: Entry::Owner(record), .. } => self.owned(&record),
            WatchEvent::Gone { id: EntryId::Owner(OwnedKey::Actor(actor)), .. } => self.tell(&actor, None),
            WatchEvent::Put { .. } | WatchEvent::Gone { .. } => {}
        }
    }

    fn owned(&self, record: &OwnerRecord) {
        if let OwnedKey::Actor(actor) = record.key() {
            self.tell(actor, Some(Owned::from(record).hint));
        }
    }

    /// The arbiter of an actor hears of its record. If its way in is full it finds out by itself.
    fn tell(&self, actor: &ActorId, hint: Option<Hint>) {
        let Some(kind) = self.node.kind_index(actor.kind()) else { return };
        let shard = self.node.shard(kind, actor.stable_hash());
        let actor = actor.clone();
        let told = self.node.enter_work(self.node.arbiter_of_shard(shard.number), move |on| {
            if on.key_of(shard) == Some(OwnedKey::Actor(actor)) {
                on.hear_of_record(shard, hint);
            }
        });
        if let Err(error) = told {
            tracing::debug!(%error, "a change of a record was passed over");
        }
    }
}

impl ArbiterLocal {
    /// The record of a single actor has changed: what is known of its place may be wrong.
    fn hear_of_record(self: &std::rc::Rc<Self>, shard: Shard, hint: Option<Hint>) {
        let Some(known) = self.routes().leads_to(shard) else { return };
        match hint {
            Some(hint) if hint.generation <= known.generation => {}
            Some(hint) if hint.owner != self.node().id() && self.is_known(&hint) => {
                self.route(shard, RouteEvent::Learn(hint));
            }
            _ => self.give_place_up(shard, "changed"),
        }
    }
}

impl Actor for Follower {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        watch(&Arc::clone(&self.node), WatchScope::Owners, self, ctx);
    }
}

impl Handler<Watched> for Follower {
    type Result = ();

    fn handle(&mut self, watched: Watched, _: &mut Context<Self>) {
        if let Watched::Change(change) = watched {
            self.take_in(change);
        }
    }
}
