//! What reaches a route, and what is done about it. Every decision is
//! [`RouteEntry`](archipelago_protocol::route::RouteEntry)'s.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::link::Hint;
use archipelago_protocol::route::{RouteAction, RouteEntry, RouteEvent, RouteRefusal};
use archipelago_protocol::time::Millis;

use super::Shard;
use super::post::no_transport;
use crate::arbiter::ArbiterLocal;
use crate::datacenter::seek_abroad;
use crate::mutants::{Mutant, broken};
use crate::placement::{Found, seek};
use crate::remote::outbound::Parked;

impl ArbiterLocal {
    /// Feeds one event to the route of a shard and carries out what follows.
    pub(crate) fn route(self: &Rc<Self>, shard: Shard, mut event: RouteEvent<Parked>) {
        match &mut event {
            RouteEvent::Returned { message, .. } => self.count_waiting(message),
            RouteEvent::LaneLost { unsent, .. } => unsent.iter_mut().for_each(|one| self.count_waiting(one)),
            _ => {}
        }
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
            RouteAction::CheckLane { owner } => self.check_lane(shard, owner),
            RouteAction::CloseLane { owner } => self.close_lanes(shard, owner),
            RouteAction::LookUp => self.look_up(shard),
            RouteAction::WakeAt(at) => self.wake_route(shard, at),
            RouteAction::Refuse { message, why } => message.refuse(refusal(why), self),
            RouteAction::Over(message) => message.over(self),
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
                self.node().searches().forget(&over.target.id);
            }
            over.over(self);
        }
        self.routes().busy.set(self.routes().waiting() > 0);
    }
}

pub(super) fn refusal(why: RouteRefusal) -> CallError {
    match why {
        RouteRefusal::Full { bound } => {
            CallError::Overloaded { queue: Queue::Route, bound: u32::try_from(bound).unwrap_or(u32::MAX) }
        }
        RouteRefusal::LocalOnly => CallError::NotLocal,
    }
}
