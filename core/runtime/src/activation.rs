//! What an actor knows about its own activation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::identity::{ActivationRecord, ActorId, Generation, NodeId};

use crate::call::remaining;
use crate::catalog::Target;
use crate::message::VirtualActor;
use crate::node::{Node, NodeShared};
use crate::refs::ActorRef;
use crate::state::{Persistent, Saving, StateError, StateKeeper};

/// One activation of an actor, as `on_activate` gets it. Cheap to clone; keep it to use it later.
#[derive(Clone)]
pub struct Activation {
    inner: Arc<Inner>,
}

struct Inner {
    target: Target,
    kind: u32,
    record: ActivationRecord,
    node: Arc<NodeShared>,
    /// Only for persistent actors.
    state: Option<Arc<StateKeeper>>,
}

impl Activation {
    pub(crate) fn new(
        id: ActorId,
        hash: u64,
        kind: u32,
        generation: Generation,
        node: Arc<NodeShared>,
        persistent: bool,
    ) -> Self {
        let states = node.states().filter(|_| persistent);
        let keeper = |states| Arc::new(StateKeeper::new(&node, states, id.clone(), generation));
        let state = states.map(keeper);
        let record = ActivationRecord {
            actor: id.clone(),
            node: node.id(),
            generation,
            activated_at_ms: node.env().wall_millis(),
        };
        Self { inner: Arc::new(Inner { target: Target { id, hash }, kind, record, node, state }) }
    }

    /// The actor's id.
    pub fn id(&self) -> &ActorId {
        &self.inner.target.id
    }

    /// The generation under which this node owns the actor: greater than any before. Pass it to your storage,
    /// and let the storage refuse lower ones.
    pub fn generation(&self) -> Generation {
        self.inner.record.generation
    }

    /// The node the activation is on, to reach other actors through.
    pub fn node(&self) -> Node {
        Node::of(Arc::clone(&self.inner.node))
    }

    /// The id of that node.
    pub fn node_id(&self) -> NodeId {
        self.inner.record.node
    }

    /// Actor, node, generation and time of this activation as one value.
    pub fn record(&self) -> &ActivationRecord {
        &self.inner.record
    }

    /// The actor itself, as others see it; `None` if it is no `A`.
    pub fn actor_ref<A: VirtualActor>(&self) -> Option<ActorRef<A>> {
        let Inner { target, node, .. } = &*self.inner;
        (target.id.kind().as_str() == A::KIND).then(|| ActorRef::on(node, target.id.key().as_str()))
    }

    /// Asks for deactivation once the messages that run now have ended. Those that wait are handled by the next
    /// activation.
    pub fn deactivate(&self) {
        let Inner { target, kind, node, .. } = &*self.inner;
        node.leave(*kind, target.clone(), DeactivateReason::Requested);
    }

    /// Saves the state of the actor, which is taken at once; await the answer before you tell anybody that it is kept.
    ///
    /// A later state is never overwritten by an earlier one, whatever the order in which they are awaited. If another node
    /// has the actor by now, this activation is over and is asked to leave.
    ///
    /// # Errors
    ///
    /// [`StateError`]; its [`is_unknown`](StateError::is_unknown) says whether the state may be written all the same. The
    /// actor goes on with the state in memory, and the next save includes what this one missed.
    pub fn save<A: Persistent>(&self, actor: &A) -> Saving {
        let Inner { target, state, .. } = &*self.inner;
        let taken = A::PERSISTENCE.map(|persistence| (persistence.take)(actor));
        match (state, taken) {
            (Some(keeper), Some(taken)) if target.id.kind().as_str() == A::KIND => {
                let here = self.clone();
                keeper.save(taken).or_if_fenced(move || here.deactivate())
            }
            _ => Saving::refused(StateError::NotPersistent { kind: A::KIND }),
        }
    }

    /// The stored state of a persistent actor.
    pub(crate) fn state(&self) -> Option<&Arc<StateKeeper>> {
        self.inner.state.as_ref()
    }

    /// How long the call that is being handled may still take; `None` if it has no deadline.
    pub fn deadline(&self) -> Option<Duration> {
        remaining()
    }
}

impl fmt::Debug for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Activation").field(&self.inner.record).finish()
    }
}
