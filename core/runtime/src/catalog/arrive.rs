//! The way of a message from another node into its actor.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::link::Head;
use archipelago_protocol::time::Millis;
use tokio::sync::oneshot;

use super::job::{JobHead, WayBack};
use super::kind::{KindCatalog, Target};
use super::messages::Entry;
use super::slot::Slot;
use crate::arbiter::ArbiterLocal;
use crate::call::CallScope;
use crate::env::COARSE_LAG;
use crate::message::VirtualActor;
use crate::refs::decoding;
use crate::remote::{Arrived, LargeArrived, Violation};

impl<A: VirtualActor> KindCatalog<A> {
    /// Queues a message that came over a lane, if its actor lives here. What is wrong with it its sender is told.
    pub(super) fn arrive(&self, arrived: Arrived<'_>, on: &Rc<ArbiterLocal>) -> Result<(), Violation> {
        let Arrived { head, payload, now, way_back } = arrived;
        let key = head.key.as_str();
        let (hash, entry) = self.addressee(head, on)?;
        let (asks, mut way_back) = (way_back.asks(), WayBack::Lane(way_back));
        // Nobody is activated for a message that cannot be read.
        let queued = match self.job(entry, (head, now), asks, payload, &mut way_back, on) {
            Ok(job) => self.queue(hash, key, job, on),
            Err(error) => Err(way_back.refuse(error, on)),
        };
        if let Err(error) = queued
            && !asks
        {
            self.dead(head, entry.name, &error, on);
        }
        Ok(())
    }

    /// The hash of the actor that a message is for, and the message.
    fn addressee(&self, head: &Head<'_>, on: &ArbiterLocal) -> Result<(u64, &Entry<A>), Violation> {
        let hash = self.shared().hash_of(head.key.as_str());
        let shard = self.shared().shard_of(hash);
        if on.node().arbiter_of_shard(shard) != on.index() {
            return Err(Violation::Meaning("a message is not for this arbiter".to_owned()));
        }
        let entry = self.messages().at(head.message.into());
        let entry =
            entry.ok_or_else(|| Violation::Meaning(format!("no message has number {}", head.message)))?;
        if head.shard.number != shard {
            let theirs = head.shard.number;
            return Err(Violation::Meaning(format!(
                "a message names shard {theirs}, its actor is in {shard}"
            )));
        }
        Ok((hash, entry))
    }

    /// Decodes a large message off the arbiter and queues it then. Later messages of its sender to the same actor wait
    /// on the sender's side until that is done.
    pub(super) fn arrive_large(&self, arrived: LargeArrived, on: &Rc<ArbiterLocal>) -> Result<(), Violation> {
        let (head, payload) = arrived.message()?;
        let (_, entry) = self.addressee(&head, on)?;
        let taken = self.takes_in(&head, on);
        if !taken {
            let expires = head.ttl.map_or(Millis::MAX, |ttl| on.coarse() + ttl);
            on.not_taken(&head, expires);
        }
        if !arrived.may_enter(head.shard, taken, on) {
            return Ok(());
        }
        let (decode, name, codec) = (entry.decoder(), entry.name, head.codec);
        let job = job_head((&head, on.coarse()), arrived.call.is_some(), entry);
        let mut way_back = WayBack::Lane(arrived.way_back());
        let (done, decoded) = oneshot::channel();
        let node = Arc::clone(on.node());
        let work = move || {
            let result = decoding(&node, || decode(job, &payload, codec, &mut way_back, None));
            // Nobody waits if the node has stopped.
            drop(done.send((result, way_back)));
        };
        let (on, index, env) = (Rc::clone(on), self.index(), Arc::clone(on.node().env()));
        env.clone().spawn(Box::pin(async move {
            env.offload(Box::new(work)).await;
            let decoded = decoded.await;
            match on.kind::<A>(index) {
                Some(kind) => kind.large_decoded(&arrived, name, decoded.ok(), &on),
                None => arrived.done(),
            }
            // To give so much memory back takes milliseconds.
            let frame = arrived.frame;
            env.offload(Box::new(move || drop(frame))).await;
        }));
        Ok(())
    }

    /// A large message is readable now, or it will never be. If its connection has ended meanwhile it does not start: its
    /// sender has sent others after it by now.
    fn large_decoded(
        &self,
        arrived: &LargeArrived,
        name: &'static str,
        decoded: Option<(Result<super::Queued<A>, CallError>, WayBack)>,
        on: &Rc<ArbiterLocal>,
    ) {
        let Ok((head, _)) = arrived.message() else { return };
        if !arrived.is_connected() {
            if arrived.call.is_none() {
                self.dead(&head, name, &arrived.connection_lost(), on);
            }
            return;
        }
        if !arrived.may_enter(head.shard, self.takes_in(&head, on), on) {
            return;
        }
        let queued = match decoded {
            Some((Ok(job), _)) => {
                self.queue(self.shared().hash_of(head.key.as_str()), head.key.as_str(), job, on)
            }
            Some((Err(error), way_back)) => Err(way_back.refuse(error, on)),
            None => Err(WayBack::Lane(arrived.way_back()).refuse(unreadable("decoding panicked"), on)),
        };
        arrived.done();
        if let (Err(error), None) = (queued, arrived.call) {
            self.dead(&head, name, &error, on);
        }
    }

    /// Whether a large message is for us.
    fn takes_in(&self, head: &Head<'_>, on: &ArbiterLocal) -> bool {
        self.shards().serves(head.shard.number, head.generation, head.key.as_str()) && !on.turns_away(head)
    }

    fn dead(&self, head: &Head<'_>, message: &str, error: &CallError, on: &ArbiterLocal) {
        let target = format!("{}::{}/{}", on.node().namespace(), self.shared().name(), head.key);
        on.node().dead_letter(target, message, error);
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
        (head, now): (&Head<'_>, Millis),
        asks: bool,
        payload: &[u8],
        way_back: &mut WayBack,
        on: &Rc<ArbiterLocal>,
    ) -> Result<super::Queued<A>, CallError> {
        let (codec, head) = (head.codec, job_head((head, now), asks, entry));
        decoding(on.node(), || entry.decode(head, payload, codec, way_back, self.kept_job()))
    }
}

fn unreadable(why: impl ToString) -> CallError {
    CallError::Codec { reason: why.to_string().into(), started: false }
}

/// `now` is by the coarse clock.
fn job_head<A: VirtualActor>((head, now): (&Head<'_>, Millis), asks: bool, entry: &Entry<A>) -> JobHead {
    let deadline = head.ttl.map_or(Millis::MAX, |ttl| now + COARSE_LAG + ttl);
    let inside = !head.chain.is_empty();
    let scope = (inside || head.trace.is_some())
        .then(|| Arc::new(CallScope { deadline: Some(deadline), trace: head.trace, chain: head.chain }));
    JobHead { call: None, asks, remote: true, inside, deadline, flags: head.flags | entry.flags, scope }
}
