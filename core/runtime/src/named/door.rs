//! The way into one registered actor: a few messages in its mailbox, the others in a line before it.
//!
//! actix's mailbox either refuses when it is full or, asked to wait, may never wake; so it is never filled. Order is that in
//! which [`Door::push`] was called.
//!
//! Invariant: messages wait in the line only while some are in the mailbox, whose leaving lets the next one in.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::Addr;
use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::message::Envelope;

use super::job::{Body, NamedJob};
use super::table::NamedTable;
use crate::arbiter::ArbiterLocal;
use crate::message::NamedActor;
use crate::remote::LaneWay;

/// The door of one registered actor of type `A`.
pub(crate) struct Door<A: NamedActor> {
    path: ActorPath,
    addr: Addr<A>,
    /// What it takes from other nodes; none if it is for this one only.
    table: Option<NamedTable<A>>,
    line: Mutex<Line<A>>,
    gone: AtomicBool,
}

struct Line<A: NamedActor> {
    in_mailbox: usize,
    waiting: VecDeque<Box<dyn Body<A>>>,
}

/// A message for a named actor that came from another node.
pub(crate) struct Arrival {
    pub(crate) envelope: Envelope,
    /// As the actor is called here.
    pub(crate) path: ActorPath,
    /// None if it was sent on this very node.
    pub(crate) way_back: Option<LaneWay>,
}

/// A door, whatever the type of its actor.
pub(crate) trait AnyDoor: Send + Sync {
    /// The door itself, to find out its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// Whether its actor runs.
    fn is_alive(&self) -> bool;
    /// Whether other nodes may use it.
    fn is_open_to_others(&self) -> bool;
    /// Takes a message that came from another node.
    ///
    /// # Errors
    ///
    /// Why it was not taken, and the way back to tell its sender.
    fn arrive(
        self: Arc<Self>,
        arrival: Arrival,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), Box<(Arrival, CallError)>>;
}

impl<A: NamedActor> Door<A> {
    pub(super) fn new(path: ActorPath, addr: Addr<A>, table: Option<NamedTable<A>>) -> Arc<Self> {
        let line = Mutex::new(Line { in_mailbox: 0, waiting: VecDeque::new() });
        Arc::new(Self { path, addr, table, line, gone: AtomicBool::new(false) })
    }

    /// Puts a message into the mailbox, or into the line before it if that has room: `bound` may wait, at most.
    ///
    /// # Errors
    ///
    /// The message back, and why it was not taken.
    pub(crate) fn push(
        self: &Arc<Self>,
        body: Box<dyn Body<A>>,
        bound: usize,
    ) -> Result<(), (Box<dyn Body<A>>, CallError)> {
        if self.gone.load(Ordering::Acquire) || !self.addr.connected() {
            return Err((body, self.no_such_actor()));
        }
        let mut line = self.lock();
        let abandoned = if line.waiting.len() >= bound { line.take_abandoned() } else { VecDeque::new() };
        if line.waiting.len() >= bound {
            let bound = u32::try_from(bound).unwrap_or(u32::MAX);
            return Err((body, CallError::Overloaded { queue: Queue::Mailbox, bound }));
        }
        line.waiting.push_back(body);
        self.fill_mailbox(line);
        // The line is free again: what is dropped may run user code.
        drop(abandoned);
        Ok(())
    }

    /// A message was taken out of the mailbox to be handled.
    pub(super) fn left_mailbox(self: &Arc<Self>) {
        let mut line = self.lock();
        line.in_mailbox = line.in_mailbox.saturating_sub(1);
        self.fill_mailbox(line);
    }

    /// The actor has gone, and its mailbox with it: nobody will ask for the next message.
    pub(super) fn mailbox_gone(&self) {
        self.gone.store(true, Ordering::Release);
        // Whoever is just filling the mailbox on this thread holds the line, and looks itself.
        if FILLING.get() != std::ptr::from_ref(&self.line).addr() {
            self.refuse_waiting(self.lock());
        }
    }

    pub(super) fn no_such_actor(&self) -> CallError {
        CallError::NoSuchActor { path: self.path.to_uri().into() }
    }

    /// Under the lock, so that nobody comes in between.
    fn fill_mailbox(self: &Arc<Self>, mut line: MutexGuard<'_, Line<A>>) {
        let before = FILLING.replace(std::ptr::from_ref(&self.line).addr());
        while line.in_mailbox < AT_ONCE
            && let Some(body) = line.waiting.pop_front()
        {
            line.in_mailbox += 1;
            A::deliver(&self.addr, NamedJob::new(body, Arc::clone(self)));
        }
        FILLING.set(before);
        if self.gone.load(Ordering::Acquire) {
            self.refuse_waiting(line);
        }
    }

    fn refuse_waiting(&self, mut line: MutexGuard<'_, Line<A>>) {
        let waiting = std::mem::take(&mut line.waiting);
        drop(line);
        for body in waiting {
            body.refuse(self.no_such_actor());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line<A>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A: NamedActor> Line<A> {
    /// Takes out the messages whose callers have gone.
    fn take_abandoned(&mut self) -> VecDeque<Box<dyn Body<A>>> {
        let (abandoned, kept) = self.waiting.drain(..).partition(|body| body.is_abandoned());
        self.waiting = kept;
        abandoned
    }
}

impl<A: NamedActor> AnyDoor for Door<A> {
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn is_alive(&self) -> bool {
        self.addr.connected()
    }

    fn is_open_to_others(&self) -> bool {
        self.table.is_some() && self.addr.connected()
    }

    fn arrive(
        self: Arc<Self>,
        arrival: Arrival,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), Box<(Arrival, CallError)>> {
        match &self.table {
            Some(table) => table.arrive(&self, arrival, on),
            None => Err(Box::new((arrival, CallError::NotLocal))),
        }
    }
}

thread_local! {
    /// The address of the line that this thread is filling a mailbox from.
    static FILLING: Cell<usize> = const { Cell::new(0) };
}

/// Messages that are in the mailbox at once: as many as a plain actix mailbox holds.
const AT_ONCE: usize = 16;
