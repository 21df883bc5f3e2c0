//! Where the messages of one arbiter to actors of other nodes go. Every decision is [`RouteEntry`]'s.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::link::{Frame, Hint, ShardRef};
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::placement::{CacheLimits, PlacementCache};
use archipelago_protocol::route::{RouteAction, RouteEntry, RouteEvent, RouteRefusal, RouteState};
use archipelago_protocol::time::Millis;

use super::lane::Lane;
use super::large;
use super::open_routes::OpenRoutes;
use super::outbound::{NotSent, Outbound, Parcel, Parked, Way, send_on};
use super::peer::Peer;
use super::peer_actor::CloseNow;
use super::seat::Link;
use super::transfers::Hold;
use crate::arbiter::{ArbiterLocal, not_serving};
use crate::catalog::{JobHead, Target};
use crate::datacenter::seek_abroad;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::placement::{Found, seek};

/// The routes of one arbiter.
pub(crate) struct Routes {
    entries: RefCell<BTreeMap<Shard, RouteEntry<Parked>>>,
    /// Where the open routes lead.
    open: RefCell<OpenRoutes>,
    /// The shards that are being looked for.
    sought: RefCell<BTreeSet<Shard>>,
    /// The shards for which messages wait.
    waited_for: RefCell<BTreeSet<Shard>>,
    /// The places of single actors.
    cache: RefCell<PlacementCache<Shard>>,
    /// Whether somebody looks at the cache now and then.
    cache_watched: Cell<bool>,
    /// How many events are being carried out, one inside the other; and the single actors they were about.
    depth: Cell<u32>,
    touched: RefCell<BTreeSet<Shard>>,
    /// Something may wait for a place.
    busy: Cell<bool>,
}

/// One shard of a kind of this node's list: what is owned as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shard {
    /// The datacenter whose shard it is, as this node counts them; zero for its own.
    pub(crate) island: u16,
    pub(crate) kind: u32,
    pub(crate) number: u64,
}

impl Shard {
    /// A shard of this node's own datacenter.
    pub(crate) const fn home(kind: u32, number: u64) -> Self {
        Self { island: 0, kind, number }
    }

    /// Whether it belongs to this node's own datacenter.
    pub(crate) const fn is_home(self) -> bool {
        self.island == 0
    }
}

/// The other end of an open route.
pub(super) struct Open {
    hint: Hint,
    peer: Arc<Peer>,
    /// The shard, as the peer calls it.
    shard: ShardRef,
    lane: Rc<Lane>,
    /// When a message to a single actor last went there, by the coarse clock.
    used: Cell<Millis>,
}

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
            return self.deliver(&open, target, &head, &mut body);
        }
        let Some(shard) = self.place_of_actor(kind, target, &head) else {
            let expires = self.expires(&head);
            let shard = self.node().shard(kind, target.hash);
            self.wait_for_place(Box::new(Parcel { shard, target: target.clone(), head, expires, body }));
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
            return self.deliver(&open, target, &head, &mut body);
        }
        let expires = self.expires(&head);
        let parcel: Parked = Box::new(Parcel { shard, target: target.clone(), head, expires, body });
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
    pub(crate) fn park(self: &Rc<Self>, parcel: Parked) {
        let shard = parcel.shard;
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

    /// Writes a message into the lane of its actor.
    fn deliver<B: Outbound + ?Sized>(
        self: &Rc<Self>,
        open: &Open,
        target: &Target,
        head: &JobHead,
        body: &mut B,
    ) -> Result<(), CallError> {
        let way =
            Way { peer: &open.peer, lane: &open.lane, shard: open.shard, generation: open.hint.generation };
        let now = self.coarse();
        open.used.set(now);
        match send_on(&way, target, head, body, now) {
            Ok(()) => {
                if let Some(seat) = self.seat() {
                    seat.call_pending();
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

    /// Feeds one event to the route of a shard and carries out what follows.
    pub(crate) fn route(self: &Rc<Self>, shard: Shard, event: RouteEvent<Parked>) {
        let single = self.is_single(shard);
        let Some(event) = (if single { self.about_single(shard, event) } else { Some(event) }) else {
            return;
        };
        let now = self.node().env().now();
        let bound = self.node().settings().remote.parked;
        self.routes().depth.set(self.routes().depth.get() + 1);
        let actions = {
            let mut entries = self.routes().entries.borrow_mut();
            let entry = entries.entry(shard).or_insert_with(|| RouteEntry::new(bound));
            entry.handle(now, event, |parcel| parcel.is_over(now))
        };
        self.routes().forget_open(shard);
        for action in actions {
            self.carry_out(shard, action);
        }
        self.open_here(shard);
        self.routes().depth.set(self.routes().depth.get() - 1);
        if single {
            self.note_place(shard);
            self.routes().touched.borrow_mut().insert(shard);
        }
        // Not before everything is carried out: what follows from an event may need what another seems to have done with.
        if self.routes().depth.get() == 0 {
            let touched = std::mem::take(&mut *self.routes().touched.borrow_mut());
            touched.into_iter().for_each(|shard| self.tidy_up(shard));
        }
    }

    /// What an event means to a single actor that has no route: nothing, unless it brings messages.
    fn about_single(self: &Rc<Self>, shard: Shard, event: RouteEvent<Parked>) -> Option<RouteEvent<Parked>> {
        let named = match &event {
            RouteEvent::Send(message) | RouteEvent::Returned { message, .. } => {
                self.name_part(shard, &message.target.id)
            }
            RouteEvent::LaneLost { unsent, .. } if !unsent.is_empty() => {
                self.name_part(shard, &unsent[0].target.id)
            }
            _ => return self.routes().knows(shard).then_some(event),
        };
        let Err(error) = named else { return Some(event) };
        match event {
            RouteEvent::Send(message) | RouteEvent::Returned { message, .. } => message.refuse(error, self),
            RouteEvent::LaneLost { unsent, .. } => {
                unsent.into_iter().for_each(|message| message.refuse(error.clone(), self));
            }
            _ => {}
        }
        None
    }

    /// Messages of this node go straight to the actors of a shard as long as its route leads here: then nothing waits that
    /// they could overtake.
    fn open_here(&self, shard: Shard) {
        let here = self.routes().leads_to(shard).filter(|hint| hint.owner == self.node().id());
        if let Some(kind) = self.any_kind(shard.kind).filter(|_| shard.is_home()) {
            let served = kind.shards().served(shard.number);
            kind.shards()
                .set_open(shard.number, served.is_some() && here.map(|hint| hint.generation) == served);
        }
        self.note_waiting(shard);
    }

    /// Somebody must look at the deadlines of what waits.
    fn note_waiting(&self, shard: Shard) {
        let waits = self.routes().entries.borrow().get(&shard).is_some_and(|entry| entry.waiting() > 0);
        self.routes().note_waiting(shard, waits);
        if waits && !self.routes().busy.replace(true) {
            self.wake_main();
        }
    }

    fn carry_out(self: &Rc<Self>, shard: Shard, action: RouteAction<Parked>) {
        match action {
            RouteAction::Deliver { owner, generation, message } => {
                self.deliver_parked(Hint { owner, generation }, message);
            }
            RouteAction::SendSettle { owner, generation } => self.settle(shard, Hint { owner, generation }),
            RouteAction::CloseLane { owner } => self.close_lanes(shard, owner),
            RouteAction::LookUp => self.look_up(shard),
            RouteAction::WakeAt(at) => self.wake_route(shard, at),
            RouteAction::Refuse { message, why } => message.refuse(refusal(why), self),
            RouteAction::Over(message) => message.over(self),
        }
    }

    fn deliver_parked(self: &Rc<Self>, to: Hint, parcel: Parked) {
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
            self.deliver(&open, target, &head, body)
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
    fn open_to(self: &Rc<Self>, shard: Shard, hint: Hint) -> Option<Rc<Open>> {
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

    /// Tells the owner that nothing more comes. Without a connection nothing of ours is there, only in the lane.
    fn settle(self: &Rc<Self>, shard: Shard, hint: Hint) {
        if hint.owner == self.node().id() {
            return self.settle_here(shard, hint);
        }
        match self.open_to(shard, hint) {
            Some(_) if broken(Mutant::SwitchAtOnce) => {
                let Hint { owner: from, generation } = hint;
                self.route(shard, RouteEvent::Settled { from, generation, hint: None });
            }
            Some(open) if open.lane.is_connected() => {
                open.lane.say(&Frame::Settle { shard: open.shard, generation: hint.generation });
            }
            Some(open) => self.give_lane_up(&open.lane),
            None => self.owner_gone(shard, hint.owner, Vec::new()),
        }
    }

    /// Nobody knows the owner any more: look again, first for what waits in its lane and then for what comes after that.
    fn owner_gone(self: &Rc<Self>, shard: Shard, owner: NodeId, unsent: Vec<Parked>) {
        if let Some(link) = self.link_of(shard, owner).filter(|link| !link.lane.is_connected()) {
            self.give_lane_up(&link.lane);
        }
        self.route(shard, RouteEvent::LaneLost { node: owner, unsent });
    }

    /// The link over which messages of a shard go to a node, if there is one.
    pub(super) fn link_of(&self, shard: Shard, owner: NodeId) -> Option<Link> {
        let links = self.seat()?.links_of(owner);
        links.into_iter().find(|link| link.lane.to() == link.lane.peer().seat_of(shard.number))
    }

    /// Closes the lane of a shard to a node that did not settle in time.
    fn close_lanes(self: &Rc<Self>, shard: Shard, owner: NodeId) {
        match self.link_of(shard, owner) {
            Some(link) => self.close_link(&link, "the peer did not settle a shard in time"),
            None => self.route(shard, RouteEvent::LaneLost { node: owner, unsent: Vec::new() }),
        }
    }

    /// Nothing goes over a link any more; what waits in it looks for its way again.
    pub(super) fn close_link(self: &Rc<Self>, link: &Link, why: &'static str) {
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

    fn wake_route(self: &Rc<Self>, shard: Shard, at: Millis) {
        let (on, env) = (Rc::downgrade(self), self.node().env());
        let sleep = env.sleep(at.since(env.now()));
        env.spawn(Box::pin(async move {
            sleep.await;
            if let Some(on) = on.upgrade() {
                on.route(shard, RouteEvent::WokeUp);
            }
        }));
    }

    fn look_up(self: &Rc<Self>, shard: Shard) {
        if broken(Mutant::StaleRouteForEver) && self.routes().has_led(shard) {
            return;
        }
        let key = self.key_of(shard);
        if key.is_none() && shard.is_home() {
            return;
        }
        if !self.routes().sought.borrow_mut().insert(shard) {
            return;
        }
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        self.node().env().spawn(Box::pin(async move {
            let found = match key.filter(|_| shard.is_home()) {
                Some(key) => seek(&node, shard, &key).await,
                None => seek_abroad(&node, shard).await,
            };
            let Some(on) = on.upgrade() else { return };
            on.routes().sought.borrow_mut().remove(&shard);
            match found {
                Found::At(hint) if !node.remoting().book().is_leaving(hint.owner) => {
                    on.route(shard, RouteEvent::LookedUp(Some(hint)));
                }
                Found::At(_) | Found::NotYet => on.route(shard, RouteEvent::LookedUp(None)),
                Found::OutOfReach(owner) => {
                    on.refuse_waiting(shard, &no_transport(&node, shard.kind, Some(owner)));
                }
                Found::Gone(error) => {
                    on.forget_places_in(shard);
                    on.refuse_waiting(shard, &error);
                }
            }
        }));
    }

    /// Nothing that waits for a shard will ever get there.
    fn refuse_waiting(self: &Rc<Self>, shard: Shard, error: &CallError) {
        let waiting = self.routes().entries.borrow_mut().get_mut(&shard).map(RouteEntry::take_all);
        self.routes().note_waiting(shard, false);
        for parcel in waiting.into_iter().flatten() {
            parcel.refuse(error.clone(), self);
        }
    }

    /// Ends what waits for a place and whose time is over.
    pub(crate) fn sweep_routes(self: &Rc<Self>) {
        let now = self.node().env().now();
        let behind = self.transfers().take_ended(now);
        let unplaced = self.abroad().take_ended(now);
        for over in self.routes().take_ended(now).into_iter().chain(behind).chain(unplaced) {
            if !over.shard.is_home() {
                // Perhaps it is not there any more: the next one looks again.
                self.abroad().forget(&over.target);
            }
            over.over(self);
        }
        self.routes().busy.set(self.routes().waiting() > 0);
    }

    /// How long a message may wait for its place to be known.
    pub(crate) fn expires(&self, head: &JobHead) -> Millis {
        if head.asks {
            return head.deadline;
        }
        head.deadline.min(self.coarse() + self.node().settings().remote.tell_ttl)
    }
}

impl Routes {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self {
            entries: RefCell::default(),
            open: RefCell::default(),
            sought: RefCell::default(),
            waited_for: RefCell::default(),
            cache: RefCell::new(PlacementCache::new(limits)),
            cache_watched: Cell::new(false),
            depth: Cell::new(0),
            touched: RefCell::default(),
            busy: Cell::new(false),
        }
    }

    /// Where to send right now, if the route is open.
    fn direct(&self, shard: Shard) -> Option<Rc<Open>> {
        self.open.borrow().get(shard).cloned()
    }

    pub(super) fn forget_open(&self, shard: Shard) {
        self.open.borrow_mut().forget(shard);
    }

    /// Whether there is a route to a shard, open or not.
    pub(crate) fn knows(&self, shard: Shard) -> bool {
        self.entries.borrow().contains_key(&shard)
    }

    pub(super) const fn entries(&self) -> &RefCell<BTreeMap<Shard, RouteEntry<Parked>>> {
        &self.entries
    }

    pub(super) const fn cache(&self) -> &RefCell<PlacementCache<Shard>> {
        &self.cache
    }

    /// Somebody looks at the cache from now on, or nobody; whether somebody did before.
    pub(super) fn looks_at_cache(&self, looks: bool) -> bool {
        self.cache_watched.replace(looks)
    }

    /// When a message last went over the open route of a single actor.
    pub(super) fn last_use(&self, shard: Shard) -> Millis {
        self.open.borrow().get(shard).map_or(Millis::ZERO, |open| open.used.get())
    }

    fn note_waiting(&self, shard: Shard, waits: bool) {
        let mut waited_for = self.waited_for.borrow_mut();
        if waits {
            waited_for.insert(shard);
        } else {
            waited_for.remove(&shard);
        }
    }

    /// Remembers where an open route leads: until the next event on it, messages go there directly.
    fn remember(&self, shard: Shard, single: bool, open: &Rc<Open>) {
        let direct = self.entries.borrow_mut().get_mut(&shard).and_then(RouteEntry::direct);
        if direct != Some(open.hint) {
            return;
        }
        self.open.borrow_mut().remember(shard, single, open);
    }

    /// Where the route of a shard leads, if it is open.
    pub(crate) fn leads_to(&self, shard: Shard) -> Option<Hint> {
        match self.entries.borrow().get(&shard)?.state() {
            RouteState::Open { owner, generation } => Some(Hint { owner, generation }),
            _ => None,
        }
    }

    /// Whether the route of a shard has ever led somewhere.
    fn has_led(&self, shard: Shard) -> bool {
        let entries = self.entries.borrow();
        let waits = RouteState::Waiting { generation: Generation::new(0), on: None };
        entries.get(&shard).is_some_and(|entry| entry.state() != waits)
    }

    /// Whether nothing of ours for any of these shards is at `node`, nor goes there.
    pub(super) fn are_clear_of(&self, shards: &BTreeSet<Shard>, node: NodeId) -> bool {
        let entries = self.entries.borrow();
        shards.iter().all(|shard| entries.get(shard).is_none_or(|entry| entry.is_clear_of(node)))
    }

    /// Whether something may wait for a place.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    fn take_ended(&self, now: Millis) -> Vec<Parked> {
        let (mut entries, mut ended) = (self.entries.borrow_mut(), Vec::new());
        self.waited_for.borrow_mut().retain(|shard| {
            let Some(entry) = entries.get_mut(shard) else { return false };
            ended.extend(entry.take_ended(|parcel| parcel.is_over(now)));
            entry.waiting() > 0
        });
        ended
    }

    /// Everything that waits: the arbiter ends.
    pub(crate) fn take_all(&self) -> Vec<Parked> {
        self.open.borrow_mut().clear();
        self.waited_for.borrow_mut().clear();
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        entries.into_values().flat_map(|mut entry| entry.take_all()).collect()
    }

    /// How many messages wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        let entries = self.entries.borrow();
        let waited_for = self.waited_for.borrow();
        waited_for.iter().filter_map(|shard| entries.get(shard)).map(RouteEntry::waiting).sum()
    }

    /// Whether the route of a shard waits for news from `node`.
    pub(super) fn waits_on(&self, shard: Shard, node: NodeId) -> bool {
        let entries = self.entries.borrow();
        let state = entries.get(&shard).map(RouteEntry::state);
        matches!(state, Some(RouteState::Waiting { on: Some(on), .. }) if on == node)
    }

    /// The shards whose routes may have to do with `node`. Of single actors there may be very many: only those whose
    /// routes do.
    pub(super) fn concerned_with(&self, node: NodeId, singles: impl Fn(u32) -> bool) -> Vec<Shard> {
        let concerned = |state| match state {
            RouteState::Open { owner, .. } | RouteState::Settling { owner, .. } => owner == node,
            RouteState::Waiting { on, .. } => on == Some(node),
        };
        let entries = self.entries.borrow();
        let all = entries.iter().filter(|(shard, entry)| concerned(entry.state()) || !singles(shard.kind));
        all.map(|(shard, _)| *shard).collect()
    }

    /// Every shard that has a route.
    pub(super) fn shards(&self) -> Vec<Shard> {
        self.entries.borrow().keys().copied().collect()
    }
}

fn refuse_body<B: Outbound + ?Sized>(body: &mut B, error: CallError) -> CallError {
    if let Some(waiter) = body.take_waiter() {
        waiter.fail(error.clone());
    }
    error
}

fn refusal(why: RouteRefusal) -> CallError {
    match why {
        RouteRefusal::Full { bound } => {
            CallError::Overloaded { queue: Queue::Route, bound: u32::try_from(bound).unwrap_or(u32::MAX) }
        }
        RouteRefusal::LocalOnly => CallError::NotLocal,
    }
}

fn no_transport(node: &NodeShared, kind: u32, owner: Option<NodeId>) -> CallError {
    let name = node.kinds().get(kind as usize).map_or("?", |kind| kind.name());
    match owner {
        Some(owner) => not_serving(&format!(
            "this part of kind {name} is owned by node {owner}, and this node has no transport"
        )),
        None => not_serving(&format!("kind {name} is not hosted here, and the node has no transport")),
    }
}
