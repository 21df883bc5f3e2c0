//! A kind as an arbiter sees it, whatever the type of its actors.

use std::any::{Any, TypeId};
use std::rc::Rc;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::CarriedState;
use archipelago_protocol::message::{CodecId, MessageFlags, WireId};
use archipelago_protocol::time::Millis;

use super::job::{JobHead, WayBack};
use super::kind::Target;
use super::luggage::Luggage;
use super::seal::{Leaving, Left};
use super::shards::Shards;
use super::tally::Tallies;
use crate::arbiter::ArbiterLocal;
use crate::call::AnswerSender;
use crate::inspect::{ActorView, Listed, Wanted};
use crate::remote::{Arrived, Incoming, LargeArrived, Violation};

/// A kind, whatever its actor type.
pub(crate) trait AnyKind: Any {
    /// Queues a message that came encoded.
    fn submit_encoded(
        &self,
        target: &Target,
        head: JobHead,
        message: Encoded<'_>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError>;
    /// Queues a message that came over a lane.
    fn submit_arrived(&self, arrived: Arrived<'_>, on: &Rc<ArbiterLocal>) -> Result<(), Violation>;
    /// Queues a large message that came on a stream of its own.
    fn submit_large(&self, arrived: LargeArrived, on: &Rc<ArbiterLocal>) -> Result<(), Violation>;
    /// Which of its shards this node serves.
    fn shards(&self) -> &Shards;
    /// Takes what has not started out of the inboxes of a shard.
    fn empty_inboxes(&self, shard: u64, leaving: Leaving<'_>, on: &Rc<ArbiterLocal>) -> Left;
    /// Whether something for a shard that came by this connection has not started.
    fn has_unstarted(&self, shard: u64, incoming: &Incoming, on: &ArbiterLocal) -> bool;
    /// Whether a call belongs to work under way in a shard.
    fn is_inner(&self, shard: u64, head: &JobHead) -> bool;
    /// Asks the actors of a shard to leave once none of them has anything to do; true if all are gone.
    fn clear_out(&self, shard: u64, reason: DeactivateReason) -> bool;
    /// Whether no actor of a shard is active, or about to be, or about to end.
    fn is_vacant(&self, shard: u64) -> bool;
    /// For how long the oldest running handler of a shard has run.
    fn busy_for(&self, shard: u64, now: Millis) -> Millis;
    /// The states of its actors that go along with their shards.
    fn luggage(&self) -> &Luggage;
    /// Keeps states that came along with a shard for the actors that will begin.
    fn unload(&self, shard: u64, states: Vec<CarriedState>, now: Millis);
    /// Whether it handles the message with this number and type.
    fn takes(&self, id: WireId, message: TypeId) -> bool;
    /// What the type of a message says about it; nothing if no message has this number.
    fn flags_of(&self, id: WireId) -> MessageFlags;
    /// Queues a boxed `Job<TypedJob>` of a message that it takes.
    fn submit_boxed(
        &self,
        target: &Target,
        message: (WireId, Box<dyn Any + Send>),
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError>;
    /// Brings an actor to life without a message.
    ///
    /// # Errors
    ///
    /// Nothing was queued; the caller has been told.
    fn summon(
        &self,
        target: &Target,
        head: JobHead,
        caller: AnswerSender<()>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError>;
    /// Asks one actor to leave; nothing happens if it is not active.
    fn leave(&self, target: &Target, reason: DeactivateReason);
    /// Whether an actor is active, or about to be, or about to end.
    fn is_active(&self, target: &Target) -> bool;
    /// Asks all actors to leave.
    fn leave_all(&self, reason: DeactivateReason);
    /// Carries out activations and retirements; true if there were any.
    fn work(&self, on: &Rc<ArbiterLocal>) -> bool;
    /// Asks actors that have been idle long enough to leave.
    fn sweep_idle(&self, now: Millis);
    /// When the next actor may have been idle long enough.
    fn next_idle(&self) -> Option<Millis>;
    /// When the actor that is next to make room was last known to be used.
    fn longest_unused(&self) -> Option<Millis>;
    /// Looks at the actor that is next to make room; true if it was asked to leave.
    fn look_for_room(&self, now: Millis) -> bool;
    /// Into how many tables its actors are divided, for listings.
    fn tables(&self) -> usize;
    /// Shows some actors of one table.
    fn list(&self, wanted: &Wanted<'_>, now: Millis) -> Listed;
    /// Shows one actor, if it has a slot.
    fn view(&self, target: &Target, now: Millis) -> Option<ActorView>;
    /// What was counted of its messages.
    fn tallies(&self) -> &Tallies;
    /// How many actors have a slot.
    fn active(&self) -> usize;
    /// Refuses everything that waits, because the arbiter ends.
    fn close(&self, on: &ArbiterLocal);
}

/// A message as bytes.
pub(crate) struct Encoded<'a> {
    pub(crate) id: WireId,
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) codec: CodecId,
    pub(crate) way_back: WayBack,
}
