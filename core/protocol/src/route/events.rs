//! What reaches a route, and what is to be done about it.

use alloc::vec::Vec;

use crate::identity::{Generation, NodeId};
use crate::link::{Hint, ReturnReason};
use crate::time::Millis;

/// Where a route stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteState {
    /// Messages go to the owner.
    Open {
        /// The owner.
        owner: NodeId,
        /// Its generation.
        generation: Generation,
    },
    /// The owner was told that nothing more comes, and gives back what it has not started.
    Settling {
        /// The owner.
        owner: NodeId,
        /// The generation under which it was sent to.
        generation: Generation,
    },
    /// Nobody is known to own the shard.
    Waiting {
        /// The newest generation that was known; an older place is no news.
        generation: Generation,
        /// The node that promised a notice.
        on: Option<NodeId>,
    },
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RouteEvent<M> {
    /// A message is to be sent.
    Send(M),
    /// The watched map or a notice shows where the shard is.
    Learn(Hint),
    /// A message came back unstarted, over the lane it was sent by.
    Returned {
        /// From whom.
        from: NodeId,
        /// The message.
        message: M,
        /// Whether it must not go to another node than the one it was meant for.
        local_only: bool,
        /// Why it came back.
        reason: ReturnReason,
    },
    /// The answer to [`RouteAction::SendSettle`].
    Settled {
        /// From whom.
        from: NodeId,
        /// The generation of the settle frame.
        generation: Generation,
        /// Where the shard is, as that node knows.
        hint: Option<Hint>,
    },
    /// The lane to a node is lost. The shell has ended the calls given to it; what it never gave to the transport is here.
    LaneLost {
        /// The node.
        node: NodeId,
        /// Messages for this shard that never left, in order.
        unsent: Vec<M>,
    },
    /// A node that owns nothing any more leaves. From here on the shell passes no hint on that names it.
    Bye(NodeId),
    /// The answer to [`RouteAction::LookUp`]; none if there is no owner, or no answer.
    LookedUp(Option<Hint>),
    /// The answer to [`RouteAction::CheckLane`].
    LaneChecked {
        /// The node.
        node: NodeId,
        /// Something was heard over its lane within [`SETTLE_LIMIT`](super::RouteEntry::SETTLE_LIMIT), or the settle frame still
        /// waits for what must be there before it.
        alive: bool,
    },
    /// The time asked for by [`RouteAction::WakeAt`] has come.
    WokeUp,
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RouteAction<M> {
    /// Give the message to the lane of the owner. (One that is for this node only, the shell refuses if the owner is
    /// another.)
    Deliver {
        /// To whom.
        owner: NodeId,
        /// With this generation in its head.
        generation: Generation,
        /// The message.
        message: M,
    },
    /// Send a settle frame on the lane of the owner, behind all that was delivered; also behind large messages, which do not
    /// travel on the lane itself.
    SendSettle {
        /// To whom.
        owner: NodeId,
        /// With this generation.
        generation: Generation,
    },
    /// The owner has not settled in time: find out whether its lane is alive. Answer with [`RouteEvent::LaneChecked`].
    CheckLane {
        /// To whom.
        owner: NodeId,
    },
    /// The owner did not settle, and nothing is heard of it: close the lane, and report it lost.
    CloseLane {
        /// To whom.
        owner: NodeId,
    },
    /// Ask where the shard is, linearizable, so that it is placed if it is nowhere; answer with [`RouteEvent::LookedUp`].
    LookUp,
    /// Wake the machine at this time; replaces any earlier wish. A wake-up that nobody waits for any more is harmless.
    WakeAt(Millis),
    /// The message is not sent: nothing of it was started.
    Refuse {
        /// The message.
        message: M,
        /// Why.
        why: RouteRefusal,
    },
    /// The call of this message has ended while it waited here.
    Over(M),
}

/// Why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteRefusal {
    /// As many messages wait for the shard as may.
    Full {
        /// How many.
        bound: usize,
    },
    /// It is for this one node only, and the actor is not there (`IS_LOCAL_ONLY`).
    LocalOnly,
}
