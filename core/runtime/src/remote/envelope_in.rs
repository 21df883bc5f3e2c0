//! What comes for named actors: found by its path, handed through its actor's door.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, ForeignNamespace};
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::message::{
    CallChain, Envelope, Extensions, Leg, MessageFlags, Target, TypeHint, wire_id,
};
use bytes::Bytes;

use super::data::{LaneWay, PER_JOB};
use super::drive::Violation;
use super::envelopes::MessageEnvelope;
use super::incoming::{Held, Incoming};
use super::lane::Lane;
use crate::arbiter::ArbiterLocal;
use crate::named::{Arrival, name_of};

impl Arrival {
    /// What it takes of a window.
    fn size(&self) -> usize {
        self.envelope.payload.len() + PER_JOB
    }

    /// The same with the way back of its reply; the sender's room for it is taken while it lives.
    fn from(self, held: Held, call: Option<CorrelationId>) -> Self {
        Self { way_back: Some(LaneWay::new(held, call)), ..self }
    }
}

impl ArbiterLocal {
    /// Takes an envelope that came over a lane.
    ///
    /// # Errors
    ///
    /// It is none, or not for this node.
    pub(super) fn take_envelope(
        self: &Rc<Self>,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        bytes: &Bytes,
    ) -> Result<(), Violation> {
        let (call, arrival) = self.addressed(bytes)?;
        if let Some(call) = call {
            let opened = lane.inbound().borrow_mut().open(call);
            opened.map_err(|fault| Violation::Meaning(fault.to_string()))?;
        }
        let held = Held::take(incoming, arrival.size());
        self.hand_over(arrival.from(held, call));
        Ok(())
    }

    /// The same for one that came on a stream of its own; its call is open since its place was there.
    ///
    /// # Errors
    ///
    /// As [`take_envelope`](Self::take_envelope).
    pub(super) fn take_large_envelope(
        self: &Rc<Self>,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        announced: Option<CorrelationId>,
        bytes: &Bytes,
    ) -> Result<(), Violation> {
        let (call, arrival) = self.addressed(bytes)?;
        if call != announced {
            return Err(Violation::Meaning("a large message is of another call than its place".to_owned()));
        }
        // Its caller may have gone while it was on its way.
        if call.is_none_or(|call| !lane.inbound().borrow().is_cancelled(call)) {
            let held = Held::take_large(incoming, arrival.size());
            self.hand_over(arrival.from(held, call));
        }
        Ok(())
    }

    /// The envelope in `bytes`, and the call that waits.
    fn addressed(&self, bytes: &Bytes) -> Result<(Option<CorrelationId>, Arrival), Violation> {
        let meaning = |what: &str| Violation::Meaning(what.to_owned());
        let envelope = Envelope::decode(bytes).map_err(|error| Violation::Meaning(error.to_string()))?;
        if envelope.target_node != self.node().id() {
            return Err(meaning("an envelope is for another node"));
        }
        let (call, path) = match &envelope.leg {
            Leg::Request { correlation, target: Target::Path(path), .. } => {
                (Some(*correlation), path.clone())
            }
            Leg::OneWay { target: Target::Path(path), .. } => (None, path.clone()),
            _ => return Err(meaning("an envelope is not for a named actor")),
        };
        Ok((call, Arrival { envelope, path, way_back: None }))
    }

    /// Takes an envelope that was sent on this very node.
    pub(super) fn take_own(self: &Rc<Self>, message: MessageEnvelope) {
        let MessageEnvelope { target: path, sender, type_hint, codec, payload } = message;
        let (target, sender) = (Target::Path(path.clone()), sender.map(Target::Path));
        let envelope = Envelope {
            leg: Leg::OneWay { ttl: None, target, sender },
            target_node: self.node().id(),
            sender_node: self.node().id(),
            message: wire_id(&type_hint),
            type_hint: TypeHint::new(&type_hint).ok(),
            flags: MessageFlags::empty(),
            codec,
            trace: None,
            chain: CallChain::empty(),
            extensions: Extensions::new(),
            payload,
        };
        self.hand_over(Arrival { envelope, path, way_back: None });
    }

    fn hand_over(self: &Rc<Self>, arrival: Arrival) {
        let ours = self.node().namespace().as_str();
        if arrival.path.system() != ours {
            let theirs = arrival.path.system().into();
            let foreign = Box::new(ForeignNamespace { ours: ours.into(), theirs });
            return self.turn_away(arrival, CallError::ForeignNamespace(foreign));
        }
        let refused = match self.node().named().door(arrival.path.path()) {
            Some(door) => door.arrive(arrival, self),
            None => match self.offer_to_subscribers(arrival) {
                None => Ok(()),
                Some(arrival) => {
                    let path = arrival.path.to_uri().into();
                    Err(Box::new((arrival, CallError::NoSuchActor { path })))
                }
            },
        };
        if let Err(refused) = refused {
            let (arrival, error) = *refused;
            self.turn_away(arrival, error);
        }
    }

    /// Tells the sender, if it waits; a message to nobody, or that nobody waits for, is a dead letter here.
    fn turn_away(&self, arrival: Arrival, error: CallError) {
        let asks = arrival.way_back.as_ref().is_some_and(LaneWay::asks);
        if !asks || matches!(error, CallError::NoSuchActor { .. }) {
            self.node().dead_letter(arrival.path.to_uri(), &name_of(&arrival.envelope), &error);
        }
        if let Some(way_back) = arrival.way_back {
            way_back.fail(error, self);
        }
    }
}
