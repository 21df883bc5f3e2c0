//! What happens in a node, for whoever wants to know: bounded, and never in the way of the work.

use std::fmt;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{Epoch, TableVersion};
use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::handoff::HandOffOutcome;
use archipelago_protocol::identity::{Generation, NodeAddress, NodeId, NodeInfo};
use archipelago_protocol::membership::MemberEvent;
use archipelago_protocol::ranges::KeyRange;
use tokio::sync::broadcast;

use crate::inspect::Letters;

/// Something that happened in the node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The node serves.
    NodeStarted {
        /// Its id.
        node: NodeId,
    },
    /// The node takes no new work and finishes what it has.
    NodeStopping {
        /// Its id.
        node: NodeId,
    },
    /// The node has a session: it may own actors under this id from now on.
    SessionOpened {
        /// Its id.
        node: NodeId,
    },
    /// The node's session is over: nothing is handled any more under this id.
    SessionLost {
        /// Its id.
        node: NodeId,
        /// Why, in words.
        reason: String,
    },
    /// The node is back after it had lost its session, under a new id; nothing of the earlier life runs.
    Rejoined {
        /// Its id before.
        before: NodeId,
        /// Its id now.
        now: NodeId,
    },
    /// Handlers block their threads past the fence of a node that has lost its session, and `fence.on_stuck` says to report
    /// it. They may have effects while others serve the same actors. The node comes back when they have returned.
    ArbitersStuck {
        /// The id of the life that does not end.
        node: NodeId,
        /// How many of its arbiters are stuck.
        arbiters: usize,
    },
    /// A node has announced itself.
    MemberJoined {
        /// What it says about itself.
        member: NodeInfo,
    },
    /// A node has left, or its session has ended.
    MemberGone {
        /// What it said about itself.
        member: NodeInfo,
    },
    /// The view of the cluster has changed.
    Membership(MemberEvent),
    /// Another node's session has ended, for ever: what it owned is free.
    SessionEnded {
        /// That node.
        node: NodeId,
    },
    /// An actor went and its state could not be saved within `actors.deactivate_timeout`: what it did since the last save is
    /// lost.
    StateNotSaved {
        /// The actor's id, as text.
        actor: String,
        /// Why, in words.
        reason: String,
    },
    /// The state of an actor did not go along when its shard moved, or could not be taken in: the actor starts without it.
    StateNotCarried {
        /// The actor's id, as text.
        actor: String,
        /// Why, in words.
        reason: String,
    },
    /// A shard of this node moves without the state of its actors, because it is too large or was not acknowledged in time.
    ShardMovesCold {
        /// The kind of its actors.
        kind: String,
        /// Its number.
        shard: u32,
    },
    /// More actors are active than `actors.max_active`, and a look at the least recently used found too few that could go at once.
    /// They are served all the same, and go when they can.
    ActorsOverBound {
        /// How many are active on the node, roughly.
        active: usize,
        /// How many may be.
        bound: usize,
    },
    /// A shard that this node serves is offered to another.
    ShardMoving {
        /// The kind of its actors.
        kind: String,
        /// Its number.
        shard: u32,
        /// The generation that is to move.
        generation: Generation,
        /// To whom.
        to: NodeId,
    },
    /// A shard of this node has another owner now.
    ShardMoved {
        /// The kind of its actors.
        kind: String,
        /// Its number.
        shard: u32,
        /// The generation under which the other node owns it.
        generation: Generation,
        /// That node.
        to: NodeId,
    },
    /// A move has come to nothing, or the shard was given up: the outcome says why.
    ShardStays {
        /// The kind of its actors.
        kind: String,
        /// Its number.
        shard: u32,
        /// What became of the order.
        outcome: HandOffOutcome,
    },
    /// The ranges of a kind are divided otherwise from now on, or belong to other nodes, as far as this node knows.
    RangesChanged {
        /// The kind.
        kind: String,
        /// Counts the tables of the kind.
        version: TableVersion,
        /// How many ranges there are.
        ranges: usize,
    },
    /// This node runs the actors of a range.
    RangeServed {
        /// The kind of its actors.
        kind: String,
        /// The name of the range.
        partition: String,
        /// Its keys.
        range: KeyRange,
        /// The generation under which this node owns it.
        generation: Generation,
    },
    /// This node has given a range up.
    RangeGivenUp {
        /// The kind of its actors.
        kind: String,
        /// The name of the range.
        partition: String,
        /// For ever, because it was divided or merged; otherwise for another node.
        retired: bool,
    },
    /// A message that nobody waits for could not be delivered.
    DeadLetter(DeadLetter),
    /// A message that nobody waits for could not be delivered to the node of its actor.
    RemoteDeadLetter(RemoteDeadLetter),
    /// A connection to another node stands.
    PeerConnected {
        /// The other node.
        node: NodeId,
    },
    /// A connection to another node is gone, or could not be made; it is tried again.
    PeerDisconnected {
        /// The other node.
        node: NodeId,
        /// Why, in words.
        reason: String,
    },
    /// Another node does not fit, or is not trusted, or does not trust this one.
    PeerRefused {
        /// Where it is, if known.
        address: Option<NodeAddress>,
        /// Why, in words.
        reason: String,
    },
    /// A datacenter takes part in routing and placement.
    DataCenterUp {
        /// Which one; this node's own among them.
        datacenter: DataCenterId,
    },
    /// A datacenter finishes what it has and takes no new actors.
    DataCenterDraining {
        /// Which one.
        datacenter: DataCenterId,
    },
    /// A datacenter takes part no longer: it was shut down, or its lease has ended.
    DataCenterDown {
        /// Which one.
        datacenter: DataCenterId,
    },
    /// The control plane has not answered for too long: the datacenters are what was known before.
    DataCentersStale,
    /// The control plane answers again.
    DataCentersFresh,
    /// This node speaks for its datacenter from now on.
    ControllerTaken {
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Another node of the datacenter does.
    ControllerLost {
        /// Under which epoch.
        by: Epoch,
    },
    /// Somebody who operates the node has done something through its admin API, or was refused.
    Operated {
        /// What was asked for.
        act: String,
        /// On what.
        subject: String,
        /// What came of it.
        outcome: String,
    },
    /// Another node will not come back.
    PeerGone {
        /// The other node.
        node: NodeId,
    },
}

/// A message that was not delivered to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDeadLetter {
    /// The node that was to get it; none if it was not known where the actor lives.
    pub node: Option<NodeId>,
    /// What is known of the message.
    pub letter: DeadLetter,
}

/// A message that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Whom it was for, as text.
    pub target: String,
    /// The name of the message.
    pub message: String,
    /// Why it was not delivered.
    pub reason: CallError,
}

/// Where events are published.
///
/// A subscriber that falls behind loses the oldest events and is told how many; publishing never waits.
#[derive(Clone)]
pub struct EventStream {
    sender: broadcast::Sender<Event>,
    letters: Letters,
}

impl EventStream {
    /// A stream whose subscribers may be `bound` events behind.
    pub(crate) fn new(bound: usize) -> Self {
        Self { sender: broadcast::channel(bound.max(1)).0, letters: Letters::default() }
    }

    /// Gets every event from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe() }
    }

    /// The last messages that could not be delivered.
    pub(crate) const fn letters(&self) -> &Letters {
        &self.letters
    }

    pub(crate) fn publish(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.sender.send(event);
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("subscribers", &self.sender.receiver_count()).finish()
    }
}

/// One listener of an [`EventStream`].
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<Event>,
}

/// What a subscriber gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The next event.
    Event(Event),
    /// The subscriber was too slow: this many events are lost to it.
    Missed(u64),
}

impl Subscription {
    /// Waits for the next event; `None` when the node is gone.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.receiver.recv().await {
            Ok(event) => Some(Notice::Event(event)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Notice::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Notice> {
        match self.receiver.try_recv() {
            Ok(event) => Some(Notice::Event(event)),
            Err(broadcast::error::TryRecvError::Lagged(count)) => Some(Notice::Missed(count)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(n: u64) -> Event {
        Event::NodeStarted { node: NodeId::new(n) }
    }

    /// Proves: R485
    #[test]
    fn every_subscriber_gets_every_event_in_order() {
        let stream = EventStream::new(8);
        let mut both = [stream.subscribe(), stream.subscribe()];
        stream.publish(started(1));
        stream.publish(started(2));
        for subscriber in &mut both {
            assert_eq!(subscriber.try_next(), Some(Notice::Event(started(1))));
            assert_eq!(subscriber.try_next(), Some(Notice::Event(started(2))));
            assert_eq!(subscriber.try_next(), None);
        }
    }

    #[test]
    fn a_slow_subscriber_loses_the_oldest_and_is_told() {
        let stream = EventStream::new(2);
        let mut slow = stream.subscribe();
        for n in 1..=5 {
            stream.publish(started(n));
        }
        assert_eq!(slow.try_next(), Some(Notice::Missed(3)));
        assert_eq!(slow.try_next(), Some(Notice::Event(started(4))));
    }
}
