//! How the owner of a shard hands it over: the offer, the end of its actors, and the word to the new owner.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::handoff::{HandOffOutcome, HandoffFrame, HandoffLimits, HostEvent, ShardName};
use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::link::ReturnReason;
use archipelago_protocol::route::RouteEvent;
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;
use metrics::counter;

use super::moving::tell_about_move;
use crate::arbiter::ArbiterLocal;
use crate::catalog::{Leaving, Left};
use crate::events::Event;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::remote::Shard;

impl ArbiterLocal {
    /// Asks the target whether it takes the shard.
    pub(super) fn offer(self: &Rc<Self>, shard: Shard, to: NodeId, move_id: u64, generation: Generation) {
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        self.node().env().spawn(Box::pin(async move {
            let Some(name) = node.name_of(shard) else { return };
            let offer = HandoffFrame::Offer { shard: name, generation, move_id, bytes: 0 };
            let answer = tell_about_move(&node, to, &offer, HandoffLimits::DEFAULT.offer).await;
            let event = match answer {
                Ok(Some(HandoffFrame::OfferOk { move_id, ttl })) => {
                    HostEvent::OfferOk { move_id, session: Session { id: to, ttl } }
                }
                Ok(_) => HostEvent::OfferNo { move_id },
                // The machine counts the time.
                Err(error) => return tracing::debug!(%to, %error, "an offer was not answered"),
            };
            if let Some(on) = on.upgrade() {
                on.host(shard, event);
            }
        }));
    }

    /// Nothing starts in a shard any more: what has not started goes back to its senders and waits there, what comes later
    /// waits behind it.
    pub(super) fn seal(self: &Rc<Self>, shard: Shard) {
        let Some(kind) = self.any_kind(shard.kind) else { return };
        kind.shards().seal(shard.number);
        let Left { ours, earliest } = kind.empty_inboxes(shard.number, Leaving::Everything, self);
        let from = self.node().id();
        for message in ours {
            let reason = ReturnReason::NotOwner;
            self.route(shard, RouteEvent::Returned { from, message, local_only: false, reason });
        }
        self.route(shard, RouteEvent::Bye(from));
        self.host(shard, HostEvent::Sealed(Vec::new()));
        if let Some(expires) = earliest {
            self.host(shard, HostEvent::GaveBack { generation: Generation::new(0), expires });
        }
    }

    /// Lets the actors of a shard end, with their hooks run, and says when none is left.
    pub(super) fn stop_actors(self: &Rc<Self>, shard: Shard, move_id: u64) {
        self.drains_for(shard, Some(move_id));
        if self.actors_are_gone(shard) || broken(Mutant::ReleaseBeforeQuiet) {
            return self.host(shard, HostEvent::Stopped { move_id, state: self.state_of(shard) });
        }
        let (on, env) = (Rc::downgrade(self), Arc::clone(self.node().env()));
        self.node().env().spawn(Box::pin(async move {
            loop {
                env.sleep(LOOK_EVERY).await;
                let Some(on) = on.upgrade().filter(|on| on.is_draining_for(shard, move_id)) else { return };
                if on.actors_are_gone(shard) {
                    return on.host(shard, HostEvent::Stopped { move_id, state: on.state_of(shard) });
                }
            }
        }));
    }

    fn actors_are_gone(&self, shard: Shard) -> bool {
        let stopping = self.node().is_stopping();
        let reason = if stopping { DeactivateReason::NodeStopping } else { DeactivateReason::Moving };
        self.any_kind(shard.kind).is_none_or(|kind| kind.clear_out(shard.number, reason))
    }

    /// Tells the new owner to look at the record. A hint: the first message that it gets tells it, too.
    pub(super) fn point_out(&self, shard: Shard, to: NodeId, generation: Generation) {
        let node = Arc::clone(self.node());
        self.node().env().spawn(Box::pin(async move {
            let Some(shard) = node.name_of(shard) else { return };
            let take = HandoffFrame::Take { shard, generation };
            if let Err(error) = tell_about_move(&node, to, &take, TAKE_WITHIN).await {
                tracing::debug!(%to, %error, "the new owner of a shard could not be told");
            }
        }));
    }

    // ---- what others are told ----

    pub(super) fn move_begins(&self, shard: Shard, generation: Generation, to: NodeId) {
        if let Some(ShardName { kind, number }) = self.node().name_of(shard) {
            let kind = kind.as_str().to_owned();
            self.node().events().publish(Event::ShardMoving { kind, shard: number, generation, to });
        }
    }

    /// A move has come to its end, whatever it was.
    pub(super) fn move_ends(&self, shard: Shard, outcome: HandOffOutcome) {
        let Some(order) = self.take_order(shard) else { return };
        let label = match outcome {
            HandOffOutcome::Moved(_) | HandOffOutcome::Released => "moved",
            HandOffOutcome::Stays(_) => "stays",
            HandOffOutcome::Refused(_) => "refused",
        };
        counter!("archipelago_shard_moves_total", "outcome" => label).increment(1);
        if let Some(ShardName { kind, number }) = self.node().name_of(shard) {
            let (kind, shard, to) = (kind.as_str().to_owned(), number, order.to);
            tracing::info!(kind, shard, %to, ?outcome, "a move of a shard has ended");
            self.node().events().publish(match outcome {
                HandOffOutcome::Moved(generation) => Event::ShardMoved { kind, shard, generation, to },
                _ => Event::ShardStays { kind, shard, outcome },
            });
        }
        // Whoever ordered it may have given up.
        let _ = order.done.send(outcome);
    }
}

impl NodeShared {
    /// A shard by its name, the same on every node.
    pub(super) fn name_of(&self, shard: Shard) -> Option<ShardName> {
        let kind = self.kinds().get(shard.kind as usize)?.kind().clone();
        Some(ShardName { kind, number: u32::try_from(shard.number).ok()? })
    }
}

/// How often to look whether the actors of a shard have ended.
const LOOK_EVERY: Millis = Millis(2);

/// How long the word to the new owner may take.
const TAKE_WITHIN: Millis = Millis(1_000);
