//! The place of one actor on this arbiter: its life, the messages that wait for it, and what it left undone.
//!
//! The slot outlives the activations in it: messages that arrive while one goes wait here for the next.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::Waker;

use actix::ResponseFuture;
use archipelago_protocol::activation::{Interleave, Life};
use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::time::Millis;
use smallvec::SmallVec;

use super::inbox::Running;
use super::job::{JobBody, JobHead};
use crate::arbiter::ArbiterLocal;
use crate::message::VirtualActor;

/// The place of one actor.
pub(super) struct Slot<A: VirtualActor> {
    pub(super) id: ActorId,
    pub(super) hash: u64,
    pub(super) inner: RefCell<Inner<A>>,
}

/// The changing part of a slot. Never borrowed while user code runs or a waker is called.
pub(super) struct Inner<A: VirtualActor> {
    pub(super) life: Life,
    pub(super) queue: VecDeque<Queued<A>>,
    /// The sleeping inbox.
    pub(super) inbox: Option<Waker>,
    /// The jobs that run now.
    pub(super) tokens: SmallVec<[u64; 1]>,
    pub(super) aftermath: Option<Box<Aftermath>>,
}

/// A job that waits.
pub(super) struct Queued<A: VirtualActor> {
    pub(super) head: JobHead,
    pub(super) body: Box<dyn JobBody<A>>,
}

/// What must end before the next activation may begin.
#[derive(Default)]
pub(super) struct Aftermath {
    /// Detached handlers that outlived their actor.
    pub(super) lingering: Vec<Running>,
    /// The future of `on_deactivate`.
    pub(super) farewell: Option<ResponseFuture<()>>,
}

impl<A: VirtualActor> Slot<A> {
    pub(super) fn new(id: ActorId, hash: u64, now: Millis) -> Self {
        let inner = Inner {
            life: Life::new(now),
            queue: VecDeque::new(),
            inbox: None,
            tokens: SmallVec::new(),
            aftermath: None,
        };
        Self { id, hash, inner: RefCell::new(inner) }
    }

    /// Puts a job at the end of the queue.
    ///
    /// # Errors
    ///
    /// The job that waits for it runs in this very actor, or the inbox is full; nothing was queued.
    pub(super) fn push(&self, job: Queued<A>, bound: usize, on: &ArbiterLocal) -> Result<(), CallError> {
        let mut inner = self.inner.borrow_mut();
        inner.check_cycle(&job.head)?;
        inner.check_room(&job.head, bound, on)?;
        inner.queue.push_back(job);
        let inbox = inner.inbox.take();
        drop(inner);
        on.job_accepted();
        if let Some(inbox) = inbox {
            inbox.wake();
        }
        Ok(())
    }

    /// Makes the inbox look at its slot again.
    pub(super) fn wake(&self) {
        let inbox = self.inner.borrow_mut().inbox.take();
        if let Some(inbox) = inbox {
            inbox.wake();
        }
    }
}

impl<A: VirtualActor> Inner<A> {
    /// A call that waits for a job of this actor, and would have to wait behind it, could only hang.
    fn check_cycle(&self, head: &JobHead) -> Result<(), CallError> {
        let Some(scope) = &head.scope else { return Ok(()) };
        let waits_for_us =
            head.call.is_some() && self.tokens.iter().any(|token| scope.chain.contains(*token));
        if waits_for_us && !(self.queue.is_empty() && self.life.may_start(head.flags, A::INTERLEAVE)) {
            return Err(CallError::CallCycle);
        }
        Ok(())
    }

    /// A tell is refused when the inbox is full. An ask waits within its deadline: asks are bounded by the
    /// table of pending calls, and those that have ended are cleared away here.
    fn check_room(&mut self, head: &JobHead, bound: usize, on: &ArbiterLocal) -> Result<(), CallError> {
        let waiting = self.queue.len();
        if waiting < bound {
            return Ok(());
        }
        if waiting.is_power_of_two() || waiting == bound {
            self.clear_ended(on);
        }
        if head.call.is_none() && self.queue.len() >= bound {
            return Err(CallError::Overloaded { queue: Queue::Inbox, bound: bound as u64 });
        }
        Ok(())
    }

    fn clear_ended(&mut self, on: &ArbiterLocal) {
        self.queue.retain(|job| {
            let ended = job.head.call.is_some_and(|call| !on.is_pending(call));
            if ended {
                on.job_over();
            }
            !ended
        });
    }

    pub(super) const fn rule() -> Interleave {
        A::INTERLEAVE
    }
}
