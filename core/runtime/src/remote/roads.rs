//! The way of letters to the nodes of their actors.
//!
//! Named actors are known by the address of their node. A [`Road`] finds out who is there, keeps what waits meanwhile in
//! order, and asks again after a connection was lost: another process may have taken the address.
//!
//! Invariant: letters to one actor leave in the order in which they were posted. What waits, for whatever reason, is ahead of
//! what comes.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::peer::{Backoff, Seat};
use archipelago_protocol::time::Millis;

use super::lane::Lane;
use super::letter::{Letter, slot_of};
use super::letter_out::{self, Unwritten};
use super::peer::Peer;
use super::waiter::Waiter;
use crate::arbiter::ArbiterLocal;
use crate::node::NodeShared;

/// The roads of one arbiter, by where they lead.
#[derive(Default)]
pub(crate) struct Roads {
    by_address: RefCell<BTreeMap<NodeAddress, Road>>,
}

/// The road to one address.
#[derive(Default)]
struct Road {
    open: Option<Open>,
    /// Somebody is finding out who is there.
    meeting: bool,
    /// Whoever was there may have gone.
    lost: bool,
    /// Why nobody was met there last time.
    trouble: Option<String>,
    waiting: VecDeque<Letter>,
    /// What waits behind large letters to the same actor, by the hash of its path.
    behind: BTreeMap<u64, Behind>,
}

/// The other end of an open road.
struct Open {
    peer: Arc<Peer>,
    lanes: BTreeMap<Seat, Rc<Lane>>,
}

/// What waits behind one large letter.
struct Behind {
    transfer: u64,
    waiting: VecDeque<Letter>,
}

/// What to do with a letter.
enum Turn {
    Deliver(Letter, Arc<Peer>),
    Kept { meet: bool },
    Full(Letter),
}

impl ArbiterLocal {
    /// Sends a letter to the node of its actor.
    ///
    /// # Errors
    ///
    /// It was not sent and will not be; whoever waits has been told.
    pub(crate) fn post_letter(self: &Rc<Self>, letter: Letter) -> Result<(), CallError> {
        self.try_post(letter).map_err(|(mut letter, error)| {
            if let Some(waiter) = letter.waiter.take() {
                waiter.fail(error.clone());
            }
            error
        })
    }

    /// Sends a letter; if that fails at once, it becomes a dead letter.
    pub(crate) fn post_or_lose(self: &Rc<Self>, letter: Letter) {
        if let Err((letter, error)) = self.try_post(letter) {
            letter.refuse(error, self);
        }
    }

    fn try_post(self: &Rc<Self>, mut letter: Letter) -> Result<(), (Box<Letter>, CallError)> {
        let address = match self.may_post(&letter) {
            Ok(address) => address,
            Err(error) => return Err((Box::new(letter), error)),
        };
        letter.expires = letter.expires.min(self.expires(&letter.head));
        let bound = self.node().settings().remote.parked;
        match self.roads().take_on(&address, letter, bound) {
            Turn::Deliver(letter, peer) => self.deliver_letter(&address, &peer, letter),
            Turn::Kept { meet } => {
                if meet {
                    self.meet_at(address);
                }
                if let Some(seat) = self.seat() {
                    seat.call_pending();
                }
                Ok(())
            }
            Turn::Full(letter) => {
                let bound = u32::try_from(bound).unwrap_or(u32::MAX);
                Err((Box::new(letter), CallError::Overloaded { queue: Queue::Route, bound }))
            }
        }
    }

    fn may_post(&self, letter: &Letter) -> Result<NodeAddress, CallError> {
        let no_route = |reason: &str| CallError::NoRoute { reason: reason.into() };
        if self.seat().is_none() {
            return Err(no_route("the node has no transport"));
        }
        if letter.head.flags.contains(MessageFlags::IS_LOCAL_ONLY) {
            return Err(CallError::NotLocal);
        }
        self.may_enter(letter.head.inside)?;
        letter.to.address().cloned().ok_or_else(|| no_route("the path names no node"))
    }

    /// Writes a letter into the lane of its actor.
    fn deliver_letter(
        self: &Rc<Self>,
        address: &NodeAddress,
        peer: &Arc<Peer>,
        letter: Letter,
    ) -> Result<(), (Box<Letter>, CallError)> {
        let hash = letter.hash();
        let Some(lane) = self.lane_of(address, peer, peer.seat_of(slot_of(hash))) else {
            let reason = "the node has no transport".into();
            return Err((Box::new(letter), CallError::NoRoute { reason }));
        };
        match letter_out::write(self, &lane, letter) {
            Ok(()) => Ok(()),
            Err(Unwritten::Refused(letter, error)) => Err((letter, error)),
            Err(Unwritten::Large(letter)) => {
                let transfer = letter_out::send_large(self, &lane, address, *letter)?;
                self.roads().hold_up(address, hash, transfer);
                Ok(())
            }
        }
    }

    fn lane_of(self: &Rc<Self>, address: &NodeAddress, peer: &Arc<Peer>, to: Seat) -> Option<Rc<Lane>> {
        if let Some(lane) = self.roads().lane(address, to) {
            return Some(lane);
        }
        let lane = self.seat()?.lane_to(peer, to);
        self.roads().keep_lane(address, peer, &lane);
        Some(lane)
    }

    /// Finds out who is at an address, again and again, for as long as letters wait for it.
    fn meet_at(self: &Rc<Self>, address: NodeAddress) {
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        self.node().env().spawn(Box::pin(async move {
            let mut backoff = Backoff::default();
            loop {
                let Some(anew) = on.upgrade().map(|on| on.roads().was_lost(&address)) else { return };
                let met = meet(&node, &address, anew).await;
                let Some(on) = on.upgrade() else { return };
                match met {
                    Ok(peer) => return on.road_opened(&address, peer),
                    Err(trouble) => {
                        tracing::debug!(%address, trouble, "a node with a named actor could not be met");
                        if !on.roads().failed(&address, trouble) {
                            return;
                        }
                    }
                }
                drop(on);
                node.env().sleep(backoff.next(node.env().random())).await;
            }
        }));
    }

    /// Somebody was met: what waits can go.
    fn road_opened(self: &Rc<Self>, address: &NodeAddress, peer: Arc<Peer>) {
        self.roads().opened(address, peer);
        while let Some((letter, peer)) = self.roads().next_waiting(address) {
            if let Err((letter, error)) = self.deliver_letter(address, &peer, letter) {
                letter.refuse(error, self);
            }
        }
    }

    /// The connection of a lane is gone: what it did not give away looks for its way again.
    pub(super) fn letters_back(
        self: &Rc<Self>,
        lane: &Lane,
        unsent: Vec<archipelago_protocol::link::Unsent<Waiter>>,
    ) {
        let mut to_meet = self.roads().peer_lost(lane.peer());
        let (now, tell_ttl) = (self.node().env().now(), self.node().settings().remote.tell_ttl);
        let letters = unsent.into_iter().filter_map(|unsent| Letter::unsent(unsent, now, tell_ttl));
        for letter in letters.collect::<Vec<_>>().into_iter().rev() {
            let Some(address) = letter.to.address().cloned() else { continue };
            if self.roads().put_back(&address, letter) {
                to_meet.push(address);
            }
        }
        for address in to_meet {
            self.meet_at(address);
        }
    }

    /// A large letter has arrived, or never will: what waited behind it may go, in order.
    pub(super) fn large_letter_over(self: &Rc<Self>, address: &NodeAddress, hash: u64, transfer: u64) {
        for letter in self.roads().release(address, hash, transfer) {
            self.post_or_lose(letter);
        }
    }

    /// Ends the letters that wait and whose time is over.
    pub(super) fn sweep_letters(&self) {
        for (letter, trouble) in self.roads().take_ended(self.node().env().now()) {
            let error = match trouble {
                Some(reason) => CallError::NoRoute { reason: reason.into() },
                None => CallError::Timeout { started: false },
            };
            letter.refuse(error, self);
        }
    }

    /// Refuses all letters that wait: the arbiter ends.
    pub(crate) fn close_roads(&self, error: &CallError) {
        for letter in self.roads().take_all() {
            letter.refuse(error.clone(), self);
        }
    }
}

async fn meet(node: &Arc<NodeShared>, address: &NodeAddress, anew: bool) -> Result<Arc<Peer>, String> {
    if !anew {
        return node.remoting().meet_serving(address.clone()).await;
    }
    let peer = node.remoting().meet_anew(address.clone()).await?;
    if peer.serves() { Ok(peer) } else { Err("the node is still starting".to_owned()) }
}

impl Roads {
    fn with<T>(&self, address: &NodeAddress, look: impl FnOnce(&mut Road) -> T) -> Option<T> {
        self.by_address.borrow_mut().get_mut(address).map(look)
    }

    /// Decides where a new letter goes.
    fn take_on(&self, address: &NodeAddress, letter: Letter, bound: usize) -> Turn {
        let mut roads = self.by_address.borrow_mut();
        let road = roads.entry(address.clone()).or_default();
        let waits = road.is_behind(&letter) || road.open.is_none() || !road.waiting.is_empty();
        match &road.open {
            Some(open) if !waits => Turn::Deliver(letter, Arc::clone(&open.peer)),
            _ if road.letters() >= bound => Turn::Full(letter),
            _ => {
                road.keep(letter);
                Turn::Kept { meet: road.must_meet() }
            }
        }
    }

    fn was_lost(&self, address: &NodeAddress) -> bool {
        self.with(address, |road| road.lost).unwrap_or_default()
    }

    /// Nobody was met; false if nothing waits for it any more.
    fn failed(&self, address: &NodeAddress, trouble: String) -> bool {
        let mut roads = self.by_address.borrow_mut();
        let Some(road) = roads.get_mut(address) else { return false };
        road.trouble = Some(trouble);
        road.meeting = road.letters() > 0;
        let goes_on = road.meeting;
        if !goes_on {
            roads.remove(address);
        }
        goes_on
    }

    fn opened(&self, address: &NodeAddress, peer: Arc<Peer>) {
        self.with(address, |road| {
            (road.meeting, road.lost, road.trouble) = (false, false, None);
            road.open = Some(Open { peer, lanes: BTreeMap::new() });
        });
    }

    /// The next letter that may go over an open road.
    fn next_waiting(&self, address: &NodeAddress) -> Option<(Letter, Arc<Peer>)> {
        let mut roads = self.by_address.borrow_mut();
        let road = roads.get_mut(address)?;
        let peer = Arc::clone(&road.open.as_ref()?.peer);
        loop {
            let letter = road.waiting.pop_front()?;
            match road.behind.get_mut(&letter.hash()) {
                Some(behind) => behind.waiting.push_back(letter),
                None => return Some((letter, peer)),
            }
        }
    }

    fn lane(&self, address: &NodeAddress, to: Seat) -> Option<Rc<Lane>> {
        self.with(address, |road| road.open.as_ref()?.lanes.get(&to).cloned()).flatten()
    }

    fn keep_lane(&self, address: &NodeAddress, peer: &Arc<Peer>, lane: &Rc<Lane>) {
        self.with(address, |road| {
            if let Some(open) = road.open.as_mut().filter(|open| open.peer.id() == peer.id()) {
                open.lanes.insert(lane.to(), Rc::clone(lane));
            }
        });
    }

    /// A lane to a peer was lost: closes the roads to it, and says where somebody must look again.
    fn peer_lost(&self, peer: &Peer) -> Vec<NodeAddress> {
        let mut roads = self.by_address.borrow_mut();
        for road in roads.values_mut() {
            if road.open.as_ref().is_some_and(|open| open.peer.id() == peer.id()) {
                (road.open, road.lost) = (None, true);
            }
        }
        roads.retain(|_, road| road.open.is_some() || road.meeting || road.letters() > 0);
        let looks = roads.iter_mut().filter(|(_, road)| !road.waiting.is_empty());
        looks.filter_map(|(address, road)| road.must_meet().then(|| address.clone())).collect()
    }

    /// Puts a letter that came back before all others; true if somebody must look who is there.
    fn put_back(&self, address: &NodeAddress, letter: Letter) -> bool {
        let mut roads = self.by_address.borrow_mut();
        let road = roads.entry(address.clone()).or_default();
        road.lost = true;
        road.waiting.push_front(letter);
        road.must_meet()
    }

    fn hold_up(&self, address: &NodeAddress, hash: u64, transfer: u64) {
        self.with(address, |road| {
            road.behind.insert(hash, Behind { transfer, waiting: VecDeque::new() });
        });
    }

    fn release(&self, address: &NodeAddress, hash: u64, transfer: u64) -> VecDeque<Letter> {
        let behind = self.with(address, |road| {
            let same = road.behind.get(&hash).is_some_and(|behind| behind.transfer == transfer);
            same.then(|| road.behind.remove(&hash)).flatten()
        });
        behind.flatten().map(|behind| behind.waiting).unwrap_or_default()
    }

    /// Takes the letters that are not worth sending any more, each with the reason why it is still here, if known.
    fn take_ended(&self, now: Millis) -> Vec<(Letter, Option<String>)> {
        let mut roads = self.by_address.borrow_mut();
        let mut ended = Vec::new();
        for road in roads.values_mut() {
            let trouble = &road.trouble;
            let behind = road.behind.values_mut().map(|behind| &mut behind.waiting);
            for queue in behind.chain([&mut road.waiting]) {
                let (over, rest) = queue.drain(..).partition::<VecDeque<_>, _>(|letter| letter.is_over(now));
                *queue = rest;
                ended.extend(over.into_iter().map(|letter| (letter, trouble.clone())));
            }
        }
        ended
    }

    fn take_all(&self) -> Vec<Letter> {
        let roads = std::mem::take(&mut *self.by_address.borrow_mut());
        let letters = roads.into_values().flat_map(|road| {
            let behind = road.behind.into_values().flat_map(|behind| behind.waiting);
            road.waiting.into_iter().chain(behind)
        });
        letters.collect()
    }

    /// How many letters wait.
    pub(super) fn waiting(&self) -> usize {
        self.by_address.borrow().values().map(Road::letters).sum()
    }
}

impl Road {
    fn is_behind(&self, letter: &Letter) -> bool {
        !self.behind.is_empty() && self.behind.contains_key(&letter.hash())
    }

    fn keep(&mut self, letter: Letter) {
        match self.behind.get_mut(&letter.hash()) {
            Some(behind) => behind.waiting.push_back(letter),
            None => self.waiting.push_back(letter),
        }
    }

    /// Whether somebody must begin to find out who is there; if so, it counts as begun.
    fn must_meet(&mut self) -> bool {
        self.open.is_none() && !std::mem::replace(&mut self.meeting, true)
    }

    fn letters(&self) -> usize {
        self.waiting.len() + self.behind.values().map(|behind| behind.waiting.len()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
