//! The node's own messages to a shard of its own that is on its way to another node.

use std::rc::Rc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::HostEvent;
use archipelago_protocol::identity::Generation;
use archipelago_protocol::link::Hint;
use archipelago_protocol::route::RouteEvent;

use super::outbound::{Outbound, Parcel};
use super::routes::Shard;
use crate::arbiter::ArbiterLocal;
use crate::catalog::{JobHead, Target};

impl ArbiterLocal {
    /// Sends a message to an actor whose shard is on its way to another node. Work under way there could not end without the
    /// calls that belong to it; everything else waits.
    pub(super) fn post_to_sealed<B: Outbound + 'static>(
        self: &Rc<Self>,
        shard: Shard,
        target: &Target,
        head: JobHead,
        mut body: B,
    ) -> Result<(), CallError> {
        if self.any_kind(shard.kind).is_some_and(|kind| kind.is_inner(shard.number, &head)) {
            return body.submit_here(shard.kind, target, head, self);
        }
        let expires = self.expires(&head);
        let asks = head.asks;
        self.park(Box::new(Parcel { shard, target: target.clone(), head, expires, stay: None, body }));
        if asks {
            let gave_back = HostEvent::GaveBack { generation: Generation::new(0), expires };
            // Not from within the caller's task; if the queue is full, the drain ends by its own time.
            let _ = self.node().enter_work(self.index(), move |on| on.host(shard, gave_back));
        }
        Ok(())
    }

    pub(super) fn is_sealed(&self, shard: Shard) -> bool {
        shard.is_home() && self.any_kind(shard.kind).is_some_and(|kind| kind.shards().is_sealed(shard.number))
    }

    /// Nothing lies between this node's routes and its own inboxes.
    pub(super) fn settle_here(self: &Rc<Self>, shard: Shard, Hint { owner, generation }: Hint) {
        let served = self.any_kind(shard.kind).and_then(|kind| kind.shards().served(shard.number));
        let hint = served.map(|generation| Hint { owner, generation });
        self.route(shard, RouteEvent::Settled { from: owner, generation, hint });
    }
}
