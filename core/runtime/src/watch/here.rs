//! Watching what lives on this node: activations on their arbiter, named actors by their door.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{ActorId, Generation};
use archipelago_protocol::time::Millis;
use archipelago_protocol::watch::{Termination, WatchId};
use tokio::sync::oneshot;

use super::{Begun, WatchTarget};
use crate::arbiter::ArbiterLocal;
use crate::catalog::Target;
use crate::named::AnyDoor;
use crate::node::NodeShared;

/// Who is told about something on this node.
pub(super) enum Listener {
    /// A watch of this node.
    Own(WatchId),
    /// Whoever looks after the watch of another node.
    Other(oneshot::Sender<Termination>),
}

impl Listener {
    fn tell(self, how: Termination, node: &NodeShared) {
        match self {
            Self::Own(id) => node.watches().end(id, None, how),
            Self::Other(keeper) => drop(keeper.send(how)),
        }
    }

    fn is_gone(&self, node: &NodeShared) -> bool {
        match self {
            Self::Own(id) => !node.watches().change(|book| book.is_open(*id)),
            Self::Other(keeper) => keeper.is_closed(),
        }
    }
}

/// Who watches the actors with one hash.
type Listeners = Vec<(ActorId, Listener)>;

/// Who watches the activations of one arbiter. As many as the node may have watches, and as many again that have been
/// given up.
#[derive(Default)]
pub(crate) struct Watchers {
    by_actor: RefCell<BTreeMap<(u32, u64), Listeners>>,
    count: Cell<usize>,
}

impl Watchers {
    fn add(&self, kind: u32, target: &Target, listener: Listener, node: &NodeShared) {
        let mut by_actor = self.by_actor.borrow_mut();
        if self.count.get() >= 2 * node.settings().watches {
            by_actor.values_mut().for_each(|all| all.retain(|(_, one)| !one.is_gone(node)));
            by_actor.retain(|_, all| !all.is_empty());
            self.count.set(by_actor.values().map(Vec::len).sum());
        }
        self.count.set(self.count.get() + 1);
        by_actor.entry((kind, target.hash)).or_default().push((target.id.clone(), listener));
    }

    /// Takes out those who watch the actor.
    fn take(&self, kind: u32, hash: u64, id: &ActorId) -> Vec<Listener> {
        let mut by_actor = self.by_actor.borrow_mut();
        let Some(all) = by_actor.remove(&(kind, hash)) else { return Vec::new() };
        let (told, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(watched, _)| watched == id);
        if !others.is_empty() {
            by_actor.insert((kind, hash), others);
        }
        self.count.set(self.count.get().saturating_sub(told.len()));
        told.into_iter().map(|(_, listener)| listener).collect()
    }
}

impl ArbiterLocal {
    /// Watches the present activation of an actor, if there is one here.
    fn watch_actor(&self, kind: u32, target: &Target, listener: Listener) -> Begun {
        let Some(catalog) = self.any_kind(kind).filter(|_| !self.is_closed()) else { return Begun::NotHere };
        let (shards, key) = (catalog.shards(), target.id.key().as_str());
        if !shards.serves(shards.of(target.hash), Generation::new(0), key) {
            return Begun::NotHere;
        }
        if !catalog.is_active(target) {
            return Begun::NotActive;
        }
        self.watchers().add(kind, target, listener, self.node());
        Begun::Watching
    }

    /// An activation has ended: whoever watches it is told.
    pub(crate) fn activation_ended(
        &self,
        (kind, hash, id): (u32, u64, &ActorId),
        generation: Generation,
        reason: Option<DeactivateReason>,
    ) {
        if self.watchers().by_actor.borrow().is_empty() {
            return;
        }
        let reason = reason.unwrap_or(DeactivateReason::StoppedItself);
        let how = Termination::Ended { node: self.node().id(), generation, reason };
        for listener in self.watchers().take(kind, hash, id) {
            listener.tell(how, self.node());
        }
    }
}

/// Begins to watch something on this node.
pub(super) async fn begin_here(
    node: &Arc<NodeShared>,
    target: &WatchTarget,
    listener: Listener,
) -> Result<Begun, CallError> {
    match target {
        WatchTarget::Actor(kind, key) => begin_actor(node, kind, key, listener).await,
        WatchTarget::Named(path) => begin_named(node, path.clone(), listener),
    }
}

async fn begin_actor(
    node: &Arc<NodeShared>,
    kind: &str,
    key: &str,
    listener: Listener,
) -> Result<Begun, CallError> {
    let unknown = || CallError::UnknownKind { kind: kind.into() };
    let found = node.kinds().iter().find(|known| known.name() == kind).ok_or_else(unknown)?;
    let id = node.namespace().actor_id_of(found.kind(), key)?;
    let (index, target) = (found.index(), Target { hash: id.stable_hash(), id });
    let (begun, has_begun) = oneshot::channel();
    node.on_arbiter(node.arbiter_of(index, target.hash), move |on: &Rc<ArbiterLocal>| {
        // Whoever asked may have given up.
        let _ = begun.send(on.watch_actor(index, &target, listener));
    })?;
    has_begun.await.map_err(|_| CallError::Stopped)
}

/// actix tells nobody that an actor has stopped, so its address is looked at now and then.
fn begin_named(node: &Arc<NodeShared>, path: String, listener: Listener) -> Result<Begun, CallError> {
    let Some(door) = node.named().door(&path).filter(|door| door.is_alive()) else {
        return Ok(Begun::NotActive);
    };
    let shared = Arc::clone(node);
    node.enter_work(0, move |on| {
        let env = Arc::clone(on.node().env());
        env.spawn(Box::pin(async move {
            while !listener.is_gone(&shared) {
                if let Some(how) = end_of(&shared, &path, &door) {
                    return listener.tell(how, &shared);
                }
                shared.env().sleep(LOOK_EVERY).await;
            }
        }));
    })?;
    Ok(Begun::Watching)
}

fn end_of(node: &NodeShared, path: &str, door: &Arc<dyn AnyDoor>) -> Option<Termination> {
    let registered = node.named().door(path).is_some_and(|now| Arc::ptr_eq(&now, door));
    match (door.is_alive(), registered) {
        (false, _) => Some(Termination::Stopped),
        (true, false) => Some(Termination::Unregistered),
        (true, true) => None,
    }
}

/// How often the address of a named actor that is watched is looked at.
const LOOK_EVERY: Millis = Millis(200);
