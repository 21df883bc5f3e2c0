//! Keeps a watch of the directory open for an actor.

use std::collections::BTreeSet;
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

/// What was known and is not in the list with which a watch begins anew. Both may be long.
pub(crate) fn not_listed<K: Ord>(
    known: impl IntoIterator<Item = K>,
    listed: impl IntoIterator<Item = K>,
) -> Vec<K> {
    let listed: BTreeSet<K> = listed.into_iter().collect();
    known.into_iter().filter(|key| !listed.contains(key)).collect()
}

/// How long to wait before a broken watch is opened again.
const REOPEN_AFTER: Millis = Millis(200);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often it is looked at.
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            LOOKS.set(LOOKS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted {}

    #[test]
    fn what_is_missing_from_a_long_list_is_found_without_comparing_all_with_all() {
        const MANY: u32 = 10_000;
        let missing =
            not_listed((0..MANY).map(Counted), (0..MANY).filter(|key| key % 1_000 != 7).map(Counted));
        assert_eq!(missing.len(), 10);
        assert!(LOOKS.get() < 100 * MANY as usize, "{} looks", LOOKS.get());
    }
}
