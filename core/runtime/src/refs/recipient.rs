//! A ref as a plain actix `Recipient`.
//!
//! Its sender decides what a message is: `send` makes an ask of it, `do_send` and `try_send` a tell. A recipient has no word for
//! errors: who asked sees a closed mailbox, as with a dead actor; what was told and not delivered becomes a dead letter.

use std::rc::Rc;
use std::sync::Arc;

use actix::dev::{MessageResponse, OneshotSender, channel};
use actix::{Actor, Addr, AsyncContext, Context, Handler, Recipient, fut};
use archipelago_protocol::call::CallError;

use super::MessageRef;
use crate::call::Call;
use crate::message::RemoteMessage;
use crate::node::NodeShared;

/// Whom a recipient stands for.
pub(crate) trait Addressee<M: RemoteMessage>: Send + 'static {
    /// Sends a message whose reply is awaited.
    fn ask(&self, message: M) -> Call<M::Result>;

    /// Sends a message nobody waits for.
    fn tell(&self, message: M) -> Result<(), CallError>;

    /// Its id or path, as dead letters name it.
    fn name(&self) -> String;
}

/// Starts a forwarder on the arbiter of the ref's actor and gives out its address.
pub(super) fn start<M: RemoteMessage>(to: MessageRef<M>) -> Result<Recipient<M>, CallError> {
    let route = to.binding().route()?.in_present_life();
    let (node, arbiter) = (Arc::clone(route.node), route.arbiter());
    forwarder(&node, arbiter, to)
}

/// Starts an actor on an arbiter that passes messages on, and gives out its address.
pub(crate) fn forwarder<M: RemoteMessage>(
    node: &Arc<NodeShared>,
    arbiter: u16,
    to: impl Addressee<M>,
) -> Result<Recipient<M>, CallError> {
    let (sender, receiver) = channel::channel(MAILBOX);
    // Always through the queue: the forwarder must belong to the node's own tasks.
    node.enter_work(arbiter, move |local| {
        if !local.is_closed() {
            let node = Arc::clone(local.node());
            Context::with_receiver(receiver).run(Forwarder { to: Rc::new(to), node });
        }
    })?;
    Ok(Addr::new(sender).recipient())
}

/// Passes the messages of a recipient on. It ends when the last recipient is dropped.
struct Forwarder<M: RemoteMessage> {
    to: Rc<dyn Addressee<M>>,
    node: Arc<NodeShared>,
}

impl<M: RemoteMessage> Actor for Forwarder<M> {
    type Context = Context<Self>;
}

impl<M: RemoteMessage> Handler<M> for Forwarder<M> {
    type Result = Forwarded<M>;

    fn handle(&mut self, message: M, _: &mut Context<Self>) -> Forwarded<M> {
        Forwarded { message, to: Rc::clone(&self.to), node: Arc::clone(&self.node) }
    }
}

/// A message to pass on, now that it shows whether its sender waits.
struct Forwarded<M: RemoteMessage> {
    message: M,
    to: Rc<dyn Addressee<M>>,
    node: Arc<NodeShared>,
}

impl<M: RemoteMessage> MessageResponse<Forwarder<M>, M> for Forwarded<M> {
    fn handle(self, ctx: &mut Context<Forwarder<M>>, tx: Option<OneshotSender<M::Result>>) {
        let Self { message, to, node } = self;
        let Some(tx) = tx else {
            if let Err(error) = to.tell(message) {
                node.dead_letter(to.name(), M::NAME, &error);
            }
            return;
        };
        let call = to.ask(message);
        let passed_on = async move {
            match call.await {
                Ok(reply) => drop(tx.send(reply)),
                Err(error) => tracing::debug!(message = M::NAME, %error, "a recipient's message failed"),
            }
        };
        ctx.spawn(fut::wrap_future(passed_on));
    }
}

/// As many messages as a plain actix mailbox holds.
const MAILBOX: usize = 16;
