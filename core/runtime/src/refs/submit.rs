//! The way of a message from a ref into the arbiter of its actor.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;

use super::binding::{Binding, Route};
use crate::arbiter::{ArbiterLocal, with_local};
use crate::call::{Call, CallCell, CallOptions, CallScope, Home, inherited, inherited_by_tell};
use crate::catalog::{JobHead, Target};
use crate::node::NodeShared;

/// Queues a job of one message, given its head; an ask also gets the cell for its reply.
pub(crate) trait Submit<R>: Send + 'static {
    fn submit(
        self,
        kind: u32,
        target: &Target,
        head: JobHead,
        cell: Option<Arc<CallCell<R>>>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError>;

    /// The name of the message.
    fn name(&self) -> String;
}

/// Sends a message whose reply is awaited.
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
pub(crate) fn tell<R: Send + 'static>(
    to: &Binding,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    let route = to.route()?;
    let name = job.name();
    let told = tell_on(&route, flags, options, job);
    if let Err(error) = &told {
        tracing::debug!(actor = %route.target.id, message = name, %error, "tell refused");
    }
    told
}

fn ask_on<R: Send + 'static>(
    route: &Route<'_>,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Call<R> {
    let Route { node, kind, target } = *route;
    let now = node.env().now();
    let scope = with_trace(inherited(), options);
    let own = now + options.timeout.map_or(node.settings().call_timeout, Millis::from_duration);
    let deadline =
        scope.as_ref().and_then(|scope| scope.deadline).map_or(own, |inherited| inherited.min(own));
    if deadline <= now {
        return Call::failed(CallError::Timeout { started: false });
    }
    let head = JobHead { call: None, deadline, flags: flags | options.flags, scope };
    let cell = Arc::new(CallCell::new());
    let arbiter = node.arbiter_of(target.hash);
    let home = Home { node: Arc::clone(node), arbiter };

    let mut job = Some(job);
    let here = with_local(node, arbiter, |local| {
        job.take().map_or(Ok(()), |job| register(local, kind, target, head.clone(), &cell, job))
    });
    match (here, job) {
        (Some(Err(error)), _) => Call::failed(error),
        (None, Some(job)) => {
            let (target, arriving) = (target.clone(), Arc::clone(&cell));
            let entered = node.on_arbiter(arbiter, move |local| {
                if let Err(error) = register(local, kind, &target, head, &arriving, job) {
                    arriving.finish(Err(error));
                }
            });
            match entered {
                Ok(()) => Call::waiting(cell, home, backstop(node, deadline.since(now))),
                Err(error) => Call::failed(error),
            }
        }
        _ => Call::waiting(cell, home, None),
    }
}

/// Registers the call, then queues its job: in this order, so that no reply can come too early.
fn register<R: Send + 'static>(
    local: &Rc<ArbiterLocal>,
    kind: u32,
    target: &Target,
    mut head: JobHead,
    cell: &Arc<CallCell<R>>,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    let call: CorrelationId = local.open_call(head.deadline, cell)?;
    head.call = Some(call);
    let queued = job.submit(kind, target, head, Some(Arc::clone(cell)), local);
    if queued.is_err() {
        local.forget_call(call);
    }
    queued
}

fn tell_on<R: Send + 'static>(
    route: &Route<'_>,
    flags: MessageFlags,
    options: CallOptions,
    job: impl Submit<R>,
) -> Result<(), CallError> {
    let Route { node, kind, target } = *route;
    let scope = with_trace(inherited_by_tell(), options);
    let deadline = options.timeout.map_or(Millis::MAX, |ttl| node.env().now() + Millis::from_duration(ttl));
    let head = JobHead { call: None, deadline, flags: flags | options.flags, scope };
    let arbiter = node.arbiter_of(target.hash);

    let mut job = Some(job);
    let here = with_local(node, arbiter, |local| {
        job.take().map_or(Ok(()), |job| job.submit(kind, target, head.clone(), None, local))
    });
    match (here, job) {
        (Some(told), _) => told,
        (None, None) => Ok(()),
        (None, Some(job)) => {
            let target = target.clone();
            node.on_arbiter(arbiter, move |local| {
                let name = job.name();
                if let Err(error) = job.submit(kind, &target, head, None, local) {
                    local.node().dead_letter(target.id.to_string(), &name, &error);
                }
            })
        }
    }
}

fn with_trace(scope: Option<Arc<CallScope>>, options: CallOptions) -> Option<Arc<CallScope>> {
    let Some(trace) = options.trace else { return scope };
    let scope = scope.as_deref().cloned().unwrap_or_default();
    Some(Arc::new(CallScope { trace: Some(trace), ..scope }))
}

/// Ends the wait of a caller on another thread when the actor's arbiter is stuck and cannot do it. Only where
/// the caller's own thread has timers.
fn backstop(node: &NodeShared, left: Millis) -> Option<BoxFuture<'static, ()>> {
    tokio::runtime::Handle::try_current().ok().map(|_| node.env().sleep(left + BACKSTOP_AFTER))
}

/// How long after the deadline a stuck arbiter is no longer waited for.
const BACKSTOP_AFTER: Millis = Millis(50);
