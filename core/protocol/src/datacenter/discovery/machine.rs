//! The machine of all searches of a node.
//!
//! Invariants: one search per key; every seeker is told exactly once, unless it gave up; every question that was not
//! answered when its search ended is cancelled; nothing goes on past a deadline; nobody is told that something is nowhere
//! unless every datacenter has said no.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::{DataCenterId, DataCenterMap};
use super::breaker::Breaker;
use super::cache::Cache;
use super::events::{
    AskId, Discovered, DiscoveryAction, DiscoveryEvent, DiscoverySettings, FarAnswer, OnStale, SeekerId,
};
use super::flight::{Flight, FlightId, Party, Question, Stand};
use super::trips::Trips;
use crate::hash::mix;
use crate::identity::NodeAddress;
use crate::time::Millis;

/// The searches of a node for things that may be in another datacenter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Discovery<K, P> {
    settings: DiscoverySettings,
    flights: BTreeMap<FlightId, Flight<K>>,
    by_key: BTreeMap<K, FlightId>,
    by_seeker: BTreeMap<SeekerId, FlightId>,
    by_ask: BTreeMap<AskId, FlightId>,
    cache: Cache<K, P>,
    breakers: BTreeMap<DataCenterId, Breaker>,
    trips: BTreeMap<DataCenterId, Trips>,
    next: u64,
    wake_at: Option<Millis>,
}

type Actions<K, P> = Vec<DiscoveryAction<K, P>>;

impl<K: Ord + Clone, P: Clone> Discovery<K, P> {
    /// No searches.
    pub const fn new(settings: DiscoverySettings) -> Self {
        Self {
            cache: Cache::new(settings.remembered),
            settings,
            flights: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_seeker: BTreeMap::new(),
            by_ask: BTreeMap::new(),
            breakers: BTreeMap::new(),
            trips: BTreeMap::new(),
            next: 0,
            wake_at: None,
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: DiscoveryEvent<'_, K, P>) -> Actions<K, P> {
        let mut out = Vec::new();
        match event {
            DiscoveryEvent::Seek { seeker, key, deadline, map, random } => {
                self.on_seek(now, (seeker, deadline), key, (map, random), &mut out);
            }
            DiscoveryEvent::GaveUp(seeker) => self.on_gave_up(now, seeker, &mut out),
            DiscoveryEvent::Answered { ask, answer } => self.on_answered(now, ask, answer, &mut out),
            DiscoveryEvent::WokeUp => self.on_woke_up(now, &mut out),
        }
        self.plan_wake(&mut out);
        out
    }

    /// Forgets where something was: it turned out to be wrong.
    pub fn forget(&mut self, key: &K) {
        self.cache.forget(key);
    }

    /// How long a datacenter takes to answer, usually.
    pub fn round_trip(&self, datacenter: &DataCenterId) -> Option<Millis> {
        self.trips.get(datacenter)?.median()
    }

    /// How many searches are under way.
    pub fn searches(&self) -> usize {
        self.flights.len()
    }

    /// How many answers are remembered.
    pub fn remembered(&self) -> usize {
        self.cache.len()
    }

    fn on_seek(
        &mut self,
        now: Millis,
        (seeker, deadline): (SeekerId, Millis),
        key: K,
        (map, random): (&DataCenterMap, u64),
        out: &mut Actions<K, P>,
    ) {
        if let Some(known) = self.known(now, &key, map) {
            out.push(DiscoveryAction::Tell(seeker, known));
        } else if let Some(flight) = self.by_key.get(&key).copied() {
            self.join(flight, seeker, deadline);
        } else if self.flights.len() >= self.settings.searches {
            out.push(DiscoveryAction::Tell(seeker, Discovered::Full));
        } else {
            self.begin(now, (seeker, deadline), key, (map, random), out);
        }
    }

    /// What can be said without a search.
    fn known(&self, now: Millis, key: &K, map: &DataCenterMap) -> Option<Discovered<P>> {
        if map.stale && self.settings.on_stale == OnStale::Fail {
            return Some(Discovered::Stale);
        }
        match self.cache.get(now, key)? {
            None => Some(Discovered::NotFound),
            Some((datacenter, place)) => {
                let stands = map.get(datacenter).is_some_and(|entry| entry.may_be_asked());
                stands.then(|| Discovered::Found { datacenter: datacenter.clone(), place: place.clone() })
            }
        }
    }

    fn join(&mut self, id: FlightId, seeker: SeekerId, deadline: Millis) {
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.seekers.insert(seeker, deadline);
            self.by_seeker.insert(seeker, id);
        }
    }

    fn begin(
        &mut self,
        now: Millis,
        (seeker, deadline): (SeekerId, Millis),
        key: K,
        (map, random): (&DataCenterMap, u64),
        out: &mut Actions<K, P>,
    ) {
        self.forget_who_is_gone(map);
        let id = FlightId(self.number());
        let (mut parties, mut skipped) = (Vec::new(), Vec::new());
        for (nth, entry) in (0_u64..).zip(map.asked()) {
            let party = Party::new(now, entry, mix(random ^ nth));
            let breaker = self.breakers.entry(entry.id().clone()).or_default();
            match party.filter(|_| breaker.admits(now, id)) {
                Some(party) => parties.push(party),
                None => skipped.push(entry.id().clone()),
            }
        }
        let seekers = BTreeMap::from([(seeker, deadline)]);
        let deadline = now + self.settings.timeout;
        let flight = Flight { key: key.clone(), deadline, seekers, parties, skipped };
        let count = flight.parties.len();
        self.flights.insert(id, flight);
        self.by_key.insert(key, id);
        self.by_seeker.insert(seeker, id);
        for party in 0..count {
            self.ask_next(now, id, party, out);
        }
        self.conclude_if_over(now, id, out);
    }

    /// What was learned of datacenters that are in the map no more.
    fn forget_who_is_gone(&mut self, map: &DataCenterMap) {
        if self.breakers.len().max(self.trips.len()) > map.entries.len() {
            self.breakers.retain(|id, _| map.get(id).is_some());
            self.trips.retain(|id, _| map.get(id).is_some());
        }
    }

    /// Asks the next endpoint of a datacenter; false if there is none.
    fn ask_next(&mut self, now: Millis, id: FlightId, place: usize, out: &mut Actions<K, P>) -> bool {
        let Some(flight) = self.flights.get_mut(&id) else { return false };
        let Some(party) = flight.parties.get_mut(place) else { return false };
        let Some(endpoint) = party.next_endpoint() else { return false };
        let p95 = self.trips.get(&party.datacenter).and_then(Trips::p95);
        let hedge = p95.unwrap_or(self.settings.hedge_after).max(SHORTEST_HEDGE);
        party.hedge_at = party.has_more().then(|| now + hedge);
        self.ask(now, id, place, endpoint, out);
        true
    }

    fn ask(
        &mut self,
        now: Millis,
        id: FlightId,
        place: usize,
        endpoint: NodeAddress,
        out: &mut Actions<K, P>,
    ) {
        let ask = AskId(self.number());
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let Some(party) = flight.parties.get_mut(place) else { return };
        party.open.insert(ask, Question { endpoint: endpoint.clone(), asked_at: now });
        self.by_ask.insert(ask, id);
        out.push(DiscoveryAction::Ask {
            ask,
            key: flight.key.clone(),
            datacenter: party.datacenter.clone(),
            endpoint,
            until: flight.deadline,
        });
    }

    fn on_answered(&mut self, now: Millis, ask: AskId, answer: FarAnswer<P>, out: &mut Actions<K, P>) {
        let Some(id) = self.by_ask.remove(&ask) else { return };
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let Some(place) = flight.parties.iter().position(|party| party.open.contains_key(&ask)) else {
            return;
        };
        let party = &mut flight.parties[place];
        let Some(Question { endpoint, asked_at }) = party.open.remove(&ask) else { return };
        let datacenter = party.datacenter.clone();
        if matches!(answer, FarAnswer::Yes(_) | FarAnswer::No) {
            self.trips.entry(datacenter.clone()).or_default().note(now.since(asked_at));
        }
        if !matches!(answer, FarAnswer::Failed) {
            self.breakers.insert(datacenter.clone(), Breaker::Closed);
        }
        match answer {
            FarAnswer::Yes(place) => {
                let until = now + self.settings.positive_life;
                self.cache.learn(flight.key.clone(), Some((datacenter.clone(), place.clone())), until);
                self.finish(now, id, &Discovered::Found { datacenter, place }, out);
            }
            FarAnswer::No => {
                party.stand = Stand::No;
                self.cancel_party(id, place, out);
                self.conclude_if_over(now, id, out);
            }
            FarAnswer::Unsettled => {
                let pause = party.pause(self.settings.ask_again, self.settings.ask_again_most);
                party.again = Some((now + pause, endpoint));
            }
            FarAnswer::Refused => {
                let pause = party.pause(self.settings.ask_again, self.settings.ask_again_most);
                party.again.get_or_insert((now + pause, endpoint));
                self.ask_next(now, id, place, out);
            }
            FarAnswer::Failed => self.on_failed(now, id, place, out),
        }
    }

    /// An endpoint is of no use: the next one is asked at once, and when there is none the datacenter is silent.
    fn on_failed(&mut self, now: Millis, id: FlightId, place: usize, out: &mut Actions<K, P>) {
        if self.ask_next(now, id, place, out) {
            return;
        }
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let party = &mut flight.parties[place];
        if party.open.is_empty() && party.again.is_none() {
            party.stand = Stand::Silent;
            party.hedge_at = None;
            let until = now + self.settings.breaker;
            self.breakers.insert(party.datacenter.clone(), Breaker::Open(until));
            self.conclude_if_over(now, id, out);
        }
    }

    fn on_gave_up(&mut self, now: Millis, seeker: SeekerId, out: &mut Actions<K, P>) {
        let Some(id) = self.by_seeker.remove(&seeker) else { return };
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.seekers.remove(&seeker);
            if flight.seekers.is_empty() {
                self.end(now, id, out);
            }
        }
    }

    fn on_woke_up(&mut self, now: Millis, out: &mut Actions<K, P>) {
        // One that was overtaken by an earlier one plans nothing: else each of them would ask for another for ever.
        if self.wake_at.is_none_or(|planned| now < planned) {
            return;
        }
        self.wake_at = None;
        let due: Vec<FlightId> =
            self.flights.iter().filter(|(_, f)| f.wake_at() <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.look_at(now, id, out);
        }
    }

    fn look_at(&mut self, now: Millis, id: FlightId, out: &mut Actions<K, P>) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        if flight.deadline <= now {
            return self.give_up(now, id, out);
        }
        let late: Vec<SeekerId> =
            flight.seekers.iter().filter(|(_, until)| **until <= now).map(|(seeker, _)| *seeker).collect();
        let unreachable = flight.conclusion();
        if !late.is_empty() {
            let (until, silence) = (now + self.settings.breaker, self.settings.silence);
            let mute = flight.parties.iter().filter(|party| party.is_mute());
            for party in mute.filter(|party| now.since(party.asked_at) >= silence) {
                self.breakers.insert(party.datacenter.clone(), Breaker::Open(until));
            }
        }
        for seeker in late {
            out.push(DiscoveryAction::Tell(seeker, unreachable.clone()));
            self.on_gave_up(now, seeker, out);
        }
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let hedges = flight.parties.iter().enumerate();
        let due: Vec<usize> =
            hedges.filter(|(_, party)| party.hedge_at.is_some_and(|at| at <= now)).map(|(n, _)| n).collect();
        for party in due {
            self.hedge(now, id, party, out);
        }
        self.ask_again(now, id, out);
    }

    /// Asks those again that could not say.
    fn ask_again(&mut self, now: Millis, id: FlightId, out: &mut Actions<K, P>) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let mut due = Vec::new();
        for (place, party) in flight.parties.iter_mut().enumerate() {
            if let Some((_, endpoint)) = party.again.take_if(|(at, _)| *at <= now) {
                due.push((place, endpoint));
            }
        }
        for (place, endpoint) in due {
            self.ask(now, id, place, endpoint, out);
        }
    }

    /// Asks one more endpoint; never a third besides two that are silent.
    fn hedge(&mut self, now: Millis, id: FlightId, place: usize, out: &mut Actions<K, P>) {
        self.ask_next(now, id, place, out);
        if let Some(party) = self.flights.get_mut(&id).and_then(|flight| flight.parties.get_mut(place)) {
            party.hedge_at = None;
        }
    }

    /// The time of a search is over: whoever has not answered is left alone for a while. Whoever could not say has answered.
    fn give_up(&mut self, now: Millis, id: FlightId, out: &mut Actions<K, P>) {
        let until = now + self.settings.breaker;
        let Some(flight) = self.flights.get_mut(&id) else { return };
        for party in flight.parties.iter_mut().filter(|party| party.stand == Stand::Waiting) {
            if party.is_mute() {
                self.breakers.insert(party.datacenter.clone(), Breaker::Open(until));
            }
            party.stand = Stand::Silent;
        }
        self.conclude_if_over(now, id, out);
    }

    fn conclude_if_over(&mut self, now: Millis, id: FlightId, out: &mut Actions<K, P>) {
        let Some(flight) = self.flights.get(&id).filter(|flight| flight.is_over()) else { return };
        let conclusion = flight.conclusion();
        if matches!(conclusion, Discovered::NotFound) && !flight.parties.is_empty() {
            self.cache.learn(flight.key.clone(), None, now + self.settings.negative_life);
        }
        self.finish(now, id, &conclusion, out);
    }

    fn finish(&mut self, now: Millis, id: FlightId, outcome: &Discovered<P>, out: &mut Actions<K, P>) {
        let seekers = self.flights.get(&id).map(|flight| flight.seekers.clone()).unwrap_or_default();
        for seeker in seekers.into_keys() {
            self.by_seeker.remove(&seeker);
            out.push(DiscoveryAction::Tell(seeker, outcome.clone()));
        }
        self.end(now, id, out);
    }

    /// Cancels what is still asked, and forgets the search.
    fn end(&mut self, now: Millis, id: FlightId, out: &mut Actions<K, P>) {
        for place in 0..self.flights.get(&id).map_or(0, |flight| flight.parties.len()) {
            self.cancel_party(id, place, out);
        }
        let Some(flight) = self.flights.remove(&id) else { return };
        self.by_key.remove(&flight.key);
        for party in flight.parties {
            if let Some(breaker) = self.breakers.get_mut(&party.datacenter) {
                breaker.let_go(now, id);
            }
        }
    }

    fn cancel_party(&mut self, id: FlightId, place: usize, out: &mut Actions<K, P>) {
        let party = self.flights.get_mut(&id).and_then(|flight| flight.parties.get_mut(place));
        let Some(party) = party else { return };
        (party.hedge_at, party.again) = (None, None);
        for ask in core::mem::take(&mut party.open).into_keys() {
            self.by_ask.remove(&ask);
            out.push(DiscoveryAction::Cancel(ask));
        }
    }

    /// Asks to be woken, if nothing is planned that is early enough.
    fn plan_wake(&mut self, out: &mut Actions<K, P>) {
        let Some(next) = self.flights.values().map(Flight::wake_at).min() else { return };
        if self.wake_at.is_none_or(|planned| next < planned) {
            self.wake_at = Some(next);
            out.push(DiscoveryAction::WakeAt(next));
        }
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// A second endpoint is never asked sooner.
const SHORTEST_HEDGE: Millis = Millis(5);

#[cfg(test)]
mod tests;
