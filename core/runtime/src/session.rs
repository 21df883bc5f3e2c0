//! The actor that keeps the node's session alive, on the control arbiter.
//!
//! Every decision is [`SessionHolder`]'s; this shell sends what it asks for, gives up waiting in time, reads the
//! clock, and keeps the node's gate where every job can see it.

use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_directory::{carry_out_holder, carry_out_open};
use archipelago_protocol::session::{
    ClockWatch, HolderAction, HolderEvent, LeaseOutcome, LostReason, Session, SessionHolder, times,
};
use archipelago_protocol::time::Millis;
use metrics::counter;
use tokio::sync::oneshot;

use crate::client;
use crate::cluster;
use crate::datacenter;
use crate::env::{ArbiterMain, ArbiterRole, Oddity, Stay, within};
use crate::events::Event;
#[cfg(feature = "mutants")]
use crate::mutants::{Mutant, broken};
use crate::node::{NodeShared, StartError};
use crate::placement;
use crate::ranges;
use crate::remote;

/// How the node's session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// Not confirmed yet.
    Opening,
    /// Confirmed; the gate says until when.
    Live,
    /// Everything has ended: close it.
    Closing,
    /// Closed by the node itself.
    Closed,
    /// Gone for ever.
    Lost(String),
}

impl SessionState {
    /// The state, if it does not go on.
    pub(crate) fn if_over(&self) -> Option<Self> {
        matches!(self, Self::Closed | Self::Lost(_)).then(|| self.clone())
    }

    /// The state, if it must not go on.
    pub(crate) fn if_closing(&self) -> Option<Self> {
        matches!(self, Self::Closing | Self::Lost(_)).then(|| self.clone())
    }
}

/// Starts the control arbiter: with the network, and then with the session's actor on it.
pub(crate) async fn start(node: &Arc<NodeShared>, stay: &Stay) -> Result<(), StartError> {
    let (shared, role) = (Arc::clone(node), ArbiterRole::Control);
    let (ready, is_ready) = oneshot::channel();
    let main = ArbiterMain::new(move || Box::pin(control(shared, ready)));
    node.env().start_arbiter(role, main.holding(stay.clone()))?;
    is_ready.await.unwrap_or_else(|_| Err(StartError::Arbiter { role: role.to_string() }))
}

/// The main task of the control arbiter.
async fn control(node: Arc<NodeShared>, ready: oneshot::Sender<Result<(), StartError>>) {
    let seat = match remote::open_control(&node).await {
        Ok(seat) => seat,
        Err(error) => {
            // Nobody waits if the start was given up.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    if node.is_client() {
        client::stay(&node).await;
    } else {
        cluster::start(&node);
        placement::start_coordinator(&node);
        placement::start_following(&node);
        ranges::start(&node);
        datacenter::start(&node);
        keep_session(node).await;
    }
    if let Some(seat) = seat {
        seat.close(CLOSE_LIMIT).await;
    }
}

/// Waits until the session is live.
pub(crate) async fn opened(node: &NodeShared) -> Result<(), StartError> {
    let opened = |state: &SessionState| (*state != SessionState::Opening).then(|| state.clone());
    match node.session().follow().find(opened).await {
        Some(SessionState::Live) => Ok(()),
        Some(SessionState::Lost(reason)) => Err(StartError::Session { reason }),
        _ => Err(StartError::Session { reason: "the node was stopped".to_owned() }),
    }
}

/// Closes the session, waiting no longer than one attempt may take.
pub(crate) async fn close(node: &NodeShared) {
    begin_close(node);
    let mut states = node.session().follow();
    let over = states.find(SessionState::if_over);
    let limit = times::attempt_timeout(node.settings().session_ttl);
    if within(node.env(), limit, over).await.is_none() {
        tracing::warn!(node = %node.id(), "the session's close is unanswered; it ends by itself");
    }
}

/// Asks for the session to be closed, if it is not over.
pub(crate) fn begin_close(node: &NodeShared) {
    node.session().modify(|state| {
        let open = matches!(state, SessionState::Opening | SessionState::Live);
        if open {
            *state = SessionState::Closing;
        }
        open
    });
}

/// Keeps the session until it is over.
async fn keep_session(node: Arc<NodeShared>) {
    let mut states = node.session().follow();
    let actor = SessionActor::new(Arc::clone(&node)).start();
    // It is shown as long as `node` is there, so there is always something to find.
    if states.find(SessionState::if_closing).await == Some(SessionState::Closing) {
        actor.do_send(Happened(HolderEvent::Close));
        states.find(SessionState::if_over).await;
    }
}

// ---- messages ----

/// Something the machine must know.
struct Happened(HolderEvent);

impl Message for Happened {
    type Result = ();
}

// ---- state ----

struct SessionActor {
    node: Arc<NodeShared>,
    holder: SessionHolder,
    first: Vec<HolderAction>,
    wake: Option<SpawnHandle>,
    /// What the store said instead of opening the session.
    trouble: Option<String>,
    clocks: ClockWatch,
}

impl SessionActor {
    fn new(node: Arc<NodeShared>) -> Self {
        let session = Session { id: node.id(), ttl: node.settings().session_ttl };
        let (holder, first) = SessionHolder::open(node.env().now(), session, node.env().random());
        let holder = holder.beating_every(node.settings().session_heartbeat);
        #[cfg(feature = "mutants")]
        let holder =
            if broken(Mutant::DeadlineFromReceipt) { holder.counting_from_answers() } else { holder };
        let clocks = ClockWatch::new(session.ttl);
        Self { node, holder, first, wake: None, trouble: None, clocks }
    }

    fn apply(&mut self, event: HolderEvent, ctx: &mut Context<Self>) {
        let actions = self.holder.handle(self.node.env().now(), event);
        self.carry_out(actions, ctx);
    }

    fn carry_out(&mut self, actions: Vec<HolderAction>, ctx: &mut Context<Self>) {
        for action in actions {
            match action {
                HolderAction::Gate(gate) => {
                    self.node.gate().set(gate.serve_until, gate.fence_at);
                    self.node.measure_session();
                }
                HolderAction::Lost { reason, fence_at } => {
                    self.node.give_up_by(&self.in_words(reason), fence_at);
                }
                HolderAction::WakeAt(at) => self.wake_at(at, ctx),
                HolderAction::SendOpen { session, nonce } => self.open(session, nonce, ctx),
                request => self.request(request, ctx),
            }
        }
        self.note_live();
    }

    /// Runs one request to the directory, not for ever, and feeds what came of it to the machine. An announcement that
    /// fails is asked for again with the next confirmed beat.
    fn request(&self, request: HolderAction, ctx: &mut Context<Self>) {
        let (env, directory, info) =
            (Arc::clone(self.node.env()), Arc::clone(self.node.directory()), self.node.info());
        let limit = times::attempt_timeout(self.holder.session().ttl);
        let work = async move {
            let answer = within(&env, limit, carry_out_holder(&*directory, &info, &request)).await;
            let beat = matches!(request, HolderAction::SendBeat(_));
            let answer = answer.filter(|_| !beat || !env.oddly(Oddity::BeatUnanswered));
            (answer.unwrap_or_else(|| unanswered(&request)), matches!(request, HolderAction::SendClose(_)))
        };
        ctx.spawn(work.into_actor(self).map(|(event, closed), actor, ctx| {
            if let Some(event) = event {
                actor.apply(event, ctx);
            }
            if closed {
                actor.closed();
            }
        }));
    }

    /// Sends the open, and keeps what the store said instead of an answer.
    fn open(&self, session: Session, nonce: u64, ctx: &mut Context<Self>) {
        let (env, directory) = (Arc::clone(self.node.env()), Arc::clone(self.node.directory()));
        let work = async move {
            let limit = times::attempt_timeout(session.ttl);
            let answer = within(&env, limit, carry_out_open(&*directory, session, nonce)).await;
            answer.unwrap_or_else(|| {
                let unanswered = HolderEvent::OpenAnswered(LeaseOutcome::Unknown);
                (unanswered, Some(format!("the store has not answered within {limit}")))
            })
        };
        ctx.spawn(work.into_actor(self).map(|(event, trouble), actor, ctx| {
            actor.trouble = trouble;
            actor.apply(event, ctx);
        }));
    }

    fn in_words(&self, reason: LostReason) -> String {
        match (&self.trouble, reason) {
            (Some(trouble), LostReason::OpenFailed) => format!("{reason:?}: {trouble}"),
            _ => format!("{reason:?}"),
        }
    }

    fn wake_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.wake.take() {
            ctx.cancel_future(earlier);
        }
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()));
        self.wake = Some(ctx.spawn(sleep.into_actor(self).map(|(), actor, ctx| {
            actor.wake = None;
            let nonce = actor.node.env().random();
            actor.apply(HolderEvent::Wake { nonce }, ctx);
        })));
    }

    /// Compares the clocks now and then, as long as the session is there.
    fn look_at_clocks(&mut self, ctx: &mut Context<Self>) {
        let env = Arc::clone(self.node.env());
        if self.clocks.has_jumped(env.now(), Millis(env.wall_millis())) {
            tracing::warn!(node = %self.node.id(), "the wall clock ran ahead: the node serves nothing until its next beat");
            counter!("archipelago_clock_jumps_total").increment(1);
            self.apply(HolderEvent::ClockJumped { nonce: env.random() }, ctx);
        }
        if !self.holder.is_over() {
            let sleep = env.sleep(times::clock_look(self.holder.session().ttl));
            ctx.spawn(sleep.into_actor(self).map(|(), actor, ctx| actor.look_at_clocks(ctx)));
        }
    }

    fn note_live(&self) {
        if !self.holder.serving(self.node.env().now()) {
            return;
        }
        let opened = self.node.session().modify(|state| {
            let opening = *state == SessionState::Opening;
            if opening {
                *state = SessionState::Live;
            }
            opening
        });
        if opened {
            self.node.events().publish(Event::SessionOpened { node: self.node.id() });
        }
    }

    /// The session is over for this node, whatever the answer to its close was.
    fn closed(&self) {
        self.node.wake_arbiters();
        self.node.session().set(SessionState::Closed);
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let first = std::mem::take(&mut self.first);
        self.carry_out(first, ctx);
        self.look_at_clocks(ctx);
    }
}

// ---- handlers ----

impl Handler<Happened> for SessionActor {
    type Result = ();

    fn handle(&mut self, Happened(event): Happened, ctx: &mut Context<Self>) {
        self.apply(event, ctx);
    }
}

/// What the machine is told about a request that was given up waiting for.
fn unanswered(request: &HolderAction) -> Option<HolderEvent> {
    match request {
        HolderAction::SendBeat(beat) => {
            Some(HolderEvent::BeatAnswered { seq: beat.seq, outcome: LeaseOutcome::Unknown })
        }
        HolderAction::ReadBack(_) => Some(HolderEvent::ReadFailed),
        _ => None,
    }
}

/// How long connections have to close in good order.
const CLOSE_LIMIT: Millis = Millis(1_000);
