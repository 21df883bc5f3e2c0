//! Keeps a watch of the directory open for an actor.

use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture};
use archipelago_protocol::contract::{WatchEvent, WatchScope};
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;

use crate::env::Oddity;
use crate::node::NodeShared;

/// Something that a watch shows.
pub(crate) enum Watched {
    /// A change, or everything there is.
    Change(WatchEvent),
    /// The watch broke; it is opened again, and begins with everything there is.
    Broken,
}

impl Message for Watched {
    type Result = ();
}

/// Watches `scope` for the actor until the context ends or the handle is cancelled. The watch waits while the actor is
/// behind, so nothing piles up.
pub(crate) fn watch<A>(
    node: &Arc<NodeShared>,
    scope: WatchScope,
    actor: &A,
    ctx: &mut Context<A>,
) -> actix::SpawnHandle
where
    A: Actor<Context = Context<A>> + Handler<Watched>,
{
    let (node, to) = (Arc::clone(node), ctx.address());
    ctx.spawn(async move { keep_open(&node, &scope, &to).await }.into_actor(actor).map(|(), _, _| ()))
}

async fn keep_open<A>(node: &Arc<NodeShared>, scope: &WatchScope, to: &Addr<A>)
where
    A: Actor<Context = Context<A>> + Handler<Watched>,
{
    loop {
        follow(node, scope, to).await;
        if to.send(Watched::Broken).await.is_err() {
            return;
        }
        node.env().sleep(REOPEN_AFTER).await;
    }
}

async fn follow<A>(node: &NodeShared, scope: &WatchScope, to: &Addr<A>)
where
    A: Actor<Context = Context<A>> + Handler<Watched>,
{
    let mut changes = match node.directory().watch(scope.clone(), None).await {
        Ok(changes) => changes,
        Err(error) => return tracing::debug!(?scope, %error, "a watch could not be opened"),
    };
    while let Some(change) = changes.next().await {
        if node.env().oddly(Oddity::WatchBreaks) {
            return;
        }
        match change {
            Ok(change) => {
                if to.send(Watched::Change(change)).await.is_err() {
                    return;
                }
            }
            Err(error) => return tracing::debug!(?scope, %error, "a watch broke"),
        }
    }
}

/// How long to wait before a broken watch is opened again.
const REOPEN_AFTER: Millis = Millis(200);
