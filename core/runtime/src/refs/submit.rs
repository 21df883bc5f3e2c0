//! The way of a message from a ref into the arbiter of its actor.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::message::{MessageFlags, TraceContext};
use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;

use super::binding::{Binding, Route};
use crate::arbiter::{ArbiterLocal, local};
use crate::call::{
    AnswerSender, Call, CallOptions, CallScope, answer_channel, inherited, inherited_by_tell, near_channel,
};
use crate::catalog::{JobHead, Target};
use crate::env::COARSE_LAG;
use crate::node::NodeShared;

/// Queues a job of one message, given its head; an ask also gets the way back for its reply.
pub(crate) trait Submit<R>: Send + 'static {
    /// # Errors
    ///
    /// The job was not queued; whoever waits at `caller` has been told the same.
    fn submit(
        self,
        kind: u32,
        target: &Target,
        head: JobHead,
        caller: Option<AnswerSender<R>>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError>;

    /// The name of the message.
    fn name(&self) -> String;
}

/// Sends a message whose reply is awaited. Built into its callers, so that options that nobody gave cost nothing.
#[inline(always)]
pub(crate) fn ask<R: Send + 'static>(
    to: &Binding,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Call<R> {
    match to.route() {
        Ok(route) => ask_on(&route, flags, options, job),
        Err(error) => Call::failed(error),
    }
}

/// Sends a message nobody waits for.
#[inline(always)]
pub(crate) fn tell<R: Send + 'static>(
    to: &Binding,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    tell_on(&to.route()?, flags, options, job)
}

#[inline(always)]
fn tell_on<R: Send + 'static>(
    route: &Route<'_>,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    let (node, target, kind, arbiter) = (route.node, route.target, route.kind(), route.arbiter());
    let scope = inherited_by_tell();
    let inside = scope.is_some();
    let scope = with_trace(node, scope, options.trace);
    let deadline = options.timeout.map_or(Millis::MAX, |ttl| node.env().now() + Millis::from_duration(ttl));
    let head = JobHead {
        call: None,
        asks: false,
        remote: false,
        inside,
        deadline,
        flags: flags | options.flags,
        scope,
    };
    match local(node, arbiter) {
        Some(local) => job.submit(kind, target, head, None, &local),
        None if node.has_successor() => tell_in_present_life(route, flags, options, job),
        None => tell_from_afar(route, head, job),
    }
}

/// Apart, so that the way within an arbiter stays short enough to be built into its callers.
#[inline(never)]
fn tell_in_present_life<R: Send + 'static>(
    route: &Route<'_>,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    tell_on(&route.in_present_life(), flags, options, job)
}

/// Sends a message to an arbiter on another thread.
#[inline(never)]
fn tell_from_afar<R: Send + 'static>(
    route: &Route<'_>,
    head: JobHead,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    let (node, target, kind, arbiter) = (route.node, route.target, route.kind(), route.arbiter());
    let target = target.clone();
    node.enter_work(arbiter, move |local| {
        let name = job.name();
        if let Err(error) = job.submit(kind, &target, head, None, local) {
            local.node().dead_letter(target.id.to_string(), &name, &error);
        }
    })
}

#[inline(always)]
fn ask_on<R: Send + 'static>(
    route: &Route<'_>,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Call<R> {
    let (node, target, kind, arbiter) = (route.node, route.target, route.kind(), route.arbiter());
    let timeout = options.timeout.map_or(node.settings().call_timeout, Millis::from_duration);
    let scope = inherited();
    let inside = scope.is_some();
    let now = now_for(node, timeout, scope.as_deref());
    let scope = with_trace(node, scope, options.trace);
    let own = now + timeout;
    let deadline =
        scope.as_ref().and_then(|scope| scope.deadline).map_or(own, |inherited| inherited.min(own));
    if deadline <= now {
        return Call::failed(CallError::Timeout { started: false });
    }
    let head = JobHead {
        call: None,
        asks: true,
        remote: false,
        inside,
        deadline,
        flags: flags | options.flags,
        scope,
    };
    match local(node, arbiter) {
        Some(local) => {
            let (caller, answer) = near_channel();
            match job.submit(kind, target, head, Some(AnswerSender::Near(caller)), &local) {
                Ok(()) => Call::near(answer),
                Err(error) => Call::failed(error),
            }
        }
        None if node.has_successor() => ask_in_present_life(route, flags, options, job),
        None => ask_from_afar(route, (head, now), job),
    }
}

#[inline(never)]
fn ask_in_present_life<R: Send + 'static>(
    route: &Route<'_>,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Call<R> {
    ask_on(&route.in_present_life(), flags, options, job)
}

/// Sends a message to an arbiter on another thread, where the reply comes from. Its head was made at `now`.
#[inline(never)]
fn ask_from_afar<R: Send + 'static>(
    route: &Route<'_>,
    (head, now): (JobHead, Millis),
    job: impl Submit<R>,
) -> Call<R> {
    let (node, target, kind, arbiter) = (route.node, route.target, route.kind(), route.arbiter());
    let (caller, answer) = answer_channel();
    let (target, deadline) = (target.clone(), head.deadline);
    let entered = node.enter_work(arbiter, move |local| {
        // The caller is told through its way back.
        let _ = job.submit(kind, &target, head, Some(caller), local);
    });
    match entered {
        Ok(()) => Call::waiting(answer, backstop(node, deadline.since(now))),
        Err(error) => Call::failed(error),
    }
}

/// What goes before a message to a named actor whose reply is awaited, and the time its deadline is counted from. As
/// [`ask_on`] makes it, which is written out there because a head that is copied costs.
///
/// # Errors
///
/// An inherited deadline has passed.
pub(crate) fn ask_head(
    node: &NodeShared,
    flags: MessageFlags,
    options: CallOptions,
) -> Result<(JobHead, Millis), CallError> {
    let timeout = options.timeout.map_or(node.settings().call_timeout, Millis::from_duration);
    let scope = inherited();
    let inside = scope.is_some();
    let now = now_for(node, timeout, scope.as_deref());
    let scope = with_trace(node, scope, options.trace);
    let own = now + timeout;
    let deadline =
        scope.as_ref().and_then(|scope| scope.deadline).map_or(own, |inherited| inherited.min(own));
    if deadline <= now {
        return Err(CallError::Timeout { started: false });
    }
    let head = JobHead {
        call: None,
        asks: true,
        remote: false,
        inside,
        deadline,
        flags: flags | options.flags,
        scope,
    };
    Ok((head, now))
}

/// What goes before a message to a named actor that nobody waits for.
pub(crate) fn tell_head(node: &NodeShared, flags: MessageFlags, options: CallOptions) -> JobHead {
    let scope = inherited_by_tell();
    let inside = scope.is_some();
    let scope = with_trace(node, scope, options.trace);
    let deadline = options.timeout.map_or(Millis::MAX, |ttl| node.env().now() + Millis::from_duration(ttl));
    let flags = flags | options.flags;
    JobHead { call: None, asks: false, remote: false, inside, deadline, flags, scope }
}

/// Tells whoever waits that the job was not queued, and passes the error on.
pub(crate) fn refuse<R: Send + 'static>(caller: Option<AnswerSender<R>>, error: CallError) -> CallError {
    if let Some(caller) = caller {
        caller.send(Err(error.clone()));
    }
    error
}

#[inline]
fn with_trace(
    node: &NodeShared,
    scope: Option<Arc<CallScope>>,
    trace: Option<TraceContext>,
) -> Option<Arc<CallScope>> {
    let Some(trace) = trace.or_else(|| node.present_trace()) else { return scope };
    let scope = scope.as_deref().cloned().unwrap_or_default();
    Some(Arc::new(CallScope { trace: Some(trace), ..scope }))
}

/// The time a deadline is counted from. For a long one of its own the coarse clock will do, rounded up: no call ends
/// early.
fn now_for(node: &NodeShared, timeout: Millis, scope: Option<&CallScope>) -> Millis {
    let inherits = scope.is_some_and(|scope| scope.deadline.is_some());
    if inherits || timeout < Millis(1_000) { node.env().now() } else { node.env().coarse() + COARSE_LAG }
}

/// Ends the wait of a caller on another thread when the actor's arbiter is stuck and cannot do it. Only where
/// the caller's own thread has timers.
pub(crate) fn backstop(node: &NodeShared, left: Millis) -> Option<BoxFuture<'static, ()>> {
    tokio::runtime::Handle::try_current().ok().map(|_| node.env().sleep(left + BACKSTOP_AFTER))
}

/// How long after the deadline a stuck arbiter is no longer waited for.
const BACKSTOP_AFTER: Millis = Millis(50);
