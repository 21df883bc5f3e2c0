//! The session of a node: whether it may own anything, and for how long.

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;

use crate::node::Node;
use crate::session::SessionState;

/// How the present session of a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionView {
    /// The id under which the node owns what it owns: drawn anew for every session.
    pub node: NodeId,
    /// Where it stands.
    pub standing: SessionStanding,
    /// How long work may still start if no further beat is confirmed.
    pub serving_for: Millis,
    /// How long it lives without a beat.
    pub ttl: Millis,
    /// How often it beats.
    pub heartbeat: Millis,
    /// Whether the node stops, or has stopped.
    pub stopping: bool,
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionStanding {
    /// Not confirmed yet.
    Opening,
    /// Confirmed.
    Live,
    /// About to be closed.
    Closing,
    /// Closed by the node itself.
    Closed,
    /// Gone for ever, for this reason.
    Lost(String),
}

impl SessionView {
    /// Whether the node takes work.
    pub fn is_ready(&self) -> bool {
        self.standing == SessionStanding::Live && self.serving_for > Millis::ZERO && !self.stopping
    }
}

impl Node {
    /// How the node's session stands now.
    pub fn session(&self) -> SessionView {
        let node = self.shared();
        let standing = node.session().read(|state| match state {
            SessionState::Opening => SessionStanding::Opening,
            SessionState::Live => SessionStanding::Live,
            SessionState::Closing => SessionStanding::Closing,
            SessionState::Closed => SessionStanding::Closed,
            SessionState::Lost(reason) => SessionStanding::Lost(reason.clone()),
        });
        SessionView {
            node: node.id(),
            standing,
            serving_for: node.gate().remaining(node.env().now()),
            ttl: node.settings().session_ttl,
            heartbeat: node.settings().session_heartbeat,
            stopping: node.is_stopping(),
        }
    }
}

impl Node {
    /// Notes what somebody who operates the node has asked for, and what came of it: in the log, and as
    /// [`Event::Operated`](crate::Event::Operated).
    pub fn note_operated(&self, act: &str, subject: &str, outcome: &str) {
        self.shared().operated(act, subject, outcome);
    }
}
