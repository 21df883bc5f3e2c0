//! Why a node did not start, or did not stop cleanly.

use archipelago_protocol::contract::DirectoryError;
use archipelago_protocol::identity::ActorIdError;
use archipelago_protocol::placement::KindLayout;

use crate::env::EnvironmentError;

/// The node did not start; nothing of it runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The namespace is not a valid one.
    #[error("invalid namespace: {0}")]
    Namespace(#[source] ActorIdError),
    /// A kind's name is not a valid one.
    #[error("invalid kind {kind}: {source}")]
    Kind {
        /// The name.
        kind: String,
        /// What is wrong with it.
        source: ActorIdError,
    },
    /// Two actor types were registered under one kind.
    #[error("kind {kind} is registered twice")]
    KindTwice {
        /// The kind.
        kind: String,
    },
    /// Two messages have the same number on the wire.
    #[error("messages {first} and {second} have the same wire id: give one of them another name")]
    MessageClash {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// The cluster divides a kind in another way: its nodes would own the same actors under different keys.
    #[error("kind {kind} has {ours} here, but {theirs} in this cluster: all nodes must divide a kind alike")]
    Layout {
        /// The kind.
        kind: String,
        /// What this node was told.
        ours: KindLayout,
        /// What the directory has.
        theirs: KindLayout,
    },
    /// Actors of the kind are known to their own datacenter alone, and the kind was given a reach beyond that.
    #[error(
        "kind {kind} is divided into {layout}, which no other datacenter finds: its reach can only be local"
    )]
    ReachNotLocal {
        /// The kind.
        kind: String,
        /// How it is divided.
        layout: KindLayout,
    },
    /// An actor keeps its state and there is no store to keep it in.
    #[error("kind {kind} is persistent, and the node has no state store")]
    NoStateStore {
        /// The kind.
        kind: String,
    },
    /// A light client was told to host actors.
    #[error("a light client hosts nothing, and kind {kind} is registered to be hosted: use remote_actor")]
    ClientHosts {
        /// The kind.
        kind: String,
    },
    /// None of the contacts of a light client answered.
    #[error("no contact answers: {reason}")]
    NoContact {
        /// What the last one said, or why it could not be asked.
        reason: String,
    },
    /// The environment has no place to run the node.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The directory did not grant a session or the node's kinds.
    #[error("the directory refused the node: {0}")]
    Directory(#[from] DirectoryError),
    /// The session was lost before the node could start.
    #[error("no session: {reason}")]
    Session {
        /// Why, in words.
        reason: String,
    },
    /// The node cannot be reached where it was told to listen.
    #[error("the transport did not open: {reason}")]
    Transport {
        /// Why, in words.
        reason: String,
    },
    /// An arbiter ended before it could start.
    #[error("arbiter {role} did not start")]
    Arbiter {
        /// Which one.
        role: String,
    },
}

/// The node stopped, but not everything ended well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// The budget ran out before the work did; what was left was cancelled, its callers got an error.
    #[error("{jobs} messages and {actors} actors were not finished within the budget")]
    Unfinished {
        /// Messages that were waiting or being handled.
        jobs: usize,
        /// Actors whose deactivation had not ended.
        actors: usize,
    },
    /// The session was lost while the node ran.
    #[error("the node lost its session: {reason}")]
    SessionLost {
        /// Why, in words.
        reason: String,
    },
    /// `stop` was called twice.
    #[error("the node is being stopped already")]
    Twice,
    /// The thread that asks belongs to no actix system, so there is nowhere to stop from. Nothing was begun.
    #[error("no actix system runs on this thread")]
    NoSystem,
    /// The actix system was stopped before the node, and its arbiters with it: nothing could be handed over, no hook ran, and what
    /// the node owned becomes free when its session runs out. A web server of actix does that when it listens for signals itself:
    /// see [`Node::run_closing`](crate::Node::run_closing).
    #[error(
        "the actix system was stopped before the node; a web server must not listen for signals itself: disable_signals()"
    )]
    SystemStopped,
    /// The process could not listen for SIGINT and SIGTERM.
    #[error("cannot listen for signals: {reason}")]
    Signals {
        /// What the system said.
        reason: String,
    },
}
