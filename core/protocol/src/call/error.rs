//! How a call can fail, sorted by what the caller may do next.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::identity::{ActorIdError, NodeId};

/// A text that nobody appends to.
pub type Text = Box<str>;

/// Why a call or a tell did not succeed.
///
/// Small on purpose: every reply has room for one.
///
/// The first question of a caller is whether the handler may have run: [`CallError::outcome`] answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The deadline passed. Whether the handler had started is in `started`.
    #[error("the deadline passed {}", if *.started { "after the handler had started" } else { "before the handler started" })]
    Timeout {
        /// True if the handler had started and may have had its effect.
        started: bool,
    },
    /// A bounded queue is full. Nothing was started; try again later, with less.
    #[error("the {queue} is full (bound {bound})")]
    Overloaded {
        /// Which queue refused.
        queue: Queue,
        /// Its bound.
        bound: u32,
    },
    /// The key or kind cannot name an actor.
    #[error("invalid actor id: {reason}")]
    InvalidId {
        /// What is wrong with it.
        reason: Text,
    },
    /// No actor of this kind can run here: it was never registered with the node's builder.
    #[error("kind {kind} is not registered on this node")]
    UnknownKind {
        /// The kind asked for.
        kind: Text,
    },
    /// The kind is known, but it does not handle this message.
    #[error("kind {} does not handle message {}", .0.kind, .0.message)]
    UnknownMessage(Box<UnknownMessage>),
    /// No actor is registered under this path.
    #[error("no actor is registered at {path}")]
    NoSuchActor {
        /// The path asked for.
        path: Text,
    },
    /// The ref was decoded outside a node. Bind it with `bind(&node)` first.
    #[error("the ref is not bound to a node")]
    Unbound,
    /// The ref belongs to another namespace than the node. Messages never cross namespaces.
    #[error("the ref belongs to namespace {}, this node to {}", .0.theirs, .0.ours)]
    ForeignNamespace(Box<ForeignNamespace>),
    /// The message, or its reply, could not be encoded or decoded.
    #[error("codec: {reason}")]
    Codec {
        /// What the codec said.
        reason: Text,
        /// True if it was the reply, so that the handler has run.
        started: bool,
    },
    /// The actor itself waits for this call, directly or through others: it could only hang.
    #[error("call cycle: the actor already waits for this call")]
    CallCycle,
    /// The actor could not be activated. Nothing was started.
    #[error("activation failed: {reason}")]
    ActivationFailed {
        /// What its factory or its `on_activate` said.
        reason: Text,
    },
    /// The handler panicked. Its activation is gone; the next message activates anew.
    #[error("the handler panicked")]
    Panicked,
    /// The handler started and ended without a reply: its future was dropped, or it panicked while detached.
    #[error("the handler ended without a reply")]
    NoReply,
    /// The node may not serve now: it is stopping, or its session is not live. Nothing was started.
    #[error("the node does not serve: {reason}")]
    NotServing {
        /// Why it does not.
        reason: Text,
    },
    /// The node stopped, or lost its session, while the handler ran.
    #[error("the node stopped while the handler ran")]
    Stopped,
    /// The connection to the actor's node was lost after the message had been given to it. The handler may have run.
    #[error("the connection to node {node} was lost before the answer came")]
    ConnectionLost {
        /// The node that was to handle it.
        node: NodeId,
    },
    /// No node is known that hosts the actor, or the one that does cannot be reached. Nothing was started.
    #[error("no way to the actor: {reason}")]
    NoRoute {
        /// What is missing.
        reason: Text,
    },
    /// The message may not leave its node, and its actor lives on another. Nothing was started.
    #[error("the actor lives on another node, and the message may not leave this one")]
    NotLocal,
    /// The message, or its reply, is larger than the largest that may travel.
    #[error("{} is larger than the {max} bytes that may travel", if *.started { "the reply" } else { "the message" })]
    TooLarge {
        /// The largest that may travel.
        max: u32,
        /// True if it was the reply, so that the handler has run.
        started: bool,
    },
    /// Another actor of the kind has the same hash, and this node has to do with that one at present. Nothing was started.
    #[error("actor {by} has the same hash and is in use")]
    HashTaken {
        /// The other actor.
        by: Text,
    },
    /// The actor may live in a datacenter that does not answer. Nothing was started.
    #[error("the actor was not found, and not every datacenter answers: {silent}")]
    Unreachable {
        /// The datacenters that do not, or why none was asked.
        silent: Text,
    },
}

impl CallError {
    /// Whether the handler may have had its effect.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Timeout { started } | Self::Codec { started, .. } | Self::TooLarge { started, .. } => {
                if *started {
                    Outcome::Unknown
                } else {
                    Outcome::NotStarted
                }
            }
            Self::Panicked | Self::NoReply | Self::Stopped | Self::ConnectionLost { .. } => Outcome::Unknown,
            _ => Outcome::NotStarted,
        }
    }

    /// True if the handler certainly never saw the message, so that sending it again is safe.
    pub const fn is_not_started(&self) -> bool {
        matches!(self.outcome(), Outcome::NotStarted)
    }
}

impl From<ActorIdError> for CallError {
    fn from(error: ActorIdError) -> Self {
        Self::InvalidId { reason: alloc::format!("{error}").into() }
    }
}

/// A message that a kind does not handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownMessage {
    /// The kind asked for.
    pub kind: Text,
    /// Name or wire id of the message.
    pub message: Text,
}

/// A ref used on a node of another namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignNamespace {
    /// The node's namespace.
    pub ours: Text,
    /// The ref's namespace.
    pub theirs: Text,
}

/// What a failed call means for the actor's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The handler was never called.
    NotStarted,
    /// The handler was called and may or may not have had its effect.
    Unknown,
}

/// The bounded queues that can refuse a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Queue {
    /// The inbox of the actor.
    Inbox,
    /// The table of pending calls of the actor's arbiter.
    PendingCalls,
    /// The way from other threads into the actor's arbiter.
    Ingress,
    /// The mailbox of a named actor.
    Mailbox,
    /// The lane to another node.
    Lane,
    /// What waits for an actor whose node is not known yet.
    Route,
    /// The watches of a node.
    Watches,
}

impl core::fmt::Display for Queue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Inbox => "actor's inbox",
            Self::PendingCalls => "table of pending calls",
            Self::Ingress => "arbiter's ingress queue",
            Self::Mailbox => "named actor's mailbox",
            Self::Lane => "lane to the actor's node",
            Self::Route => "queue of messages whose node is not known yet",
            Self::Watches => "book of watches",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: R450
    #[test]
    fn a_timeout_says_whether_the_handler_had_started() {
        assert!(CallError::Timeout { started: false }.is_not_started());
        assert!(!CallError::Timeout { started: true }.is_not_started());
    }

    #[test]
    fn an_answer_is_not_much_larger_than_its_reply() {
        assert!(size_of::<Result<u64, CallError>>() <= 24, "{}", size_of::<Result<u64, CallError>>());
    }

    #[test]
    fn everything_that_ended_a_running_handler_is_unknown() {
        let lost = CallError::ConnectionLost { node: NodeId::new(1) };
        for error in [CallError::Panicked, CallError::NoReply, CallError::Stopped, lost] {
            assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        }
    }
}
