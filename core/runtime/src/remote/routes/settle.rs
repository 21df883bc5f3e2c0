//! Lanes that settle: before the messages of a shard go to another owner, everything that was sent to the old one has started,
//! or is back. Both sides of it.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::link::{Frame, Hint, ShardRef};
use archipelago_protocol::route::{Place, RouteEntry, RouteEvent};
use archipelago_protocol::time::Millis;

use super::{Open, Shard};
use crate::arbiter::ArbiterLocal;
use crate::catalog::Leaving;
use crate::mutants::{Mutant, broken};
use crate::remote::incoming::Incoming;
use crate::remote::lane::Lane;
use crate::remote::outbound::Parked;
use crate::remote::peer_actor::CloseNow;
use crate::remote::returns::{lane_id, of_ours};
use crate::remote::seat::Link;

impl ArbiterLocal {
    // ---- whoever sends ----

    /// Tells the owner that nothing more comes. Without a connection nothing of ours is there, only in the lane.
    pub(super) fn settle(self: &Rc<Self>, shard: Shard, hint: Hint) {
        if hint.owner == self.node().id() {
            return self.settle_here(shard, hint);
        }
        match self.open_to(shard, hint) {
            Some(_) if broken(Mutant::SwitchAtOnce) => {
                let Hint { owner: from, generation } = hint;
                self.route(shard, RouteEvent::Settled { from, generation, hint: None });
            }
            Some(open) if open.lane.is_connected() => self.say_settle(shard, &open, hint.generation),
            Some(open) => self.give_lane_up(&open.lane),
            None => self.owner_gone(shard, hint.owner, Vec::new()),
        }
    }

    /// Nobody knows the owner any more: look again, first for what waits in its lane and then for what comes after that.
    pub(super) fn owner_gone(self: &Rc<Self>, shard: Shard, owner: NodeId, unsent: Vec<Parked>) {
        if let Some(link) = self.link_of(shard, owner).filter(|link| !link.lane.is_connected()) {
            self.give_lane_up(&link.lane);
        }
        self.route(shard, RouteEvent::LaneLost { node: owner, unsent });
    }

    /// The link over which messages of a shard go to a node, if there is one.
    pub(in crate::remote) fn link_of(&self, shard: Shard, owner: NodeId) -> Option<Link> {
        let links = self.seat()?.links_of(owner);
        links.into_iter().find(|link| link.lane.to() == link.lane.peer().seat_of(shard.number))
    }

    /// Large messages travel beside the lane, and asks may stand in line before it: the word that nothing more comes waits
    /// until all of them are there.
    fn say_settle(self: &Rc<Self>, shard: Shard, open: &Open, generation: Generation) {
        let (lane, frame) = (Rc::clone(&open.lane), Frame::Settle { shard: open.shard, generation });
        let line = lane.outbox().borrow().end_of_line();
        if lane.outbox().borrow().is_past(line) && !self.transfers().go_over(shard, lane.index()) {
            return lane.say(&frame);
        }
        let (on, connection, env) = (Rc::downgrade(self), lane.connection(), Arc::clone(self.node().env()));
        self.node().env().spawn(Box::pin(async move {
            let under_way = |on: Rc<Self>| {
                on.transfers().go_over(shard, lane.index()) || !lane.outbox().borrow().is_past(line)
            };
            while lane.connection() == connection && on.upgrade().is_some_and(under_way) {
                env.sleep(SETTLE_LOOK).await;
            }
            // If the connection is lost, the route knows.
            if lane.connection() == connection {
                lane.say(&frame);
            }
        }));
    }

    /// Whether the lane to an owner that has not settled is alive.
    pub(super) fn check_lane(self: &Rc<Self>, shard: Shard, node: NodeId) {
        let since = self.coarse() - RouteEntry::<Parked>::SETTLE_LIMIT;
        let lane = self.link_of(shard, node).map(|link| link.lane);
        let alive = lane.is_some_and(|lane| {
            lane.is_connected() && (lane.heard() >= since || self.transfers().go_over(shard, lane.index()))
        });
        self.route(shard, RouteEvent::LaneChecked { node, alive });
    }

    /// Closes the lane of a shard to a node that did not settle in time.
    pub(super) fn close_lanes(self: &Rc<Self>, shard: Shard, owner: NodeId) {
        match self.link_of(shard, owner) {
            Some(link) => self.close_link(&link, "the peer did not settle a shard in time"),
            None => self.route(shard, RouteEvent::LaneLost { node: owner, unsent: Vec::new() }),
        }
    }

    /// Nothing goes over a link any more; what waits in it looks for its way again.
    fn close_link(self: &Rc<Self>, link: &Link, why: &'static str) {
        if link.lane.is_connected() {
            link.actor.do_send(CloseNow(why));
        } else {
            self.give_lane_up(&link.lane);
        }
    }

    /// What waits in a lane without a connection looks for its way again, in order.
    fn give_lane_up(self: &Rc<Self>, lane: &Lane) {
        if let Some(seat) = self.seat() {
            let nothing = seat.no_connection(lane);
            self.lane_lost(lane, &nothing);
        }
    }

    // ---- the owner ----

    /// Everything that was sent for the shard on this lane, or beside it, has been taken in or sent back when this is handled.
    /// If nothing has been sent back so far, what has not started goes back now; otherwise, or if it cannot, it is waited for.
    pub(in crate::remote) fn settle_lane(
        self: &Rc<Self>,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        shard: ShardRef,
        generation: Generation,
    ) {
        let (lane, incoming, on) = (Rc::clone(lane), Arc::clone(incoming), Rc::clone(self));
        let kind = u32::from(shard.kind);
        // What was taken before others went back must not come after them.
        let refused = self.returns().refusals.borrow().is_refusing(lane_id(&incoming), shard);
        if let Some(kind) = self.any_kind(kind).filter(|_| !refused) {
            kind.empty_inboxes(shard.number, Leaving::Of(&incoming), self);
        }
        self.node().env().spawn(Box::pin(async move {
            on.started_all(&lane, &incoming, shard).await;
            lane.request_over();
            let place = on.place_of(shard);
            let lane_id = lane_id(&incoming);
            let hint = on.returns().refusals.borrow_mut().on_settle(lane_id, shard, generation, place);
            if hint.is_none() && on.has_singles(kind) {
                // Whoever asks knows that nothing more is to be heard here.
                on.returns().refusals.borrow_mut().forgive(lane_id, shard);
            }
            if lane.is_connected_by(&incoming) {
                lane.say(&Frame::Settled { shard, generation, hint });
            }
        }));
    }

    /// Waits until everything of a shard that came by this connection has started, and says meanwhile that it is not forgotten:
    /// some handlers run for long, and not everything behind them can go back.
    async fn started_all(&self, lane: &Lane, incoming: &Incoming, shard: ShardRef) {
        let unstarted = || {
            let kind = self.any_kind(shard.kind.into());
            kind.is_some_and(|kind| kind.has_unstarted(shard.number, incoming, self))
        };
        let env = self.node().env();
        let mut said = env.coarse();
        while unstarted() && lane.is_connected_by(incoming) {
            if env.coarse().since(said) >= SIGN_OF_LIFE {
                said = env.coarse();
                lane.say(&Frame::Void);
            }
            env.sleep(SETTLE_LOOK).await;
        }
    }

    fn place_of(&self, shard: ShardRef) -> Place {
        let served = self.any_kind(shard.kind.into()).and_then(|kind| kind.shards().served(shard.number));
        match served.filter(|_| !self.is_draining()) {
            Some(generation) => Place::Here(Hint { owner: self.node().id(), generation }),
            None => Place::Elsewhere(self.routes().leads_to(of_ours(shard))),
        }
    }
}

/// How often an owner that cannot settle yet says so: well within [`RouteEntry::SETTLE_LIMIT`].
const SIGN_OF_LIFE: Millis = Millis(250);

/// How often a lane that settles looks whether all it took is done.
const SETTLE_LOOK: Millis = Millis(10);
