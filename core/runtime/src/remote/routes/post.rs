//! The way of a message into the lane of its actor, or to where it waits until its place is known.

use std::cell::Cell;
use std::rc::Rc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::link::{Hint, ShardRef};
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::route::{RouteEvent, RouteRefusal};
use archipelago_protocol::time::Millis;

use super::steer::refusal;
use super::{Open, Shard};
use crate::arbiter::{ArbiterLocal, not_serving};
use crate::catalog::{JobHead, Target};
use crate::node::NodeShared;
use crate::remote::large;
use crate::remote::outbound::{NotSent, Outbound, Parcel, Parked, Way, send_on};
use crate::remote::transfers::Hold;

impl ArbiterLocal {
    /// Sends a message to an actor whose kind is not here.
    ///
    /// # Errors
    ///
    /// The message was not sent and will not be; whoever waits has been told.
    pub(crate) fn post<B: Outbound + 'static>(
        self: &Rc<Self>,
        kind: u32,
        target: &Target,
        head: JobHead,
        mut body: B,
    ) -> Result<(), CallError> {
        if let Err(error) = self.may_leave(kind, &head) {
            return Err(refuse_body(&mut body, error));
        }
        if let Some(open) = self.straight(kind, target, head.flags) {
            return self.deliver(&open, target, &head, &mut body, None);
        }
        let Some(shard) = self.place_of_actor(kind, target, &head) else {
            let expires = self.expires(&head);
            let shard = self.node().shard(kind, target.hash);
            self.wait_for_place(Box::new(Parcel {
                shard,
                target: target.clone(),
                head,
                expires,
                stay: None,
                body,
            }));
            return Ok(());
        };
        if let Err(error) = self.name_part(shard, &target.id) {
            return Err(refuse_body(&mut body, error));
        }
        if self.is_sealed(shard) {
            return self.post_to_sealed(shard, target, head, body);
        }
        if self.is_open_here(shard) {
            return body.submit_here(kind, target, head, self);
        }
        if let Some(open) = self.open_route(shard)
            && !self.transfers().holds_up(shard, target)
        {
            if head.flags.contains(MessageFlags::IS_LOCAL_ONLY) {
                return Err(refuse_body(&mut body, CallError::NotLocal));
            }
            return self.deliver(&open, target, &head, &mut body, None);
        }
        let expires = self.expires(&head);
        let parcel: Parked =
            Box::new(Parcel { shard, target: target.clone(), head, expires, stay: None, body });
        self.park(parcel);
        Ok(())
    }

    /// Where most messages go, found with few looks; what the others need is looked at one by one.
    #[inline]
    fn straight(&self, kind: u32, target: &Target, flags: MessageFlags) -> Option<Rc<Open>> {
        let shard = self.node().shard(kind, target.hash);
        let elsewhere = self.any_kind(kind).is_some_and(|kind| kind.shards().is_elsewhere(shard.number));
        if !elsewhere || flags.contains(MessageFlags::IS_LOCAL_ONLY) {
            return None;
        }
        self.routes().direct(shard).filter(|_| !self.transfers().holds_up(shard, target))
    }

    /// Where to send right now. What is sent there is refused at once if it must be, so an open route is never passed by.
    fn open_route(self: &Rc<Self>, shard: Shard) -> Option<Rc<Open>> {
        self.routes().direct(shard).or_else(|| {
            let hint = self.routes().entries.borrow_mut().get_mut(&shard)?.direct()?;
            if hint.owner == self.node().id() { None } else { self.open_to(shard, hint) }
        })
    }

    fn may_leave(&self, kind: u32, head: &JobHead) -> Result<(), CallError> {
        let hosted = self.node().kinds().get(kind as usize).is_some_and(|kind| kind.is_hosted());
        if !hosted && head.flags.contains(MessageFlags::IS_LOCAL_ONLY) {
            return Err(CallError::NotLocal);
        }
        if !hosted && self.seat().is_none() {
            return Err(no_transport(self.node(), kind, None));
        }
        self.admit(head)
    }

    /// Sends a message that had to be put aside, or puts it aside.
    pub(crate) fn park(self: &Rc<Self>, mut parcel: Parked) {
        let shard = parcel.shard;
        let waits =
            self.routes().leads_to(shard).is_none() || self.transfers().holds_up(shard, &parcel.target);
        if waits && let Err(full) = self.take_room(&mut parcel) {
            return parcel.refuse(full, self);
        }
        if let Some(seat) = self.seat() {
            seat.call_pending();
        }
        let bound = self.node().settings().remote.parked;
        match self.transfers().hold(parcel, bound) {
            Hold::Kept => {}
            Hold::Full(parcel) => parcel.refuse(refusal(RouteRefusal::Full { bound }), self),
            Hold::Free(parcel) => self.route(shard, RouteEvent::Send(parcel)),
        }
    }

    /// Writes a message into the lane of its actor; `told` says when it was sent first, if that was not now.
    fn deliver<B: Outbound + ?Sized>(
        self: &Rc<Self>,
        open: &Open,
        target: &Target,
        head: &JobHead,
        body: &mut B,
        told: Option<Millis>,
    ) -> Result<(), CallError> {
        let way =
            Way { peer: &open.peer, lane: &open.lane, shard: open.shard, generation: open.hint.generation };
        let now = self.coarse();
        open.used.set(now);
        match send_on(&way, target, head, body, (now, told.unwrap_or(now))) {
            Ok(()) => {
                if let Some(seat) = self.seat() {
                    seat.written(way.lane);
                }
                Ok(())
            }
            Err((waiter, NotSent::Refused(error))) => {
                if let Some(waiter) = waiter {
                    waiter.fail(error.clone());
                }
                Err(error)
            }
            Err((waiter, NotSent::Large)) => large::send_message(self, &way, target, head, (body, waiter)),
        }
    }

    pub(super) fn deliver_parked(self: &Rc<Self>, to: Hint, parcel: Parked) {
        let bound = self.node().settings().remote.parked;
        let mut parcel = match self.transfers().hold(parcel, bound) {
            Hold::Kept => return,
            Hold::Full(parcel) => return parcel.refuse(refusal(RouteRefusal::Full { bound }), self),
            Hold::Free(parcel) => parcel,
        };
        let elsewhere = to.owner != self.node().id();
        if elsewhere && self.node().remoting().book().get(to.owner).is_none() {
            return self.owner_gone(parcel.shard, to.owner, vec![parcel]);
        }
        // It was let in before it was put aside: a node that has begun to stop since finishes it.
        let head = JobHead { inside: true, ..parcel.head.clone() };
        let told = self.told(parcel.expires);
        let Parcel { shard, target, body, .. } = &mut *parcel;
        let served = |kind: &dyn crate::catalog::AnyKind| kind.shards().served(shard.number).is_some();
        let here = shard.is_home() && self.any_kind(shard.kind).is_some_and(served);
        let hosted = self.node().kinds().get(shard.kind as usize).is_some_and(|kind| kind.is_hosted());
        if !elsewhere && !here && hosted {
            // It was here a moment ago.
            return self.owner_gone(parcel.shard, to.owner, vec![parcel]);
        }
        let delivered = if elsewhere && head.flags.contains(MessageFlags::IS_LOCAL_ONLY) {
            Err(refuse_body(body, CallError::NotLocal))
        } else if !elsewhere && here {
            body.submit_here(shard.kind, target, head, self)
        } else if !elsewhere {
            // Advice: a node owns only what it was granted.
            Err(refuse_body(body, no_transport(self.node(), shard.kind, None)))
        } else if let Some(open) = self.open_to(*shard, to) {
            self.deliver(&open, target, &head, body, Some(told))
        } else {
            let reason = format!("node {} does not know the kind", to.owner).into();
            Err(refuse_body(body, CallError::NoRoute { reason }))
        };
        if let Err(error) = delivered
            && !parcel.head.asks
        {
            self.node().dead_letter(parcel.target.id.to_string(), parcel.body.name(), &error);
        }
    }

    /// The other end of the route to `hint`, remembered while the route stays open.
    pub(super) fn open_to(self: &Rc<Self>, shard: Shard, hint: Hint) -> Option<Rc<Open>> {
        if let Some(open) = self.routes().direct(shard).filter(|open| open.hint == hint) {
            return Some(open);
        }
        let peer = self.node().remoting().book().get(hint.owner)?;
        let kind = peer.tables().kind(self.node().kinds().get(shard.kind as usize)?.name())?;
        let lane = self.seat()?.lane_to(&peer, peer.seat_of(shard.number));
        let named = ShardRef { kind, number: shard.number };
        let open = Rc::new(Open { hint, peer, shard: named, lane, used: Cell::new(self.coarse()) });
        self.routes().remember(shard, self.is_single(shard), &open);
        Some(open)
    }

    /// How long a message may wait for its place to be known.
    pub(crate) fn expires(&self, head: &JobHead) -> Millis {
        if head.asks {
            return head.deadline;
        }
        head.deadline.min(self.coarse() + self.node().settings().remote.tell_ttl)
    }

    /// When a tell was sent first that may wait until `expires`.
    pub(in crate::remote) fn told(&self, expires: Millis) -> Millis {
        (expires - self.node().settings().remote.tell_ttl).min(self.coarse())
    }
}

fn refuse_body<B: Outbound + ?Sized>(body: &mut B, error: CallError) -> CallError {
    if let Some(waiter) = body.take_waiter() {
        waiter.fail(error.clone());
    }
    error
}

pub(super) fn no_transport(node: &NodeShared, kind: u32, owner: Option<NodeId>) -> CallError {
    let name = node.kinds().get(kind as usize).map_or("?", |kind| kind.name());
    match owner {
        Some(owner) => not_serving(&format!(
            "this part of kind {name} is owned by node {owner}, and this node has no transport"
        )),
        None => not_serving(&format!("kind {name} is not hosted here, and the node has no transport")),
    }
}
