//! Which actor a ref means, and on which node it is used.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::call::{CallError, ForeignNamespace};
use archipelago_protocol::identity::{ActorId, Kind};

use crate::catalog::Target;
use crate::node::NodeShared;

/// The inside of every ref to a virtual actor.
#[derive(Clone)]
pub(crate) struct Binding {
    inner: Arc<Inner>,
}

struct Inner {
    target: Result<Target, CallError>,
    /// Found out once, because every message needs it.
    way: Result<Way, CallError>,
}

/// The node, the kind's place in its list, and the arbiter that hosts the actor.
struct Way {
    node: Arc<NodeShared>,
    kind: u32,
    arbiter: u16,
}

/// What a message needs to get on its way.
pub(crate) struct Route<'a> {
    pub(crate) node: &'a Arc<NodeShared>,
    pub(crate) target: &'a Target,
    /// Not copied: small fields that are read back in one piece stall the processor.
    way: &'a Way,
}

impl Route<'_> {
    /// The kind's place in the node's list.
    #[inline]
    pub(crate) const fn kind(&self) -> u32 {
        self.way.kind
    }

    /// The arbiter that hosts the actor.
    #[inline]
    pub(crate) const fn arbiter(&self) -> u16 {
        self.way.arbiter
    }

    /// The same in the present life of the node: kinds and arbiters have the same numbers in all of them.
    pub(crate) fn in_present_life(&self) -> Self {
        Self { node: self.node.present(), ..*self }
    }
}

impl Binding {
    /// The actor of `kind` with `key` in the namespace of `node`. What is wrong with the names shows when the
    /// ref is used.
    pub(crate) fn on(node: &Arc<NodeShared>, kind: &str, key: &str) -> Self {
        let id = match Kind::new(kind) {
            Ok(name) => {
                let known = node.kind_index(&name).and_then(|index| node.kinds().get(index as usize));
                node.namespace().actor_id_of(known.map_or(&name, |known| known.kind()), key)
            }
            Err(error) => Err(error),
        };
        Self::new(id.map_err(CallError::from), Some(node))
    }

    /// The actor with this id, bound to the node that is decoding now, if one is.
    pub(crate) fn decoded(id: ActorId) -> Self {
        DECODING.with_borrow(|node| Self::new(Ok(id), node.as_ref()))
    }

    /// The same actor, as seen from `node`.
    pub(crate) fn bind(&self, node: &Arc<NodeShared>) -> Self {
        Self::new(self.inner.target.clone().map(|target| target.id), Some(node))
    }

    fn new(id: Result<ActorId, CallError>, node: Option<&Arc<NodeShared>>) -> Self {
        let target = id.map(|id| Target { hash: id.stable_hash(), id });
        let way = match (&target, node) {
            (Ok(target), Some(node)) => way(target, node),
            (Ok(_), None) => Err(CallError::Unbound),
            (Err(error), _) => Err(error.clone()),
        };
        Self { inner: Arc::new(Inner { target, way }) }
    }

    /// The actor's id.
    pub(crate) fn id(&self) -> Result<&ActorId, CallError> {
        match &self.inner.target {
            Ok(target) => Ok(&target.id),
            Err(error) => Err(error.clone()),
        }
    }

    /// Asks the actor to deactivate once the messages that run now have ended.
    pub(super) fn deactivate(&self) -> Result<(), CallError> {
        let route = self.route()?.in_present_life();
        route.node.leave(route.kind(), route.target.clone(), DeactivateReason::Requested);
        Ok(())
    }

    /// Where a message has to go.
    #[inline]
    pub(crate) fn route(&self) -> Result<Route<'_>, CallError> {
        match (&self.inner.target, &self.inner.way) {
            (Ok(target), Ok(way)) => Ok(Route { node: &way.node, target, way }),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        }
    }
}

/// Who is meant counts, and not on which node the ref is used.
impl PartialEq for Binding {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Binding {}

impl Hash for Binding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().ok().hash(state);
    }
}

fn way(target: &Target, node: &Arc<NodeShared>) -> Result<Way, CallError> {
    if node.namespace() != target.id.namespace() {
        return Err(CallError::ForeignNamespace(Box::new(ForeignNamespace {
            ours: node.namespace().as_str().into(),
            theirs: target.id.namespace().as_str().into(),
        })));
    }
    let kind = node.kind_index(target.id.kind());
    let kind = kind.ok_or_else(|| CallError::UnknownKind { kind: target.id.kind().as_str().into() })?;
    Ok(Way { node: Arc::clone(node), kind, arbiter: node.arbiter_of(kind, target.hash) })
}

thread_local! {
    static DECODING: RefCell<Option<Arc<NodeShared>>> = const { RefCell::new(None) };
}

/// The node that is decoding now, if one is.
pub(crate) fn decoding_node() -> Option<Arc<NodeShared>> {
    DECODING.with_borrow(Clone::clone)
}

/// Runs `decode` so that refs found in messages are bound to `node`.
pub(crate) fn decoding<T>(node: &Arc<NodeShared>, decode: impl FnOnce() -> T) -> T {
    struct Back(Option<Arc<NodeShared>>);
    impl Drop for Back {
        fn drop(&mut self) {
            DECODING.set(self.0.take());
        }
    }
    // Who reads many messages in a row sets the node once for all of them.
    if DECODING.with_borrow(|now| now.as_ref().is_some_and(|now| Arc::ptr_eq(now, node))) {
        return decode();
    }
    let _back = Back(DECODING.replace(Some(Arc::clone(node))));
    decode()
}
