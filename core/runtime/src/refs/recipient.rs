//! A ref as a plain actix `Recipient`.

use std::sync::Arc;

use actix::dev::{MessageResponse, OneshotSender, channel};
use actix::{Actor, Addr, AsyncContext, Context, Handler, Recipient, fut};
use archipelago_protocol::call::CallError;

use super::MessageRef;
use crate::call::Call;
use crate::message::RemoteMessage;
use crate::node::NodeShared;

/// Starts a forwarder on the arbiter of the ref's actor and gives out its address.
pub(super) fn start<M: RemoteMessage>(to: MessageRef<M>) -> Result<Recipient<M>, CallError> {
    let route = to.binding().route()?.in_present_life();
    let (node, arbiter) = (Arc::clone(route.node), route.arbiter());
    forwarder(&node, arbiter, move |message| to.send(message))
}

/// Starts an actor on an arbiter that passes messages on, and gives out its address.
pub(crate) fn forwarder<M: RemoteMessage>(
    node: &NodeShared,
    arbiter: u16,
    send: impl Fn(M) -> Call<M::Result> + Send + 'static,
) -> Result<Recipient<M>, CallError> {
    let (sender, receiver) = channel::channel(MAILBOX);
    // Always through the queue: the forwarder must belong to the node's own tasks.
    node.enter_work(arbiter, move |local| {
        if !local.is_closed() {
            Context::with_receiver(receiver).run(Forwarder { send: Box::new(send) });
        }
    })?;
    Ok(Addr::new(sender).recipient())
}

/// Passes the messages of a recipient on. It ends when the last recipient is dropped.
struct Forwarder<M: RemoteMessage> {
    send: Box<dyn Fn(M) -> Call<M::Result>>,
}

impl<M: RemoteMessage> Actor for Forwarder<M> {
    type Context = Context<Self>;
}

impl<M: RemoteMessage> Handler<M> for Forwarder<M> {
    type Result = Forwarded<M>;

    fn handle(&mut self, message: M, _: &mut Context<Self>) -> Forwarded<M> {
        Forwarded((self.send)(message))
    }
}

/// The reply to a forwarded message. An error drops the way back: a recipient has no word for errors, its sender
/// sees a closed mailbox, as with a dead actor.
struct Forwarded<M: RemoteMessage>(Call<M::Result>);

impl<M: RemoteMessage> MessageResponse<Forwarder<M>, M> for Forwarded<M> {
    fn handle(self, ctx: &mut Context<Forwarder<M>>, tx: Option<OneshotSender<M::Result>>) {
        let passed_on = async move {
            match (self.0.await, tx) {
                (Ok(reply), Some(tx)) => drop(tx.send(reply)),
                (Ok(_), None) => {}
                (Err(error), _) => tracing::debug!(message = M::NAME, %error, "a recipient's message failed"),
            }
        };
        ctx.spawn(fut::wrap_future(passed_on));
    }
}

/// As many messages as a plain actix mailbox holds.
const MAILBOX: usize = 16;
