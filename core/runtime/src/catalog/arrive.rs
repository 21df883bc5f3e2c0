//! The way of a message from another node into its actor.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::Generation;
use archipelago_protocol::link::Head;
use archipelago_protocol::message::Codec;
use archipelago_protocol::time::Millis;

use super::job::{JobHead, WayBack};
use super::kind::{KindCatalog, Target};
use super::messages::Entry;
use super::slot::Slot;
use crate::arbiter::ArbiterLocal;
use crate::call::CallScope;
use crate::env::COARSE_LAG;
use crate::message::VirtualActor;
use crate::refs::decoding;
use crate::remote::{Arrived, Violation};

impl<A: VirtualActor> KindCatalog<A> {
    /// Queues a message that came over a lane, if its actor lives here. What is wrong with it its sender is told.
    pub(super) fn arrive(&self, arrived: Arrived<'_>, on: &Rc<ArbiterLocal>) -> Result<(), Violation> {
        let Arrived { head, payload, way_back } = arrived;
        let key = head.key.as_str();
        let hash = self.shared().hash_of(key);
        if on.node().arbiter_of(hash) != on.index() {
            return Err(Violation::Meaning("a message is not for this arbiter".to_owned()));
        }
        let Some(entry) = self.messages().at(head.message.into()) else {
            return Err(Violation::Meaning(format!("no message has number {}", head.message)));
        };
        let (asks, mut way_back) = (way_back.asks(), WayBack::Lane(way_back));
        // Nobody is activated for a message that cannot be read.
        let queued = match self.job(entry, &head, asks, payload, &mut way_back, on) {
            Ok(job) => self.queue(hash, key, job, on),
            Err(error) => Err(way_back.refuse(error, on)),
        };
        if let Err(error) = queued
            && !asks
        {
            let target = format!("{}::{}/{}", on.node().namespace(), self.shared().name(), head.key);
            on.node().dead_letter(target, entry.name, &error);
        }
        Ok(())
    }

    /// Whether messages sent to the owner of this generation are for us. Zero: the sender does not count.
    pub(super) fn accepts(&self, generation: Generation) -> bool {
        self.shared().is_here()
            && (generation == Generation::new(0) || generation == self.shared().generation())
    }

    fn queue(
        &self,
        hash: u64,
        key: &str,
        mut job: super::Queued<A>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        match self.slot_for(hash, key, &job.head, on) {
            Ok(slot) => self.submit_to(slot, job, on),
            Err(error) => {
                job.body.fail(error.clone(), on);
                Err(error)
            }
        }
    }

    fn slot_for(
        &self,
        hash: u64,
        key: &str,
        head: &JobHead,
        on: &Rc<ArbiterLocal>,
    ) -> Result<Rc<Slot<A>>, CallError> {
        if let Some(slot) = self.find(hash, key) {
            return Ok(slot);
        }
        let id = on.node().namespace().actor_id_of(self.shared().kind(), key)?;
        self.new_slot(&Target { id, hash }, head, on)
    }

    fn job(
        &self,
        entry: &Entry<A>,
        head: &Head<'_>,
        asks: bool,
        payload: &[u8],
        way_back: &mut WayBack,
        on: &Rc<ArbiterLocal>,
    ) -> Result<super::Queued<A>, CallError> {
        let codec = Codec::from_id(head.codec)
            .map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })?;
        let head = job_head(head, asks, entry, on);
        decoding(on.node(), || entry.decode(head, payload, codec, way_back))
    }
}

fn job_head<A: VirtualActor>(head: &Head<'_>, asks: bool, entry: &Entry<A>, on: &ArbiterLocal) -> JobHead {
    let deadline = head.ttl.map_or(Millis::MAX, |ttl| on.coarse() + COARSE_LAG + ttl);
    let inside = !head.chain.is_empty();
    let scope = (inside || head.trace.is_some())
        .then(|| Arc::new(CallScope { deadline: Some(deadline), trace: head.trace, chain: head.chain }));
    JobHead { call: None, asks, remote: true, inside, deadline, flags: head.flags | entry.flags, scope }
}
