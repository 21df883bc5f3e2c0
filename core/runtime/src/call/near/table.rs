//! The answers that are awaited on one thread, and who waits for them.
//!
//! The table decides nothing: it keeps an answer for its caller, or the caller's waker for the answer. It neither wakes
//! nor drops what it holds while it is borrowed; both may run user code, and that may come back here.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};

use archipelago_protocol::call::CallError;
use tokio::sync::oneshot;

use super::errands::Errand;
use super::{Delivery, Look};
use crate::catalog::{Job, Reply};

/// The answers that are awaited on one thread.
pub(super) struct Table {
    /// 0 until it is asked for.
    thread: Cell<u32>,
    entries: RefCell<Entries>,
}

struct Entries {
    list: Vec<Entry>,
    /// The first of the free places; each names the next.
    free: u32,
}

struct Entry {
    turn: u32,
    state: State,
    /// Beside the state, so that it is taken without moving the rest.
    reply: Option<Box<Job<dyn Reply>>>,
}

enum State {
    Free {
        next: u32,
    },
    Waiting(Option<Waker>),
    WaitingElsewhere(oneshot::Sender<Delivery>),
    /// The entry has the reply.
    Replied,
    Ended(Delivery),
}

/// What was in a place that is free now. To be dropped when the table is not borrowed.
pub(super) struct Closed {
    state: State,
    reply: Option<Box<Job<dyn Reply>>>,
}

/// What became of an answer.
pub(super) enum Put {
    /// The caller will take it.
    Kept(Option<Waker>),
    /// The caller has moved to another thread.
    Moved(oneshot::Sender<Delivery>, Delivery),
    /// The caller has gone.
    Unwanted(Delivery),
}

/// One entry in the table of this thread: its place, and the turn that tells it from later entries there. In one word,
/// so that a sender stays in a register until its job is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u64);

thread_local! {
    pub(super) static HERE: Table = const {
        Table { thread: Cell::new(0), entries: RefCell::new(Entries { list: Vec::new(), free: NONE }) }
    };
}

impl Table {
    /// A new entry, for a call that is made now.
    #[inline]
    pub(super) fn open(&self) -> EntryId {
        let mut entries = self.entries.borrow_mut();
        let Entries { list, free } = &mut *entries;
        if let Some(entry) = list.get_mut(*free as usize)
            && let State::Free { next } = entry.state
        {
            entry.state = State::Waiting(None);
            return EntryId::new(std::mem::replace(free, next), entry.turn);
        }
        let place = u32::try_from(list.len()).unwrap_or(NONE);
        list.push(Entry { turn: 0, state: State::Waiting(None), reply: None });
        EntryId::new(place, 0)
    }

    /// The number of this thread.
    pub(super) fn number(&self) -> u32 {
        if self.thread.get() == 0 {
            self.thread.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        self.thread.get()
    }

    /// Keeps the job for a caller who waits here; the job comes back if nobody does.
    #[inline]
    pub(super) fn put_job(
        &self,
        id: EntryId,
        job: Box<Job<dyn Reply>>,
    ) -> Result<Option<Waker>, Box<Job<dyn Reply>>> {
        match self.entries.borrow_mut().find(id) {
            Some(Entry { state: state @ State::Waiting(_), reply, .. }) => {
                *reply = Some(job);
                match std::mem::replace(state, State::Replied) {
                    State::Waiting(waker) => Ok(waker),
                    _ => Ok(None),
                }
            }
            _ => Err(job),
        }
    }

    /// Keeps an answer for whoever waits for it.
    pub(super) fn put(&self, id: EntryId, delivery: Delivery) -> Put {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.find(id) else { return Put::Unwanted(delivery) };
        match &mut entry.state {
            State::Waiting(waker) => {
                let waker = waker.take();
                entry.state = State::Ended(delivery);
                Put::Kept(waker)
            }
            State::WaitingElsewhere(_) => match entries.close(id.place()).state {
                State::WaitingElsewhere(answer) => Put::Moved(answer, delivery),
                _ => Put::Unwanted(delivery),
            },
            State::Free { .. } | State::Replied | State::Ended(_) => Put::Unwanted(delivery),
        }
    }

    /// Takes the reply, if it has come; if nothing has, `cx` is woken when something comes.
    #[inline]
    pub(super) fn look(&self, place: u32, cx: &mut Context<'_>) -> Look {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.list.get_mut(place as usize) else { return Look::Otherwise };
        let old = match &mut entry.state {
            State::Waiting(Some(known)) if known.will_wake(cx.waker()) => None,
            State::Waiting(waiting) => waiting.replace(cx.waker().clone()),
            State::Replied => {
                let Some(job) = entry.reply.take() else { return Look::Otherwise };
                entries.close(place);
                return Look::Replied(job);
            }
            State::Ended(Delivery::Boxed(_)) => {
                let State::Ended(Delivery::Boxed(reply)) = entries.close(place).state else {
                    return Look::Otherwise;
                };
                return Look::Boxed(reply);
            }
            _ => return Look::Otherwise,
        };
        // A waker may be the last owner of its task, and with it of other calls.
        drop(entries);
        drop(old);
        Look::Pending
    }

    /// Whether anybody waits for the answer.
    #[inline]
    pub(super) fn is_awaited(&self, id: EntryId) -> bool {
        match self.entries.borrow_mut().find(id).map(|entry| &entry.state) {
            Some(State::WaitingElsewhere(answer)) => !answer.is_closed(),
            found => found.is_some(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_awaited_elsewhere(&self, id: EntryId) -> bool {
        let mut entries = self.entries.borrow_mut();
        entries.find(id).is_some_and(|entry| matches!(entry.state, State::WaitingElsewhere(_)))
    }

    /// Gives a place free; whatever was there is dropped by the caller.
    pub(super) fn close(&self, place: u32) -> Closed {
        self.entries.borrow_mut().close(place)
    }

    /// Does what another thread has asked for.
    pub(super) fn run(&self, errand: Errand) {
        match errand {
            Errand::Cancel(place) => drop(self.close(place)),
            Errand::Forward(place, answer) => self.forward(place, answer),
        }
    }

    fn forward(&self, place: u32, answer: oneshot::Sender<Delivery>) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.list.get_mut(place as usize) else { return };
        if let State::Waiting(waker) = &mut entry.state {
            let waker = waker.take();
            entry.state = State::WaitingElsewhere(answer);
            drop(entries);
            drop(waker);
        } else {
            let delivery = entries.close(place).into_delivery();
            drop(entries);
            // The caller may have gone meanwhile.
            drop(answer.send(delivery));
        }
    }
}

impl Entries {
    #[inline]
    fn find(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.list.get_mut(id.place() as usize).filter(|entry| entry.turn == id.turn())
    }

    /// Frees a place that is in use.
    #[inline]
    fn close(&mut self, place: u32) -> Closed {
        let entry = &mut self.list[place as usize];
        entry.turn = entry.turn.wrapping_add(1);
        let next = std::mem::replace(&mut self.free, place);
        let state = std::mem::replace(&mut entry.state, State::Free { next });
        Closed { state, reply: entry.reply.take() }
    }
}

impl Closed {
    /// The answer that was there.
    pub(super) fn into_delivery(self) -> Delivery {
        match self {
            Self { reply: Some(job), .. } => Delivery::Job(job),
            Self { state: State::Ended(delivery), .. } => delivery,
            _ => Delivery::Failed(CallError::Stopped),
        }
    }
}

impl EntryId {
    pub(super) const NONE: Self = Self::new(NONE, 0);

    const fn new(place: u32, turn: u32) -> Self {
        Self((place as u64) << 32 | turn as u64)
    }

    pub(super) const fn place(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn turn(self) -> u32 {
        self.0 as u32
    }
}

/// No place: beyond every list.
const NONE: u32 = u32::MAX;

/// Threads are numbered as they come here.
static THREADS: AtomicU32 = AtomicU32::new(1);
