//! What a call passes on to the calls made while it is handled: deadline, trace, and who waits for it.
//!
//! The scope is entered around the synchronous part of a handler. An async block leaves it at its first
//! await unless it is wrapped in [`in_call`].

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use archipelago_protocol::message::{CallChain, TraceContext};
use archipelago_protocol::time::Millis;
use tracing::Span;

use crate::arbiter::ArbiterLocal;
use crate::node::NodeShared;

/// What a job brought along from its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallScope {
    pub(crate) deadline: Option<Millis>,
    pub(crate) trace: Option<TraceContext>,
    /// The jobs that wait for this one to end.
    pub(crate) chain: CallChain,
}

/// The job that runs now, as the calls it makes see it.
#[derive(Clone)]
pub(crate) struct Entered {
    pub(crate) place: Place,
    pub(crate) token: u64,
    /// `Millis::MAX` for none.
    pub(crate) deadline: Millis,
    pub(crate) came_with: Option<Arc<CallScope>>,
    pub(crate) passes_on: Option<Arc<CallScope>>,
    pub(crate) passes_to_tells: Option<Arc<CallScope>>,
}

/// Where a job runs.
#[derive(Clone)]
pub(crate) enum Place {
    /// In an activation on this arbiter.
    Arbiter(Rc<ArbiterLocal>),
    /// In a named actor, on a thread of its own choice.
    Beside(Arc<NodeShared>),
}

impl Place {
    fn now(&self) -> Millis {
        match self {
            Self::Arbiter(arbiter) => arbiter.now(),
            Self::Beside(node) => node.env().now(),
        }
    }
}

impl Entered {
    /// The job `token` runs on `arbiter`, having come with `scope`.
    pub(crate) const fn new(
        arbiter: Rc<ArbiterLocal>,
        token: u64,
        deadline: Millis,
        scope: Option<Arc<CallScope>>,
    ) -> Self {
        let place = Place::Arbiter(arbiter);
        Self { place, token, deadline, came_with: scope, passes_on: None, passes_to_tells: None }
    }

    /// The job `token` of a named actor of `node` runs on this thread, having come with `scope`.
    pub(crate) const fn beside(
        node: Arc<NodeShared>,
        token: u64,
        deadline: Millis,
        scope: Option<Arc<CallScope>>,
    ) -> Self {
        let place = Place::Beside(node);
        Self { place, token, deadline, came_with: scope, passes_on: None, passes_to_tells: None }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Entered>> = const { RefCell::new(None) };
}

/// Notes which job runs now, inside an [`enter`] of its arbiter.
#[inline]
pub(crate) fn begin(token: u64, deadline: Millis, came_with: &Option<Arc<CallScope>>) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(job) = current {
            job.token = token;
            job.deadline = deadline;
            job.came_with.clone_from(came_with);
            job.passes_on = None;
            job.passes_to_tells = None;
        }
    });
}

/// Runs `work` as part of `job`, and puts back what was current before, also after a panic.
pub(crate) fn enter<T>(job: Entered, work: impl FnOnce() -> T) -> T {
    let _back = Back(CURRENT.replace(Some(job)));
    work()
}

struct Back(Option<Entered>);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// The scope that a call made now inherits; `None` outside of handlers.
#[inline]
pub(crate) fn inherited() -> Option<Arc<CallScope>> {
    CURRENT.with_borrow_mut(|current| {
        let job = current.as_mut()?;
        let scope = job.passes_on.get_or_insert_with(|| {
            let came = job.came_with.as_deref();
            Arc::new(CallScope {
                deadline: (job.deadline < Millis::MAX).then_some(job.deadline),
                trace: came.and_then(|scope| scope.trace),
                chain: came.map(|scope| scope.chain).unwrap_or_default().push(job.token),
            })
        });
        Some(Arc::clone(scope))
    })
}

/// The scope that a tell made now inherits: nobody waits for it, so neither deadline nor chain go along.
#[inline]
pub(crate) fn inherited_by_tell() -> Option<Arc<CallScope>> {
    CURRENT.with_borrow_mut(|current| {
        let job = current.as_mut()?;
        let scope = job.passes_to_tells.get_or_insert_with(|| {
            let trace = job.came_with.as_deref().and_then(|scope| scope.trace);
            Arc::new(CallScope { trace, ..CallScope::default() })
        });
        Some(Arc::clone(scope))
    })
}

/// How long the call that is being handled may still take; `None` outside of handlers and without a deadline.
pub fn remaining() -> Option<Duration> {
    CURRENT.with_borrow(|current| {
        let job = current.as_ref().filter(|job| job.deadline < Millis::MAX)?;
        Some(job.deadline.since(job.place.now()).to_duration())
    })
}

/// The trace that the message being handled belongs to: its sender's, wherever that is. `None` outside of handlers, and if the
/// sender belongs to none.
pub fn current_trace() -> Option<TraceContext> {
    CURRENT.with_borrow(|current| current.as_ref()?.came_with.as_deref()?.trace)
}

/// Keeps the deadline, the trace and the call chain of the present call inside `work`, across its awaits, and the span that
/// is entered now.
///
/// ```
/// # async fn other() {}
/// # fn handle() -> impl Future<Output = ()> {
/// archipelago_runtime::in_call(async {
///     other().await; // calls made here inherit the deadline of the call being handled
/// })
/// # }
/// ```
pub fn in_call<F: Future>(work: F) -> InCall<F> {
    InCall { job: CURRENT.with_borrow(Clone::clone), span: Span::current(), work: Box::pin(work) }
}

/// Runs `work` as part of `job`, across its awaits.
pub(crate) fn within<F: Future>(job: Entered, work: F) -> InCall<F> {
    InCall { job: Some(job), span: Span::none(), work: Box::pin(work) }
}

/// The future of [`in_call`].
pub struct InCall<F> {
    job: Option<Entered>,
    span: Span,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for InCall<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { job, span, work } = &mut *self;
        let _inside = span.enter();
        match job.clone() {
            Some(job) => enter(job, || work.as_mut().poll(cx)),
            None => work.as_mut().poll(cx),
        }
    }
}

impl<F> std::fmt::Debug for InCall<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InCall").field("inside", &self.job.is_some()).finish_non_exhaustive()
    }
}
