//! The whole network as one value: hosts, ways, endpoints, connections, and what will happen to them.
//!
//! Everything is decided here, in the order of the calls and of time; the handles around it only wait. Maps are ordered and
//! random numbers are drawn in a fixed order, so the same calls at the same times give the same network.

mod conn;
mod listener;
mod looks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;

use archipelago_protocol::contract::CloseReason;
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;

pub(crate) use conn::{Conn, Ending, Key, Side};
pub(crate) use listener::{Knock, Listener};

use crate::channel::HELD;
use crate::mutants::Mutant;
use crate::rng::Rng;
use crate::settings::{DialAnswer, Link, NetworkSettings};

/// The name of a host, as in its address.
pub(crate) type Host = Arc<str>;

/// The network.
pub(crate) struct State {
    pub(crate) settings: NetworkSettings,
    pub(crate) rng: Rng,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) hosts: BTreeMap<Host, HostState>,
    pub(crate) links: BTreeMap<(Host, Host), Link>,
    /// From whom nothing passes to whom.
    pub(crate) blocked: BTreeSet<(Host, Host)>,
    pub(crate) listeners: BTreeMap<u64, Listener>,
    pub(crate) cables: BTreeMap<NodeAddress, CableState>,
    pub(crate) conns: BTreeMap<u64, Conn>,
    /// After how many bytes the next connection from here to there breaks.
    pub(crate) kills: BTreeMap<(Host, Host), u64>,
    /// What comes with time. Some may have been overtaken: each is checked when it is due.
    events: BTreeSet<Event>,
    pub(crate) to_wake: Vec<Waker>,
    pub(crate) stats: Stats,
    /// What mutants remember of those whose connection was lost, or whose dial was dropped.
    pub(crate) grudges: BTreeSet<(Host, Host)>,
    last_id: u64,
}

/// One host.
#[derive(Debug, Default)]
pub(crate) struct HostState {
    /// How often it has crashed.
    pub(crate) life: u64,
    pub(crate) down: bool,
    pub(crate) frozen: bool,
    pub(crate) dials: DialAnswer,
    /// Whose credentials it has.
    pub(crate) realm: u64,
    pub(crate) last_port: u16,
}

/// A second way to an endpoint that can be cut.
#[derive(Debug)]
pub(crate) struct CableState {
    pub(crate) to: NodeAddress,
    /// Towards the endpoint, and back.
    pub(crate) cut: [bool; 2],
}

/// What a network has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Dials that were begun.
    pub dials: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Ends of connections that were closed.
    pub closed: u64,
    /// Ends of connections that were lost.
    pub lost: u64,
    /// Bytes that were taken from senders.
    pub bytes_taken: u64,
    /// Bytes that receivers have read.
    pub bytes_read: u64,
    /// Batches that had to be sent again.
    pub resent: u64,
    /// Attempts to connect that came twice and were let in once.
    pub duplicates: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Millis,
    conn: u64,
    side: usize,
    what: What,
}

/// What happens to one side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    CloseArrives,
    Breaks,
    SilenceIsOver,
}

impl State {
    pub(crate) fn new(settings: NetworkSettings, seed: u64) -> Self {
        Self {
            settings,
            rng: Rng::new(seed),
            mutant: None,
            hosts: BTreeMap::new(),
            links: BTreeMap::new(),
            blocked: BTreeSet::new(),
            listeners: BTreeMap::new(),
            cables: BTreeMap::new(),
            conns: BTreeMap::new(),
            kills: BTreeMap::new(),
            events: BTreeSet::new(),
            to_wake: Vec::new(),
            stats: Stats::default(),
            grudges: BTreeSet::new(),
            last_id: 0,
        }
    }

    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// True if this rule is broken on purpose.
    pub(crate) fn broken(&self, rule: Mutant) -> bool {
        cfg!(feature = "mutants") && self.mutant == Some(rule)
    }

    /// Lets everything happen that is due by `now`, in the order of time.
    pub(crate) fn settle(&mut self, now: Millis) {
        while let Some(event) = self.events.first().copied().filter(|event| event.at <= now) {
            self.events.remove(&event);
            if let Some(ending) = self.due(event) {
                self.end_side(event.conn, event.side, ending, event.at);
            }
        }
    }

    /// What this event means, unless something has overtaken it.
    fn due(&self, event: Event) -> Option<Ending> {
        let Event { at, conn, side, what } = event;
        let conn = self.conns.get(&conn)?;
        match what {
            What::CloseArrives => {
                let (reason, when) = conn.flows[1 - side].close.as_ref()?;
                (*when == at).then(|| Ending::Closed(reason.clone()))
            }
            What::Breaks => {
                (conn.sides[side].breaks == Some(at)).then(|| Ending::lost("the connection was reset"))
            }
            What::SilenceIsOver => {
                let limit = self.settings.silence_limit;
                let deaf = self.broken(Mutant::IgnoresSilence)
                    || side == 1 && self.broken(Mutant::AcceptorIgnoresSilence);
                (conn.sides[side].quiet.is_some_and(|since| since + limit == at) && !deaf)
                    .then(|| Ending::Lost(format!("nothing was heard for {limit}")))
            }
        }
    }

    /// Ends one side. What has not arrived there by `at` never will.
    pub(crate) fn end_side(&mut self, id: u64, side: usize, ending: Ending, at: Millis) {
        let Some(conn) = self.conns.get_mut(&id).filter(|conn| conn.sides[side].ended.is_none()) else {
            return;
        };
        conn.flows[1 - side].each(|channel| channel.forget_after(at));
        match ending {
            Ending::Closed(_) => self.stats.closed += 1,
            Ending::Lost(_) => {
                conn.flows[side].each(|channel| channel.forget_held());
                self.stats.lost += 1;
                self.grudges.insert((Arc::clone(&conn.sides[0].host), Arc::clone(&conn.sides[1].host)));
            }
        }
        conn.sides[side].ended = Some(ending);
        conn.sides[side].wake_all(&mut self.to_wake);
        self.refresh(id, at);
    }

    /// Reckons anew who hears nothing, after something has changed at `at`.
    pub(crate) fn refresh(&mut self, id: u64, at: Millis) {
        for side in 0..2 {
            let hears = self.hears(id, side);
            let limit = self.settings.silence_limit;
            let Some(conn) = self.conns.get_mut(&id) else { return };
            let me = &mut conn.sides[side];
            if hears {
                me.quiet = None;
            } else if me.quiet.is_none() && me.ended.is_none() {
                me.quiet = Some(at);
                me.wake_all(&mut self.to_wake);
                self.events.insert(Event { at: at + limit, conn: id, side, what: What::SilenceIsOver });
            }
        }
    }

    /// True if this side hears from the other one, or could not notice that it does not.
    fn hears(&self, id: u64, side: usize) -> bool {
        let Some(conn) = self.conns.get(&id) else { return false };
        let (me, other) = (&conn.sides[side], &conn.sides[1 - side]);
        let speaks = other.ended.is_none() && !self.frozen(&other.host) && self.passes(conn, 1 - side);
        self.frozen(&me.host) || speaks && !self.broken(Mutant::NoKeepAlive)
    }

    fn frozen(&self, host: &Host) -> bool {
        self.hosts.get(host).is_some_and(|host| host.frozen)
    }

    /// True if something gets through from this side to the other.
    pub(crate) fn passes(&self, conn: &Conn, from: usize) -> bool {
        let cut = conn.via.as_ref().and_then(|via| self.cables.get(via)).is_some_and(|cable| cable.cut[from]);
        !cut && self.way_open(&conn.sides[from].host, &conn.sides[1 - from].host)
    }

    pub(crate) fn way_open(&self, from: &Host, to: &Host) -> bool {
        let way = (Arc::clone(from), Arc::clone(to));
        !self.blocked.contains(&way) && self.link(&way).loss_per_mille < 1_000
    }

    pub(crate) fn link(&self, way: &(Host, Host)) -> Link {
        self.links.get(way).copied().unwrap_or(self.settings.link)
    }

    /// How long a batch takes from here to there.
    pub(crate) fn delay(&mut self, from: &Host, to: &Host) -> Millis {
        let link = self.link(&(Arc::clone(from), Arc::clone(to)));
        let mut delay = link.latency + Millis(self.rng.up_to(link.jitter.0));
        let mut again = RESEND_AFTER;
        while again < MOST_RESEND && self.rng.chance(link.loss_per_mille) {
            delay = delay + again;
            again = again + again;
            self.stats.resent += 1;
        }
        delay
    }

    /// When a batch sent now arrives at the other side.
    pub(crate) fn arrival(&mut self, id: u64, from: usize, now: Millis) -> Millis {
        let Some(conn) = self.conns.get(&id) else { return HELD };
        if !self.passes(conn, from) {
            return HELD;
        }
        let (here, there) = (Arc::clone(&conn.sides[from].host), Arc::clone(&conn.sides[1 - from].host));
        now + self.delay(&here, &there)
    }

    /// Closes a connection from this side; the other one learns it after everything sent before.
    pub(crate) fn close(&mut self, id: u64, side: usize, reason: CloseReason, now: Millis) {
        if self.conns.get(&id).is_none_or(|conn| conn.sides[side].ended.is_some()) {
            return;
        }
        let told = if self.broken(Mutant::ForgetsReason) {
            CloseReason { code: reason.code, text: String::new() }
        } else {
            reason.clone()
        };
        let arrival = self.arrival(id, side, now);
        let overtakes = self.broken(Mutant::CloseOvertakes);
        let goes_on = self.broken(Mutant::CloserGoesOn);
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let at = if overtakes { now } else { arrival.max(conn.flows[side].last) };
        conn.flows[side].close = Some((told, at));
        conn.sides[1 - side].wake_all(&mut self.to_wake);
        self.schedule(id, 1 - side, at, What::CloseArrives);
        if !goes_on {
            self.end_side(id, side, Ending::Closed(reason), now);
            if let Some(conn) = self.conns.get_mut(&id) {
                conn.flows[1 - side].each(|channel| channel.forget_all());
            }
        }
    }

    /// Breaks a connection: each side finds out at its time.
    pub(crate) fn break_at(&mut self, id: u64, times: [Millis; 2]) {
        for (side, at) in times.into_iter().enumerate() {
            if let Some(conn) = self.conns.get_mut(&id) {
                conn.sides[side].breaks = Some(at);
                conn.sides[side].wake_all(&mut self.to_wake);
                self.schedule(id, side, at, What::Breaks);
            }
        }
    }

    /// Holds up what cannot pass any more, and sends again what can.
    pub(crate) fn ways_changed(&mut self, now: Millis) {
        let ids: Vec<u64> = self.conns.keys().copied().collect();
        for id in ids {
            for side in 0..2 {
                self.way_changed(id, side, now);
            }
            self.refresh(id, now);
        }
    }

    fn way_changed(&mut self, id: u64, side: usize, now: Millis) {
        let arrival = match self.conns.get(&id) {
            Some(conn) if self.passes(conn, side) == conn.flows[side].held => self.arrival(id, side, now),
            _ => return,
        };
        let forgets = self.broken(Mutant::LosesWhatWasHeldUp);
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let flow = &mut conn.flows[side];
        flow.held = arrival == HELD;
        if flow.held {
            flow.hold(now);
            return;
        }
        if forgets {
            flow.lane.forget_held();
        }
        let close = flow.resend(arrival);
        let held_break = conn.sides.iter().any(|side| side.breaks == Some(HELD));
        conn.sides[1 - side].wake_all(&mut self.to_wake);
        if let Some(at) = close {
            self.schedule(id, 1 - side, at, What::CloseArrives);
        }
        if held_break {
            self.break_at(id, [arrival; 2]);
        }
    }

    fn schedule(&mut self, conn: u64, side: usize, at: Millis, what: What) {
        if at != HELD {
            self.events.insert(Event { at, conn, side, what });
        }
    }

    /// Takes a slow reader for dead: what a mutant does.
    pub(crate) fn suspect(&mut self, id: u64, side: usize, now: Millis) {
        let at = now + self.settings.silence_limit;
        if let Some(me) = self.conns.get_mut(&id).map(|conn| &mut conn.sides[side])
            && me.quiet.is_none()
        {
            me.quiet = Some(now);
            self.schedule(id, side, at, What::SilenceIsOver);
        }
    }
}

/// After which time a lost batch is sent again; twice that for the next time, and so on.
const RESEND_AFTER: Millis = Millis(50);
const MOST_RESEND: Millis = Millis(2_000);
