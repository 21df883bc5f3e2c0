//! The actor that keeps one lane connected. Every decision is [`PeerLink`]'s.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_protocol::contract::{CloseCode, CloseReason, Streams, TransportError};
use archipelago_protocol::link::WindowSettings;
use archipelago_protocol::peer::{
    AttemptId, ConnectionId, DialFailure, LaneEnds, LinkAction, LinkEvent, LinkReport, LinkState, PeerLink,
    Refusal, RefusalReason, Seat,
};
use archipelago_protocol::time::Millis;

use super::drive::{Drive, Ending, Violation};
use super::handshake::{self, MeetError, Met};
use super::incoming::Incoming;
use super::lane::Lane;
use super::large_in;
use super::seat::SeatLocal;
use crate::env::within;
use crate::events::Event;

// ---- messages ----

/// The peer has dialled us and said who it is, and it fits.
pub(super) struct Called(pub(super) Met);

impl Message for Called {
    type Result = ();
}

/// Something is to be sent: the lane is to be connected, and to stay so.
pub(super) struct Wanted;

impl Message for Wanted {
    type Result = ();
}

/// Another link to the peer is connected at this time.
pub(super) struct Reached(pub(super) Millis);

impl Message for Reached {
    type Result = ();
}

/// The peer does not answer as it should: make a new connection.
pub(super) struct CloseNow(pub(super) &'static str);

impl Message for CloseNow {
    type Result = ();
}

/// The peer will not be back under its id.
pub(super) struct Departed {
    /// Nothing of it counts any more, whatever is still connected.
    pub(super) at_once: bool,
}

impl Message for Departed {
    type Result = ();
}

/// What came on a stream beside the lane of a connection breaks the rules.
pub(super) struct Broken {
    pub(super) connection: ConnectionId,
    pub(super) violation: Violation,
}

impl Message for Broken {
    type Result = ();
}

// ---- state ----

/// The keeper of one lane.
pub(crate) struct PeerActor {
    seat: Rc<SeatLocal>,
    lane: Rc<Lane>,
    link: PeerLink,
    /// Met, and not yet in use.
    met: BTreeMap<ConnectionId, Met>,
    /// In use.
    current: Option<Current>,
    dial: Option<(AttemptId, SpawnHandle)>,
    wake: Option<SpawnHandle>,
    /// What ended the last connection or dial, for people.
    trouble: String,
    /// Counted among the connected links of the peer.
    counted: bool,
    /// The link is over.
    ended: bool,
}

/// The connection in use.
struct Current {
    id: ConnectionId,
    incoming: Arc<Incoming>,
    streams: Arc<dyn Streams>,
    tasks: [SpawnHandle; 2],
}

impl PeerActor {
    pub(super) fn new(seat: Rc<SeatLocal>, lane: Rc<Lane>) -> Self {
        let link = PeerLink::new(seat.node().id(), lane.peer().id());
        Self {
            seat,
            lane,
            link,
            met: BTreeMap::new(),
            current: None,
            dial: None,
            wake: None,
            trouble: String::new(),
            counted: false,
            ended: false,
        }
    }

    fn apply(&mut self, event: LinkEvent, ctx: &mut Context<Self>) {
        let (now, random) = (self.seat.node().env().now(), self.seat.node().env().random());
        for action in self.link.handle(now, random, event) {
            self.carry_out(action, ctx);
        }
        if self.link.state() == LinkState::Gone {
            self.end(ctx);
        }
    }

    fn carry_out(&mut self, action: LinkAction, ctx: &mut Context<Self>) {
        match action {
            LinkAction::Dial { attempt } => self.start_dial(attempt, ctx),
            LinkAction::Abandon { attempt } => self.abandon(attempt, ctx),
            LinkAction::Accept { connection } => self.accept(connection),
            LinkAction::Refuse { connection, why } => self.refuse(connection, why, ctx),
            LinkAction::Use { connection } => self.start_use(connection, ctx),
            LinkAction::Drop { connection, code } => self.drop_connection(connection, code, ctx),
            LinkAction::WakeAt(at) => self.wake_at(at, ctx),
            LinkAction::Report(report) => self.report(report),
        }
    }

    // ---- dialling ----

    fn start_dial(&mut self, attempt: AttemptId, ctx: &mut Context<Self>) {
        let (seat, lane) = (Rc::clone(&self.seat), Rc::clone(&self.lane));
        let work = async move { dial(&seat, &lane, attempt).await };
        let handle = ctx.spawn(work.into_actor(self).map(move |met, actor, ctx| {
            actor.dial = None;
            actor.dialled(attempt, met, ctx);
        }));
        self.dial = Some((attempt, handle));
    }

    fn dialled(&mut self, attempt: AttemptId, met: Result<Met, MeetError>, ctx: &mut Context<Self>) {
        match met {
            Ok(met) => {
                let peer_attempt = met.hello.attempt;
                let connection = self.keep(met);
                self.apply(LinkEvent::Dialled { attempt, connection, peer_attempt }, ctx);
            }
            Err(error) => {
                self.trouble = error.to_string();
                if self.is_gone_for_good(&error) {
                    return self.gone(ctx);
                }
                self.apply(LinkEvent::DialFailed { attempt, failure: failure_of(&error) }, ctx);
            }
        }
        self.mind_departure(ctx);
    }

    /// Another process is at the peer's address: node ids never come back.
    fn is_gone_for_good(&self, error: &MeetError) -> bool {
        matches!(error, MeetError::Refused(Refusal { reason: RefusalReason::Addressee, .. }))
    }

    fn abandon(&mut self, attempt: AttemptId, ctx: &mut Context<Self>) {
        if let Some((_, handle)) = self.dial.take_if(|(under_way, _)| *under_way == attempt) {
            ctx.cancel_future(handle);
        }
    }

    // ---- being dialled ----

    fn keep(&mut self, met: Met) -> ConnectionId {
        let id = self.seat.new_connection();
        self.met.insert(id, met);
        id
    }

    /// The welcome goes out when the connection is used: nothing else is sent before it.
    fn accept(&mut self, connection: ConnectionId) {
        if let Some(met) = self.met.get_mut(&connection) {
            met.owes_welcome = true;
        }
    }

    fn refuse(&mut self, connection: ConnectionId, why: RefusalReason, ctx: &mut Context<Self>) {
        let Some(met) = self.met.remove(&connection) else { return };
        let refusal = Refusal::new(why, why.to_string());
        let (env, limit) =
            (Arc::clone(self.seat.node().env()), self.seat.node().settings().remote.handshake_limit);
        let told = async move { within(&env, limit, handshake::turn_away(met, &refusal)).await };
        ctx.spawn(told.into_actor(self).map(|_, _, _| ()));
    }

    // ---- using ----

    fn start_use(&mut self, id: ConnectionId, ctx: &mut Context<Self>) {
        let Some(met) = self.met.remove(&id) else { return };
        let settings = &self.seat.node().settings().remote;
        let window = WindowSettings { bytes: settings.window_bytes, jobs: settings.lane_calls };
        let incoming = Arc::new(Incoming::new(self.lane.index(), id, window));
        let streams: Arc<dyn Streams> = met.connection.streams.into();
        self.lane.opened(&incoming, Arc::clone(&streams), self.seat.node().env().now());
        let hello = met.owes_welcome.then(|| self.our_hello(self.link.newest_attempt()));
        let ends = (met.connection.outgoing, met.connection.incoming);
        let (lane, sink) = (Rc::clone(&self.lane), Rc::clone(self.seat.sink()));
        let node = Arc::clone(self.seat.node());
        let (their_hello, rest, arrived) = (met.hello, met.rest, Arc::clone(&incoming));
        let drive = async move {
            let ends = handshake::let_in(ends, hello, &their_hello).await?;
            Err(Drive::new(node, (lane, arrived), sink, ends, rest).await)
        };
        let ended = move |ended: Result<(), Ending>, actor: &mut Self, ctx: &mut Context<Self>| {
            if let Err(ending) = ended {
                actor.connection_ended(id, ending, ctx);
            }
        };
        let driving = ctx.spawn(drive.into_actor(self).map(ended));
        let large = large_in::receive(
            Rc::clone(&self.lane),
            Arc::clone(&incoming),
            Rc::clone(&self.seat),
            (Arc::clone(&streams), ctx.address()),
        );
        let receiving = ctx.spawn(large.into_actor(self).map(|(), _, _| ()));
        self.current = Some(Current { id, incoming, streams, tasks: [driving, receiving] });
    }

    fn connection_ended(&mut self, id: ConnectionId, ending: Ending, ctx: &mut Context<Self>) {
        let Some(current) = self.current.take_if(|current| current.id == id) else { return };
        if let Some(reason) = ending.reason() {
            tracing::warn!(peer = %self.lane.peer().id(), %reason, "the peer broke the protocol");
            metrics::counter!("archipelago_protocol_errors_total").increment(1);
            current.streams.close(reason);
        }
        self.trouble = ending.to_string();
        self.let_go(current, ctx);
        self.apply(end_event(id, &ending), ctx);
        self.mind_departure(ctx);
        self.forget_client(ctx);
    }

    fn drop_connection(&mut self, id: ConnectionId, code: CloseCode, ctx: &mut Context<Self>) {
        if let Some(met) = self.met.remove(&id) {
            met.connection.streams.close(CloseReason::new(code, code.to_string()));
        }
        if let Some(current) = self.current.take_if(|current| current.id == id) {
            current.streams.close(CloseReason::new(code, code.to_string()));
            self.trouble = code.to_string();
            self.let_go(current, ctx);
        }
    }

    fn let_go(&mut self, current: Current, ctx: &mut Context<Self>) {
        current.tasks.into_iter().for_each(|task| {
            ctx.cancel_future(task);
        });
        self.lane.disconnected(&current.incoming);
        self.seat.sink().lost(&self.lane, &current.incoming);
    }

    // ---- the end ----

    /// A client without a connection is nothing to this node any more: it comes back by itself, or never.
    fn forget_client(&mut self, ctx: &mut Context<Self>) {
        if self.lane.peer().is_client() && self.link.connection().is_none() {
            self.gone(ctx);
        }
    }

    /// The link may have been made, or connected, after its peer was known to have departed.
    fn mind_departure(&mut self, ctx: &mut Context<Self>) {
        if self.seat.node().remoting().book().has_departed(self.lane.peer().id()) {
            self.apply(LinkEvent::Departed { at_once: false }, ctx);
        }
    }

    fn gone(&mut self, ctx: &mut Context<Self>) {
        self.apply(LinkEvent::Stop, ctx);
    }

    /// The link is over: nothing is kept of it.
    fn end(&mut self, ctx: &mut Context<Self>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.seat.forget(&self.lane);
            actix::ActorContext::stop(ctx);
        }
    }

    // ---- the rest ----

    fn our_hello(&self, attempt: AttemptId) -> archipelago_protocol::peer::Hello {
        let lane = LaneEnds { from: self.seat.seat(), to: self.lane.to() };
        let (node, peer) = (self.seat.node(), self.lane.peer());
        node.hello(lane, attempt, (Some(peer.id()), node.kind_towards(peer.datacenter())))
    }

    fn wake_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.wake.take() {
            ctx.cancel_future(earlier);
        }
        let env = self.seat.node().env();
        let sleep = env.sleep(at.since(env.now()));
        self.wake = Some(ctx.spawn(sleep.into_actor(self).map(|(), actor, ctx| {
            actor.wake = None;
            actor.apply(LinkEvent::WokeUp, ctx);
        })));
    }

    /// Keeps the number of connected links, of the peer and of all.
    fn count(&mut self, up: bool) {
        if std::mem::replace(&mut self.counted, up) != up {
            self.seat.node().remoting().link_changed(self.lane.peer(), up);
        }
    }

    fn report(&mut self, report: LinkReport) {
        let (peer, seat) = (self.lane.peer().id(), self.seat.seat());
        tracing::info!(%peer, %seat, to = %self.lane.to(), ?report, trouble = self.trouble, "link");
        self.count(report == LinkReport::Connected);
        if seat != Seat::Control {
            // The state of a peer is the state of its control link.
            return;
        }
        let event = match report {
            LinkReport::Connected => Event::PeerConnected { node: peer },
            LinkReport::Disconnected { .. } => {
                if self.seat.node().is_client() {
                    // The other side forgets a client with its connection, and what it watches.
                    self.seat.node().watches().node_gone(peer);
                }
                Event::PeerDisconnected { node: peer, reason: self.trouble.clone() }
            }
            LinkReport::Refused => Event::PeerRefused {
                address: Some(self.lane.peer().address().clone()),
                reason: self.trouble.clone(),
            },
            LinkReport::Gone => {
                self.seat.node().watches().node_gone(peer);
                Event::PeerGone { node: peer }
            }
            LinkReport::Connecting => return,
        };
        self.seat.node().events().publish(event);
    }
}

impl Actor for PeerActor {
    type Context = Context<Self>;
}

// ---- handlers ----

impl Handler<Wanted> for PeerActor {
    type Result = ();

    fn handle(&mut self, _: Wanted, ctx: &mut Context<Self>) {
        self.apply(LinkEvent::Wanted, ctx);
    }
}

impl Handler<Called> for PeerActor {
    type Result = ();

    fn handle(&mut self, Called(met): Called, ctx: &mut Context<Self>) {
        let peer_attempt = met.hello.attempt;
        let connection = self.keep(met);
        self.apply(LinkEvent::Hello { connection, peer_attempt }, ctx);
        self.mind_departure(ctx);
        self.forget_client(ctx);
    }
}

impl Handler<Reached> for PeerActor {
    type Result = ();

    fn handle(&mut self, Reached(at): Reached, ctx: &mut Context<Self>) {
        self.apply(LinkEvent::PeerReached { at }, ctx);
    }
}

impl Handler<Departed> for PeerActor {
    type Result = ();

    fn handle(&mut self, Departed { at_once }: Departed, ctx: &mut Context<Self>) {
        if at_once {
            self.trouble = "the session of the peer has ended".to_owned();
        }
        self.apply(LinkEvent::Departed { at_once }, ctx);
    }
}

impl Handler<Broken> for PeerActor {
    type Result = ();

    fn handle(&mut self, Broken { connection, violation }: Broken, ctx: &mut Context<Self>) {
        self.connection_ended(connection, Ending::Violation(violation), ctx);
    }
}

impl Handler<CloseNow> for PeerActor {
    type Result = ();

    fn handle(&mut self, CloseNow(why): CloseNow, ctx: &mut Context<Self>) {
        if let Some(current) = self.current.take() {
            current.streams.close(CloseReason::new(CloseCode::Replaced, why));
            let connection = current.id;
            self.let_go(current, ctx);
            self.apply(LinkEvent::Lost { connection }, ctx);
            self.forget_client(ctx);
        }
    }
}

async fn dial(seat: &Rc<SeatLocal>, lane: &Lane, attempt: AttemptId) -> Result<Met, MeetError> {
    let node = seat.node();
    let peer = node.remoting().book().get(lane.peer().id()).unwrap_or_else(|| Arc::clone(lane.peer()));
    let Some(address) = peer.address_of(lane.to()) else {
        let reason = format!("node {} has no arbiter {}", peer.id(), lane.to());
        return Err(TransportError::Lost { reason }.into());
    };
    let ends = LaneEnds { from: seat.seat(), to: lane.to() };
    let ours = node.hello(ends, attempt, (Some(peer.id()), node.kind_towards(peer.datacenter())));
    let limit = node.settings().remote.handshake_limit;
    let connection = within(node.env(), limit, seat.endpoint().dial(&address)).await;
    let met = handshake::introduce(node.env(), limit, connection.ok_or(MeetError::TooSlow)??, &ours).await?;
    handshake::believed(node, met)
}

fn failure_of(error: &MeetError) -> DialFailure {
    match error {
        MeetError::Refused(refusal) => refusal.reason.dial_failure(),
        MeetError::Transport(TransportError::Refused { .. }) => DialFailure::Refused,
        MeetError::Transport(_) | MeetError::TooSlow => DialFailure::Unreachable,
    }
}

fn end_event(connection: ConnectionId, ending: &Ending) -> LinkEvent {
    match ending {
        Ending::Transport(TransportError::Closed(reason)) => {
            LinkEvent::Closed { connection, code: reason.code }
        }
        Ending::Transport(_) => LinkEvent::Lost { connection },
        Ending::Violation(_) => LinkEvent::Closed { connection, code: CloseCode::Protocol },
    }
}
