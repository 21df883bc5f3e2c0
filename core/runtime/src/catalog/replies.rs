//! The replies of a kind's actors on their way out, and the memory of the jobs they came in.
//!
//! Replies are held until their actor has had its turn, and leave together. What came from another node ends here, and so does
//! what was told: such a job is kept for a message to come, because they come in bursts, of which an allocator keeps no more
//! than a handful at hand.

use super::job::Queued;
use super::kind::KindCatalog;
use crate::arbiter::ArbiterLocal;
use crate::message::VirtualActor;

impl<A: VirtualActor> KindCatalog<A> {
    /// Keeps the reply of a job that has ended until it may leave.
    #[inline]
    pub(super) fn hold_reply(&self, job: Queued<A>, on: &ArbiterLocal) {
        if job.head.call.is_some() || (job.head.remote && job.head.asks) {
            self.held().borrow_mut().push(job);
            return;
        }
        if job.head.asks {
            on.late_reply();
        }
        self.keep(job);
    }

    /// Lets the replies out that are held.
    pub(super) fn flush_replies(&self, on: &ArbiterLocal) {
        if self.held().borrow().is_empty() {
            return;
        }
        let may_answer = on.may_answer();
        let mut held = self.held().take();
        for mut job in held.drain(..) {
            match on.let_out(&mut *job, may_answer) {
                Some(caller) => caller.send_job(job),
                None => self.keep(job),
            }
        }
        // Keeps the room for the next batch.
        let mut empty = self.held().borrow_mut();
        if empty.capacity() == 0 {
            *empty = held;
        }
    }

    /// A job that has ended, to be filled again.
    #[inline]
    pub(crate) fn kept_job(&self) -> Option<Queued<A>> {
        self.jobs().borrow_mut().pop()
    }

    /// Keeps a job that has ended, unless it is one that nobody could use, or there are enough.
    #[inline]
    fn keep(&self, mut job: Queued<A>) {
        let of_use = job.head.remote || !job.head.asks;
        if !of_use || size_of_val(&*job) > LARGEST {
            return;
        }
        // Before the list is borrowed: what is dropped here may be of any type.
        job.head.scope = None;
        job.body.clear();
        let mut jobs = self.jobs().borrow_mut();
        if jobs.len() < MOST {
            jobs.push(job);
        }
    }
}

/// Together these are at most half a megabyte of a kind and arbiter.
const MOST: usize = 1_024;
const LARGEST: usize = 512;
