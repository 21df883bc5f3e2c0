//! Leaving without losing what is on its way here: both sides of the last words on a lane.
//!
//! A node that owns nothing any more says Bye on every lane of a data arbiter. Whoever hears it sends there no longer, waits
//! until everything sent has been answered or has come back, and answers. Until all have answered the leaving node goes on
//! reading, and gives back what it reads. Messages of its own that come back before the answers it sends out again; after
//! Bye nothing of it comes back that was taken.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::link::{Frame, Head};
use archipelago_protocol::route::RouteEvent;
use archipelago_protocol::time::Millis;

use super::lane::Lane;
use super::routes::Shard;
use super::seat::SeatLocal;
use crate::arbiter::ArbiterLocal;
use crate::env::within;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;

impl ArbiterLocal {
    // ---- the node that leaves ----

    /// Whether a message from another node goes back, because this one finishes what it has and takes nothing new. What
    /// belongs to work under way is taken.
    pub(crate) fn turns_away(&self, head: &Head<'_>) -> bool {
        self.is_draining() && head.chain.is_empty()
    }

    /// Tells everybody who may still send that nothing is served here any more, and waits until they know, not for ever.
    pub(crate) async fn take_leave(self: &Rc<Self>) {
        let Some(seat) = self.seat() else { return };
        if broken(Mutant::LeaveAtOnce) {
            return;
        }
        let all_know = async {
            // What has come back meanwhile goes out again, and has to get there before the node is gone.
            let mut came_back = None;
            while came_back != Some(self.returns().came_back()) {
                came_back = Some(self.returns().came_back());
                self.say_goodbye(seat).await;
            }
        };
        if within(self.node().env(), LEAVE_LIMIT, all_know).await.is_none() {
            tracing::info!(node = %self.node().id(), "not every node has taken leave in time");
        }
    }

    /// Says Bye on every lane, also on those that get a connection meanwhile, and waits for the answers.
    async fn say_goodbye(&self, seat: &SeatLocal) {
        let mut told = BTreeSet::new();
        loop {
            let lanes = seat.all_lanes().into_iter().filter(|lane| lane.is_connected());
            let lanes: Vec<Rc<Lane>> = lanes.collect();
            for lane in &lanes {
                // The last word goes behind the asks that wait for room.
                let says_more = lane.outbox().borrow().asks_in_line() > 0;
                if !says_more && lane.connection().is_some_and(|connection| told.insert(connection)) {
                    lane.say_bye();
                }
            }
            let waits = lanes.iter().any(|lane| !lane.said_goodbye()) || self.routes().waiting() > 0;
            if !waits {
                return;
            }
            self.node().env().sleep(LOOK_EVERY).await;
        }
    }

    // ---- the node that stays ----

    /// The node at the other end owns nothing any more: nothing is sent there from now on.
    pub(super) fn take_leave_of(self: &Rc<Self>, lane: &Rc<Lane>) {
        let leaver = lane.peer().id();
        if lane.is_left() {
            // It has said so before; one look at a time is enough.
            return lane.say(&Frame::ByeAck);
        }
        self.node().remoting().book().leaves(leaver);
        for shard in self.shards_over(lane) {
            self.route(shard, RouteEvent::Bye(leaver));
        }
        let (on, lane) = (Rc::downgrade(self), Rc::clone(lane));
        let env = Arc::clone(self.node().env());
        self.node().env().spawn(Box::pin(async move {
            // A route that does not settle in time closes the lane.
            while on.upgrade().is_some_and(|on| !on.is_clear_of(&lane, leaver)) && lane.is_connected() {
                env.sleep(LOOK_EVERY).await;
            }
            if lane.is_connected() {
                lane.say(&Frame::ByeAck);
            }
        }));
    }

    fn part_from(&self, gone: NodeId, at_once: bool) {
        if let Some(seat) = self.seat() {
            seat.part_from(gone, at_once);
        }
    }

    fn is_clear_of(&self, lane: &Lane, leaver: NodeId) -> bool {
        let over: BTreeSet<Shard> = self.shards_over(lane).into_iter().collect();
        self.routes().are_clear_of(&over, leaver)
    }

    /// The shards whose messages to the node at the other end go over this lane.
    fn shards_over(&self, lane: &Lane) -> Vec<Shard> {
        let over = |shard: &Shard| lane.peer().seat_of(shard.number) == lane.to();
        self.routes().shards().into_iter().filter(over).collect()
    }
}

impl NodeShared {
    /// Gives the links to a node up whose session has ended: node ids never come back.
    ///
    /// `at_once` if others have ended it. Nothing that such a node has done since leaves it, what it has not answered stays
    /// unknown, and a connection may take longer to notice that nobody is there. A node that has ended its session itself
    /// still gives back what comes too late, and says goodbye.
    pub(crate) fn part_from(&self, gone: NodeId, at_once: bool) {
        self.remoting().depart(gone, at_once);
        for arbiter in self.data_arbiters() {
            if let Err(error) = self.enter_work(arbiter, move |on| on.part_from(gone, at_once)) {
                tracing::debug!(%gone, %error, "the connections to a node end by themselves");
            }
        }
    }
}

/// How often to look whether everybody is done.
const LOOK_EVERY: Millis = Millis(5);

/// How long the others may take to say goodbye: somewhat longer than a route may take to settle.
const LEAVE_LIMIT: Millis = Millis(1_500);
