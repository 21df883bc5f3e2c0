//! What a user's types must be: messages, virtual actors, and the pairs of both.

use std::any::Any;
use std::error::Error as StdError;
use std::future::Future;

use actix::dev::MessageResponse;
use actix::{Actor, Addr, Context, Handler, Message, MessageResult, ResponseFuture};
use archipelago_protocol::activation::{DeactivateReason, Interleave};
use archipelago_protocol::message::{MessageFlags, PayloadCodec, WireId, wire_id};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::activation::Activation;
use crate::catalog::MessageTable;
use crate::named::{NamedJob, NamedTable};
use crate::state::{Migration, Persistence};

/// A message that can travel: it and its result can be encoded, and it has a stable name.
///
/// `#[remote(Reply)]` or `#[derive(RemoteMessage)]` implement it.
pub trait RemoteMessage:
    Message<Result: Serialize + DeserializeOwned + Send> + Serialize + DeserializeOwned + Send + 'static
{
    /// The name on the wire: crate name and type name, or what the user chose. Changing it, or the layout of the
    /// type without changing it, breaks compatibility.
    const NAME: &'static str;
    /// How it is encoded when it leaves its node; its reply is encoded the same way.
    type Codec: PayloadCodec;
    /// The flags every such message carries.
    const FLAGS: MessageFlags = MessageFlags::empty();
    /// The number that stands for the name on the wire.
    const WIRE_ID: WireId = wire_id(Self::NAME);
}

/// Declares that actors of type `A` take this message through a ref.
///
/// `handles(..)` of `#[derive(VirtualActor)]` or `#[derive(NamedActor)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{A}` does not take the message `{Self}` through a ref",
    label = "`{Self}` is not among the messages that `{A}` handles",
    note = "add `{Self}` to `handles(..)` of `{A}` and implement `Handler<{Self}>` for it"
)]
pub trait AcceptedBy<A: Actor>: RemoteMessage {
    /// How the message reaches the handler: always [`ViaHandler`]. It keeps `Handler` out of the bounds of `send`, so
    /// that the compiler speaks of this trait when a message is not taken.
    #[doc(hidden)]
    type Via: Dispatch<A, Self>;
    /// Where it stands among the messages that the actor declares, for whoever counts it. The derives say it; without it
    /// counting takes a search.
    #[doc(hidden)]
    const PLACE: usize = usize::MAX;
}

/// Calls the handler of an actor for a message.
#[doc(hidden)]
pub trait Dispatch<A: Actor, M: RemoteMessage> {
    /// Calls it.
    fn dispatch(actor: &mut A, message: M, ctx: &mut A::Context) -> Dispatched<M::Result>;
}

/// What a handler gave back.
#[doc(hidden)]
#[derive(Debug)]
pub enum Dispatched<R> {
    /// The reply.
    Reply(R),
    /// The reply comes later.
    Later(oneshot::Receiver<R>),
    /// It dropped the way back.
    Nothing,
}

/// The way through `actix::Handler`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ViaHandler;

impl<A, M> Dispatch<A, M> for ViaHandler
where
    A: Handler<M, Result: 'static>,
    M: RemoteMessage,
{
    fn dispatch(actor: &mut A, message: M, ctx: &mut A::Context) -> Dispatched<M::Result> {
        let mut response = Some(actor.handle(message, ctx));
        // A handler whose result is the reply itself has replied: no channel is needed to learn it.
        if let Some(reply) = (&mut response as &mut dyn Any).downcast_mut::<Option<M::Result>>() {
            return reply.take().map_or(Dispatched::Nothing, Dispatched::Reply);
        }
        if let Some(reply) = (&mut response as &mut dyn Any).downcast_mut::<Option<MessageResult<M>>>() {
            return reply.take().map_or(Dispatched::Nothing, |MessageResult(reply)| Dispatched::Reply(reply));
        }
        let Some(response) = response else { return Dispatched::Nothing };
        let (tx, mut rx) = oneshot::channel();
        response.handle(ctx, Some(tx));
        match rx.try_recv() {
            Ok(reply) => Dispatched::Reply(reply),
            Err(TryRecvError::Closed) => Dispatched::Nothing,
            Err(TryRecvError::Empty) => Dispatched::Later(rx),
        }
    }
}

/// An actix actor that the library activates by its id when a message comes.
///
/// `#[derive(VirtualActor)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a virtual actor",
    note = "add `#[derive(VirtualActor)]` and `#[virtual_actor(handles(..))]` to `{Self}`"
)]
pub trait VirtualActor: Actor<Context = Context<Self>> + Lifecycle + Unpin {
    /// The kind: the middle part of the id of every such actor.
    const KIND: &'static str;
    /// Which of its messages may overlap.
    const INTERLEAVE: Interleave = Interleave::Never;
    /// How its state is kept between activations, if it is: `persistent` in the derive.
    const PERSISTENCE: Option<Persistence<Self>> = None;
    /// How its state goes along when its shard moves, if it does: `migrate` in the derive.
    const MIGRATION: Option<Migration<Self>> = None;

    /// The messages that it takes through refs.
    fn messages(table: &mut MessageTable<Self>);
}

/// What an actor does when it comes to life and when it goes.
///
/// An actor declares `#[virtual_actor(lifecycle)]` and implements this by hand; the derive implements it empty
/// for all others.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `Lifecycle`",
    note = "`lifecycle` was given to `#[virtual_actor(..)]`: implement `Lifecycle` for `{Self}`, or remove the word"
)]
pub trait Lifecycle: Actor {
    /// False spares the library the calls. Leave it alone.
    const HOOKS: bool = true;

    /// Runs before the first message. If it fails, the waiting callers get the error, and nothing stays behind.
    ///
    /// # Errors
    ///
    /// Any error: the activation is given up.
    fn on_activate(&mut self, here: Activation) -> impl Future<Output = Result<(), BoxError>> {
        let _ = here;
        async { Ok(()) }
    }

    /// Runs after the last message, with the state at hand; the future it returns runs to its end, or to
    /// `deactivate_timeout`, before the id can be activated again. It does not run after a panic.
    fn on_deactivate(&mut self, reason: DeactivateReason) -> ResponseFuture<()> {
        let _ = reason;
        Box::pin(std::future::ready(()))
    }
}

/// Any actix actor that takes declared messages under a path.
///
/// `#[derive(NamedActor)]` implements it, and `#[derive(VirtualActor)]` does too. Unlike a virtual actor it may have any
/// context.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered under a path",
    note = "add `#[derive(NamedActor)]` and `#[named_actor(handles(..))]` to `{Self}`"
)]
pub trait NamedActor: Actor {
    /// The messages that it takes through refs.
    fn messages(table: &mut NamedTable<Self>);

    /// Puts a message into the mailbox. The derive writes it: only there is the context known to take the message.
    #[doc(hidden)]
    fn deliver(addr: &Addr<Self>, job: NamedJob<Self>);
}

/// An error of user code.
pub type BoxError = Box<dyn StdError + Send + Sync>;
