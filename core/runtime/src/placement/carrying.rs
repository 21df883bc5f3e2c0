//! State that goes along with a shard, on both ends: sent ahead by the owner, kept by the target until the shard comes.
//!
//! It may be much. It becomes bytes and is read off the arbiters, whose other actors go on meanwhile.

use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};

use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::{
    HandoffFrame, HandoffFrameError, HandoffLimits, HostEvent, ParcelRoom, Part, Received, ShardName, pack,
    parcels, unpack,
};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use metrics::{counter, gauge};
use tokio::sync::oneshot;

use super::moving::{peer_at, tell_peer};
use crate::arbiter::ArbiterLocal;
use crate::env::{Oddity, within};
use crate::events::Event;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::remote::Shard;

impl ArbiterLocal {
    // ---- the owner ----

    /// What the states of a shard's actors weigh, all of which have ended; none if there are none.
    pub(super) fn state_of(&self, shard: Shard) -> Option<u64> {
        self.any_kind(shard.kind)?.luggage().weight_of(shard.number)
    }

    /// Sends the states of a shard's actors ahead. They stay here as well until the shard has gone.
    pub(super) fn send_parcels(self: &Rc<Self>, shard: Shard, to: NodeId, move_id: u64) {
        let Some(kind) = self.any_kind(shard.kind) else { return };
        let states = kind.luggage().of_shard(shard.number);
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        self.node().env().spawn(Box::pin(async move {
            let limit = HandoffLimits::DEFAULT.parcels;
            let packed = aside(&node, move || pack(&states)).await;
            let sent = match packed {
                Ok(packed) => within(node.env(), limit, deliver(&node, to, move_id, &packed)).await,
                Err(error) => Some(Err(error)),
            };
            let event = match sent {
                Some(Ok(())) => HostEvent::ParcelsAcked { move_id },
                Some(Err(error)) => {
                    tracing::debug!(%to, %error, "the state of a shard could not be sent");
                    HostEvent::ParcelsRefused { move_id }
                }
                // The machine counts the time.
                None => return,
            };
            if let Some(on) = on.upgrade() {
                on.host(shard, event);
            }
        }));
        if broken(Mutant::ParcelNoAck) {
            self.host(shard, HostEvent::ParcelsAcked { move_id });
        }
    }

    /// A shard moves without the state of its actors, although they have some.
    pub(super) fn note_cold(&self, shard: Shard) {
        if !self.any_kind(shard.kind).is_some_and(|kind| kind.luggage().has_states(shard.number)) {
            return;
        }
        counter!("archipelago_shards_moved_cold_total").increment(1);
        if let Some(ShardName { kind, number: shard }) = self.node().name_of(shard) {
            let kind = kind.as_str().to_owned();
            tracing::warn!(kind, shard, "a shard moves without the state of its actors");
            self.node().events().publish(Event::ShardMovesCold { kind, shard });
        }
    }

    // ---- the target ----

    /// The states that came ahead wait for their actors from now on.
    pub(super) fn install_parcels(&self, shard: Shard, move_id: u64) {
        let states = self.node().with_parcels(|room| room.take(move_id));
        if let (Some(states), Some(kind)) = (states, self.any_kind(shard.kind)) {
            kind.unload(shard.number, states, self.now());
            // They may be the next to be looked at.
            self.wake_main();
        }
    }

    pub(super) fn drop_parcels(&self, shard: Shard, move_id: u64) {
        if broken(Mutant::ParcelAnyMove) {
            return self.install_parcels(shard, move_id);
        }
        self.node().with_parcels(|room| room.drop_move(move_id));
    }
}

/// Sends the parts one after the other; the last answer must say that all are there.
async fn deliver(node: &Arc<NodeShared>, to: NodeId, move_id: u64, packed: &Bytes) -> Result<(), CallError> {
    let limit = HandoffLimits::DEFAULT.parcels;
    if node.env().oddly(Oddity::SlowParcel) {
        node.env().sleep(ODD_PAUSE).await;
    }
    let peer = peer_at(node, to).await?;
    let mut acked = false;
    for parcel in parcels(move_id, packed) {
        let answer = tell_peer(node, Arc::clone(&peer), &parcel, limit).await?;
        acked = answer == Some(HandoffFrame::ParcelAck { move_id });
    }
    if acked {
        Ok(())
    } else {
        Err(CallError::NoRoute { reason: "the parcels were not acknowledged".into() })
    }
}

/// Does `work` off the arbiter; an error if it fails, or panics.
async fn aside<T: Send + 'static>(
    node: &NodeShared,
    work: impl FnOnce() -> Result<T, HandoffFrameError> + Send + 'static,
) -> Result<T, CallError> {
    let (done, outcome) = oneshot::channel();
    let work = move || {
        // Whoever waits may have given up.
        let _ = done.send(work());
    };
    node.env().offload(Box::new(work)).await;
    let unreadable = |error: HandoffFrameError| CallError::NoRoute { reason: error.to_string().into() };
    outcome.await.unwrap_or(Err(HandoffFrameError::Malformed)).map_err(unreadable)
}

impl NodeShared {
    /// Takes a part of a parcel; the answer says so once all are here.
    pub(super) async fn take_parcel(
        &self,
        from: NodeId,
        move_id: u64,
        part: Part,
    ) -> Result<Option<HandoffFrame>, CallError> {
        let received = self.with_parcels(|room| room.put(from, move_id, part));
        let shard = match received {
            Ok(Received::Some) => return Ok(None),
            Ok(Received::All(shard)) => shard,
            Err(error) => {
                counter!("archipelago_parcels_refused_total").increment(1);
                return Err(CallError::NoRoute { reason: error.to_string().into() });
            }
        };
        self.read_parcels(shard, move_id).await?;
        let (noted, done) = oneshot::channel();
        self.enter_work(self.arbiter_of_shard(shard.number), move |on| {
            on.host(shard, HostEvent::ParcelsArrived { move_id });
            // The sender may have given up.
            let _ = noted.send(());
        })?;
        // The acknowledgement is given once the shard's own machine knows.
        done.await.map_err(|_| crate::arbiter::not_serving("it has stopped"))?;
        Ok(Some(HandoffFrame::ParcelAck { move_id }))
    }

    /// Reads what came ahead, all of which is here. Then the shard need not wait for that when it comes.
    async fn read_parcels(&self, shard: Shard, move_id: u64) -> Result<(), CallError> {
        let Some(parts) = self.with_parcels(|room| room.parts(move_id)) else { return Ok(()) };
        let states = aside(self, move || unpack(&parts.concat())).await;
        let states = states.inspect_err(|error| {
            tracing::error!(kind = shard.kind, shard = shard.number, %error, "state that came along is unreadable");
        })?;
        self.with_parcels(|room| room.was_read(move_id, states));
        Ok(())
    }

    /// Looks at the parcels that came ahead, or changes them.
    pub(super) fn with_parcels<T>(&self, with: impl FnOnce(&mut ParcelRoom<Shard>) -> T) -> T {
        let mut room: MutexGuard<'_, _> = self.parcels().lock().unwrap_or_else(PoisonError::into_inner);
        let result = with(&mut room);
        gauge!("archipelago_parcel_bytes").set(room.bytes() as f64);
        result
    }
}

/// How long parcels are held up where an environment has that happen.
const ODD_PAUSE: Millis = Millis(600);
