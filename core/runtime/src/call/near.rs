//! The way back to a caller on the actor's own thread: no lock, no atomics, no allocation of its own.
//!
//! Each thread keeps a table of the answers that are awaited on it. The job holds the [`NearSender`], the caller the
//! [`NearAnswer`]; an answered job is put into the table as it is, and the caller takes the reply out of it. Both
//! ends are `Send` as types. A sender never leaves its thread, because jobs do not; an answer may, and then reaches
//! its table through [`errands`].
//!
//! Invariant: whoever waits at a [`NearAnswer`] learns the end exactly once, also if the job is dropped unanswered.

mod boxes;
mod errands;
mod table;

use std::any::Any;
use std::task::{Context, Waker};

use archipelago_protocol::call::CallError;
use tokio::sync::oneshot;

use super::Answer;
use crate::catalog::{Job, Reply};
pub(crate) use boxes::{boxed, keep_box};
pub(crate) use errands::Attendance;
use table::{EntryId, HERE, Put};

/// How a call ended.
pub(crate) enum Delivery {
    /// The reply is in the job.
    Job(Box<Job<dyn Reply>>),
    /// An `Answer<R>`, from a job whose own reply is of another type.
    Boxed(Box<dyn Any + Send>),
    Failed(CallError),
}

/// The end of a near call that its job holds. Dropping it says that the job is lost.
pub(crate) struct NearSender {
    entry: EntryId,
}

/// The end of a near call that its caller holds. Dropping it cancels the call.
///
/// The number of the thread and the place of the entry in one word, so that a call is returned in registers. No turn is
/// needed: the entry is there as long as this is.
pub(crate) struct NearAnswer(u64);

/// What a look at a near call has shown. Small, because every caller looks twice.
pub(crate) enum Look {
    Pending,
    /// The reply is in the job.
    Replied(Box<Job<dyn Reply>>),
    /// The reply, from another node or a job of another type: an `Answer<R>`.
    Boxed(Box<dyn Any + Send>),
    /// Something rarer: [`NearAnswer::end`] says what.
    Otherwise,
}

/// How the wait at a near call went on, if neither with a reply nor with patience.
pub(crate) enum NearEnd {
    Here(Delivery),
    /// The call has moved to another thread, where its answer comes out here.
    Moved(oneshot::Receiver<Delivery>),
    /// It had ended before.
    Before,
}

/// A way back for one answer, on this thread.
#[inline]
pub(crate) fn near_channel() -> (NearSender, NearAnswer) {
    HERE.with(|here| {
        let entry = here.open();
        (NearSender { entry }, NearAnswer(u64::from(here.number()) << 32 | u64::from(entry.place())))
    })
}

impl NearSender {
    /// Ends the call; a caller who has gone meanwhile is no error.
    pub(crate) fn send(mut self, delivery: Delivery) {
        deliver(std::mem::replace(&mut self.entry, EntryId::NONE), delivery);
    }

    /// Ends the call with the reply that is in its job.
    #[inline]
    pub(crate) fn send_job(mut self, job: Box<Job<dyn Reply>>) {
        let entry = std::mem::replace(&mut self.entry, EntryId::NONE);
        match HERE.try_with(|here| here.put_job(entry, job)) {
            Ok(Ok(waker)) => waker.into_iter().for_each(Waker::wake),
            Ok(Err(job)) => deliver(entry, Delivery::Job(job)),
            // The thread ends, and its callers with it.
            Err(_) => {}
        }
    }

    /// True if nobody waits for the answer any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        !HERE.try_with(|here| here.is_awaited(self.entry)).unwrap_or(false)
    }
}

impl Drop for NearSender {
    fn drop(&mut self) {
        if self.entry != EntryId::NONE {
            deliver(self.entry, Delivery::Failed(CallError::Stopped));
        }
    }
}

impl NearAnswer {
    /// Looks for the answer. With a reply this is used up.
    #[inline]
    pub(crate) fn look(&mut self, cx: &mut Context<'_>) -> Look {
        let (thread, place) = (self.thread(), self.place());
        let look = HERE
            .try_with(|here| if thread == here.number() { here.look(place, cx) } else { Look::Otherwise });
        match look {
            Ok(look @ (Look::Replied(_) | Look::Boxed(_))) => {
                self.0 = 0;
                look
            }
            Ok(look) => look,
            Err(_) => Look::Otherwise,
        }
    }

    /// Ends the wait here, after [`Look::Otherwise`]. This is used up.
    pub(crate) fn end(&mut self) -> NearEnd {
        if self.is_used_up() {
            return NearEnd::Before;
        }
        let (thread, place) = (self.thread(), self.place());
        self.0 = 0;
        match HERE.try_with(|here| (thread == here.number()).then(|| here.close(place))) {
            Ok(Some(closed)) => NearEnd::Here(closed.into_delivery()),
            Ok(None) | Err(_) => NearEnd::Moved(errands::forward(thread, place)),
        }
    }

    /// Whether its answer has been taken.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.0 == 0
    }

    const fn thread(&self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn place(&self) -> u32 {
        self.0 as u32
    }
}

impl Drop for NearAnswer {
    #[inline]
    fn drop(&mut self) {
        if self.0 != 0 {
            cancel(self.thread(), self.place());
        }
    }
}

#[cold]
fn cancel(thread: u32, place: u32) {
    match HERE.try_with(|here| (thread == here.number()).then(|| here.close(place))) {
        // What nobody waits for is dropped here, when the table is free again.
        Ok(Some(closed)) => drop(closed),
        Ok(None) | Err(_) => errands::cancel(thread, place),
    }
}

impl Delivery {
    /// The answer, for a caller who knows its type.
    pub(crate) fn open<R: 'static>(self) -> Answer<R> {
        match self {
            Self::Job(mut job) => {
                let mut answer = Err(CallError::NoReply);
                job.body.collect(&mut answer);
                answer
            }
            Self::Boxed(boxed) => boxed.downcast().map_or(Err(CallError::NoReply), |answer| *answer),
            Self::Failed(error) => Err(error),
        }
    }
}

/// Puts an answer where it is awaited. Wakes and drops only when the table is free again: both may run user code.
fn deliver(entry: EntryId, delivery: Delivery) {
    match HERE.try_with(|here| here.put(entry, delivery)) {
        Ok(Put::Kept(waker)) => waker.into_iter().for_each(Waker::wake),
        Ok(Put::Moved(answer, delivery)) => drop(answer.send(delivery)),
        Ok(Put::Unwanted(delivery)) => drop(delivery),
        // The thread ends, and its callers with it.
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests;
