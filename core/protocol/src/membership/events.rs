//! What reaches the membership machine, what it asks for, and what it tells the rest of the node.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Member, MembershipFrame, NodeLoad};
use crate::identity::{NodeAddress, NodeId, NodeInfo};
use crate::time::Millis;

/// What reaches [`Membership`](super::Membership).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MembershipEvent {
    /// The time asked for by [`MembershipAction::WakeAt`] has come.
    Wake {
        /// A fresh random number: whom to gossip with.
        random: u64,
    },
    /// Join through these addresses as well; asked again until one answers.
    JoinThrough(Vec<NodeAddress>),
    /// The poster of a node with a session has just appeared in the directory. Its write may be old: who stands at the same
    /// address is replaced only when the node is heard.
    Announced(NodeInfo),
    /// A listing of the directory shows the poster of a node with a session, nobody knows since when.
    Listed(NodeInfo),
    /// The first listing of the directory has been handed in as a whole: a node that is alone now really is.
    DirectoryListed,
    /// The directory shows that a session has ended: the one thing that makes a member `Down` for certain.
    SessionEnded(NodeId),
    /// A frame of gossip came from a peer, or a heartbeat of somebody who is not among those present.
    Received {
        /// The peer, as the connection proved it.
        from: NodeId,
        /// What it sent.
        frame: MembershipFrame,
    },
    /// Those whom this node does not reach, as [`HeartbeatMachine::unreachable`](super::HeartbeatMachine::unreachable) says
    /// from now on.
    Unreachable(BTreeSet<NodeId>),
    /// The node's own load was measured; the counter is filled in here.
    LoadMeasured(NodeLoad),
    /// The node wants to leave.
    LeaveRequested,
    /// A leaving node owns nothing any more.
    HandedOff,
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MembershipAction {
    /// Send a frame to a member, on the control lane; a frame that cannot be sent is dropped.
    Send {
        /// To whom; [`Membership::address`](super::Membership::address) knows where.
        to: NodeId,
        /// What.
        frame: MembershipFrame,
    },
    /// Send a frame to whoever listens at an address.
    SendToAddress {
        /// Where.
        to: NodeAddress,
        /// What.
        frame: MembershipFrame,
    },
    /// Tell the heartbeats whom to watch ([`HeartbeatEvent::Nodes`](super::HeartbeatEvent::Nodes)).
    Watch {
        /// Everybody who should be there, this node among them.
        present: BTreeSet<NodeId>,
        /// Those of them who are suspected, by whomever.
        suspected: BTreeSet<NodeId>,
    },
    /// Revoke this node's session by compare-and-swap (REVOKE); asked for again while it stays necessary. If its
    /// lease has ended already, hand in [`MembershipEvent::SessionEnded`].
    Revoke(NodeId),
    /// Tell the rest of the node.
    Publish(MemberEvent),
    /// The nodes that are reachable and not down, this one among them, have changed: who monitors leases follows
    /// from it (MONITORS).
    Reachable(BTreeSet<NodeId>),
    /// This node is down for the others: its session has ended. Rejoin under a new id.
    SelfDown,
    /// This node has left as it wanted to.
    SelfLeft,
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}

/// What changed in the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberEvent {
    /// A node became known.
    MemberJoined(Member),
    /// A member takes part.
    MemberUp(Member),
    /// A member wants to go; it owns things still.
    MemberLeaving(Member),
    /// A member has handed over.
    MemberExiting(Member),
    /// A member's session has ended, or another node has its address.
    MemberDowned(Member),
    /// A member is gone; shown as it was last known. `status` tells how: `Exiting` if it left.
    MemberRemoved(Member),
    /// A member is suspected: nobody should route to it.
    Unreachable(Member),
    /// A suspected member answers again.
    ReachableAgain(Member),
    /// Another node leads, or nobody does.
    LeaderChanged(Option<NodeId>),
    /// Everybody who has a say has seen the view as it stands. Said once for each view.
    Converged,
    /// A node was not let in: the view is full, or its description too long.
    Refused(NodeId),
}
