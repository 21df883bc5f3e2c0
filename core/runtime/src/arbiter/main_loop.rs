//! The main task of a data arbiter: lets messages in, activates, sweeps, and drains at the end.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use archipelago_protocol::activation::{Drain, DrainStep};
use archipelago_protocol::peer::Seat;
use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::ArbiterLocal;
use super::thread::{Place, Residence};
use crate::call::Attendance;
use crate::mutants::{Mutant, broken};
use crate::node::{NodeShared, StartError};
use crate::remote::{DataSink, SeatLocal};
use crate::sharding::keep_alive;

/// The part of an arbiter that other threads see.
pub(crate) struct ArbiterShared {
    place: OnceLock<Place>,
    ingress: mpsc::Sender<Entry>,
    /// How many actors were active when the arbiter last looked.
    active: AtomicUsize,
    /// How many jobs had been taken then and had not begun.
    waiting: AtomicUsize,
    /// Whether anything of it may still run actors.
    running: AtomicBool,
}

/// What comes in from other threads.
pub(crate) enum Entry {
    /// Something to do on the arbiter.
    Work(Work),
    /// Take nothing new, finish what is under way, let the actors go, and end by `until`.
    Drain { until: Millis, done: oneshot::Sender<Drained> },
    /// Say how much is under way.
    Survey(oneshot::Sender<Survey>),
    /// No arbiter of the node has work left: the actors may go.
    AllQuiet,
    /// The node owns nothing any more: say goodbye, report it, and end.
    Part(oneshot::Sender<()>),
}

/// What an arbiter has to do, and how much it ever had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    pub(crate) open: usize,
    pub(crate) accepted: u64,
}

/// Something to do on an arbiter.
pub(crate) type Work = Box<dyn FnOnce(&Rc<ArbiterLocal>) + Send>;

/// What was left when an arbiter ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drained {
    pub(crate) jobs: usize,
    pub(crate) actors: usize,
}

impl ArbiterShared {
    /// The shared part of an arbiter with room for `bound` entries, and where they come out.
    pub(crate) fn new(bound: usize) -> (Self, mpsc::Receiver<Entry>) {
        let (ingress, entries) = mpsc::channel(bound.max(1));
        let (active, waiting, running) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        (Self { place: OnceLock::new(), ingress, active, waiting, running }, entries)
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.place.get().copied()
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether it has begun and its tasks have neither ended nor been dropped.
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(crate) const fn ingress(&self) -> &mpsc::Sender<Entry> {
        &self.ingress
    }
}

/// Held by everything that runs on an arbiter together: says when the last of it is gone.
pub(crate) struct Presence {
    node: Arc<NodeShared>,
    index: u16,
}

impl Presence {
    pub(crate) fn begin(node: &Arc<NodeShared>, index: u16) -> Self {
        node.arbiter(index).running.store(true, Ordering::Release);
        Self { node: Arc::clone(node), index }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        fall_silent(&self.node, self.index);
    }
}

/// Nothing that an actor began runs on the arbiter any more.
fn fall_silent(node: &NodeShared, index: u16) {
    node.arbiter(index).running.store(false, Ordering::Release);
    node.gate().wake_guard();
}

/// Runs data arbiter `index` of `node` until it is drained.
pub(crate) async fn run(
    node: Arc<NodeShared>,
    index: u16,
    entries: mpsc::Receiver<Entry>,
    ready: oneshot::Sender<Result<(), StartError>>,
) {
    let local = Rc::new(ArbiterLocal::new(Arc::clone(&node), index));
    let residence = Residence::take(&local);
    if node.arbiter(index).place.set(residence.place()).is_err() {
        tracing::error!(index, "a data arbiter was started twice");
        return;
    }
    let seat = match SeatLocal::open(&node, Seat::Data(index), DataSink::new(&local)).await {
        Ok(seat) => seat,
        Err(error) => {
            // Nobody waits for readiness any more if the node's start was given up.
            let _ = ready.send(Err(error));
            return;
        }
    };
    if let Some(seat) = &seat {
        local.take_seat(Rc::clone(seat));
    }
    let attendance = Attendance::begin(Waker::noop());
    let batch = Vec::new();
    let mut main = MainLoop {
        local,
        _residence: residence,
        attendance,
        entries,
        batch,
        timer: None,
        drain: None,
        parting: Parting::No,
    };
    if index == 0 {
        keep_alive(&node);
    }
    let _ = ready.send(Ok(()));
    poll_fn(|cx| main.poll(cx)).await;
    // Whatever still runs on an arbiter that ends in any other way must not get another turn.
    let in_order = matches!(main.parting, Parting::Idle { .. } | Parting::Due(_));
    if let Parting::Due(done) = std::mem::replace(&mut main.parting, Parting::Over) {
        main.local.take_leave().await;
        // Whoever stops the node may have given up waiting.
        let _ = done.send(());
    }
    drop(main);
    if let Some(seat) = seat.filter(|_| in_order) {
        seat.close(CLOSE_LIMIT).await;
    }
}

struct MainLoop {
    local: Rc<ArbiterLocal>,
    _residence: Residence,
    attendance: Attendance,
    entries: mpsc::Receiver<Entry>,
    batch: Vec<Entry>,
    timer: Option<(Millis, BoxFuture<'static, ()>)>,
    drain: Option<(Drain, oneshot::Sender<Drained>)>,
    parting: Parting,
}

/// Whether the arbiter has done its work.
enum Parting {
    /// Not yet.
    No,
    /// It serves nothing any more, and gives back what still comes, until the given time.
    Idle { until: Millis },
    /// The node owns nothing any more.
    Due(oneshot::Sender<()>),
    /// It ends with work undone: everything that runs here goes with it.
    Over,
    /// Its time is up. Everything that runs here goes with it, at once.
    Fenced,
}

impl MainLoop {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.local.set_main(cx.waker()) {
            self.attendance.set_main(cx.waker());
        }
        self.attendance.run();
        // This is polled before any task of the arbiter, so nothing runs past the fence, detached handlers included.
        let fenced = !self.local.node().gate().may_answer(self.local.now()) && !broken(Mutant::NoFence);
        if fenced && matches!(self.parting, Parting::No) {
            self.parting = Parting::Fenced;
            return Poll::Ready(());
        }
        let came_in = self.let_in(cx);
        if self.has_parted() {
            return Poll::Ready(());
        }
        let worked = self.local.work();
        let now = self.local.now();
        self.local.sweep_calls(now);
        self.local.sweep_idle(now);
        if self.local.routes().is_busy() {
            self.local.sweep_routes();
        }
        self.local.measure(self.entries.len());
        let shared = self.local.node().arbiter(self.local.index());
        shared.active.store(self.local.active_actors(), Ordering::Relaxed);
        shared.waiting.store(self.local.waiting_jobs(), Ordering::Relaxed);
        self.local.make_room(now);
        self.look_at_drain(now);
        if came_in || worked || self.timer_is_due(now, cx) {
            // More may have come meanwhile; first the actors get their turn.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Takes what other threads have sent, one batch at most.
    fn let_in(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(count) = self.entries.poll_recv_many(cx, &mut self.batch, BATCH) else {
            return false;
        };
        for entry in self.batch.drain(..) {
            match entry {
                Entry::Work(work) => carry_out(work, &self.local),
                Entry::Drain { until, done } => {
                    self.local.start_draining();
                    let farewell = self.local.node().settings().deactivate_timeout;
                    self.drain = Some((Drain::new(self.local.now(), until, farewell), done));
                }
                Entry::Survey(answer) => {
                    let survey =
                        Survey { open: self.local.unfinished(), accepted: self.local.accepted_jobs() };
                    // Whoever asked may have given up.
                    let _ = answer.send(survey);
                }
                Entry::Part(done) => {
                    if matches!(self.parting, Parting::Idle { .. }) {
                        self.parting = Parting::Due(done);
                    }
                }
                Entry::AllQuiet => {
                    if let Some((drain, _)) = &mut self.drain {
                        drain.all_quiet();
                    }
                }
            }
        }
        count > 0
    }

    /// Arms the timer for the next sweep; true if that is due already.
    fn timer_is_due(&mut self, now: Millis, cx: &mut Context<'_>) -> bool {
        let look = self.drain.as_ref().map(|(drain, _)| drain.next_look(now));
        let measure = (self.local.open_jobs() > 0).then_some(now + MEASURE_EVERY);
        let parked = self.local.routes().is_busy().then_some(now + SWEEP_GRAIN);
        let part = match self.parting {
            Parting::Idle { until } => Some(until),
            _ => None,
        };
        let next = self.local.next_wake();
        let room = self.local.next_room_look(now);
        let soonest = next.into_iter().chain(look).chain(measure).chain(parked).chain(part).chain(room).min();
        let Some(at) = soonest else {
            self.timer = None;
            return false;
        };
        // Sweeps are at least one grain apart, so that a stream of deadlines costs one wake per grain.
        let at = at.max(now + SWEEP_GRAIN);
        if self.timer.as_ref().is_none_or(|(armed, _)| *armed > at) {
            self.timer = Some((at, self.local.node().env().sleep(at.since(now))));
        }
        let fired = self.timer.as_mut().is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_ready());
        if fired {
            self.timer = None;
        }
        fired
    }

    /// Whether the arbiter may end: everything is said, or nobody asks it to say anything.
    fn has_parted(&self) -> bool {
        match self.parting {
            Parting::No => false,
            Parting::Idle { until } => self.local.seat().is_none() || self.local.now() >= until,
            Parting::Due(_) | Parting::Over | Parting::Fenced => true,
        }
    }

    /// One look at the drain: once everything is done nothing is served any more.
    fn look_at_drain(&mut self, now: Millis) {
        let Some((drain, _)) = &mut self.drain else { return };
        // A reply that is not written yet is work, too.
        let unwritten = usize::from(self.local.seat().is_some_and(|seat| seat.unwritten() > 0));
        match drain.look(now, self.local.unfinished() + unwritten, self.local.active_actors()) {
            DrainStep::Wait => {}
            DrainStep::Leave => self.local.leave_all(),
            DrainStep::End => {
                let rest = Drained { jobs: self.local.unfinished(), actors: self.local.active_actors() };
                if let Some((_, done)) = self.drain.take() {
                    // Whoever asked for the drain may have given up waiting for the report.
                    let _ = done.send(rest);
                }
                self.local.serve_nothing();
                self.parting = Parting::Over;
                if rest == Drained::default() {
                    self.parting = Parting::Idle { until: now + PART_WITHIN };
                    fall_silent(self.local.node(), self.local.index());
                }
                self.local.wake_main();
            }
        }
    }
}

/// A panic of user code on its way in must not take the arbiter and all its actors down.
fn carry_out(work: Work, on: &Rc<ArbiterLocal>) {
    if catch_unwind(AssertUnwindSafe(|| work(on))).is_err() {
        tracing::error!("a message from another thread panicked on its way in");
    }
}

impl Drop for MainLoop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Its actors are gone: a node that cannot serve what it owns must not keep it.
            self.local.node().give_up("a data arbiter panicked");
        }
        self.entries.close();
        self.local.close();
        // What is still on its way in is refused by the closed arbiter, so that no caller waits for ever.
        while let Ok(entry) = self.entries.try_recv() {
            if let Entry::Work(work) = entry {
                carry_out(work, &self.local);
            }
        }
    }
}

/// How many entries are let in before activations and sweeps get their turn.
const BATCH: usize = 256;

/// How old the gauges of a busy arbiter may be.
const MEASURE_EVERY: Millis = Millis(1_000);

/// How long connections have to close in good order.
const CLOSE_LIMIT: Millis = Millis(1_000);

/// How long an arbiter that is done waits to be told that the node owns nothing any more.
const PART_WITHIN: Millis = Millis(5_000);

/// How far apart two sweeps are at least.
const SWEEP_GRAIN: Millis = Millis(10);
