//! What all threads of a node share.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};

use actix::Addr;
use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{ControlPlane, Directory, Homes, StateStore};
use archipelago_protocol::handoff::ParcelRoom;
use archipelago_protocol::identity::{Kind, Namespace, NodeId};
use archipelago_protocol::message::TraceContext;
use archipelago_protocol::time::Millis;
use metrics::{counter, gauge};

use super::{Gate, KindShared, Lives};
use crate::arbiter::{ArbiterLocal, ArbiterShared, Entry, local};
use crate::call::{CallScope, TraceBridge};
use crate::catalog::Target;
use crate::client::ContactList;
use crate::cluster::Members;
use crate::datacenter::{DataCenterController, Maps, RoundTrips, Searches};
use crate::env::{Environment, Shown};
use crate::events::{DeadLetter, Event, EventStream, RemoteDeadLetter};
use crate::named::NamedActors;
use crate::placement::ShardCoordinator;
use crate::ranges::Ranges;
use crate::remote::{Peer, Remoting, Services, Shard};
use crate::session::SessionState;
use crate::settings::NodeSettings;
use crate::tables::TableBoard;
use crate::watch::Watches;

/// The shared part of one life of a node; every handle and ref points to one.
pub(crate) struct NodeShared {
    pub(super) id: NodeId,
    pub(super) namespace: Namespace,
    pub(super) settings: NodeSettings,
    pub(super) env: Arc<dyn Environment>,
    /// When this life began.
    pub(super) born: Millis,
    pub(super) traces: Option<Arc<dyn TraceBridge>>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) states: Option<Arc<dyn StateStore>>,
    pub(super) contacts: Option<Arc<ContactList>>,
    pub(super) tables: TableBoard,
    pub(super) ranges: Ranges,
    pub(super) kinds: Vec<Arc<KindShared>>,
    pub(super) kinds_by_name: BTreeMap<Kind, u32>,
    pub(super) arbiters: Vec<ArbiterShared>,
    pub(super) gate: Gate,
    pub(super) session: Shown<SessionState>,
    pub(super) events: EventStream,
    pub(super) named: Arc<NamedActors>,
    pub(super) remoting: Remoting,
    pub(super) members: Members,
    pub(super) services: Services,
    pub(super) watches: Watches,
    /// The state that came ahead of shards.
    pub(super) parcels: Mutex<ParcelRoom<Shard>>,
    pub(super) datacenters: Arc<Maps>,
    pub(super) searches: Searches,
    pub(super) round_trips: RoundTrips,
    pub(super) homes: Option<Arc<dyn Homes>>,
    pub(super) control_plane: Option<Arc<dyn ControlPlane>>,
    /// The actor that speaks with the control plane, once it runs.
    pub(super) controller: OnceLock<Addr<DataCenterController>>,
    /// The actor that looks after shards, once it runs.
    pub(super) coordinator: OnceLock<Addr<ShardCoordinator>>,
    pub(super) lives: Arc<Lives>,
    /// The life after this one, once it has begun.
    pub(super) successor: OnceLock<Arc<NodeShared>>,
}

/// The arbiter, of `count`, that hosts the actors of a shard: the same on every node.
pub(crate) fn arbiter_of_shard(count: usize, shard: u64) -> u16 {
    u16::try_from(shard % (count.max(1) as u64)).unwrap_or(0)
}

impl NodeShared {
    /// The shard of the actor of a kind.
    pub(crate) fn shard(&self, kind: u32, hash: u64) -> Shard {
        Shard::home(kind, self.kinds.get(kind as usize).map_or(0, |kind| kind.shard_of(hash)))
    }

    /// The arbiter that hosts the actor of a kind.
    pub(crate) fn arbiter_of(&self, kind: u32, hash: u64) -> u16 {
        self.arbiter_of_shard(self.shard(kind, hash).number)
    }

    /// The arbiter that hosts the actors of a shard.
    pub(crate) fn arbiter_of_shard(&self, shard: u64) -> u16 {
        arbiter_of_shard(self.arbiters.len(), shard)
    }

    /// How many actors are active, roughly.
    pub(crate) fn active_actors(&self) -> usize {
        self.arbiters.iter().map(ArbiterShared::active).sum()
    }

    /// How many jobs were taken and have not begun, roughly.
    pub(crate) fn waiting_jobs(&self) -> usize {
        self.arbiters.iter().map(ArbiterShared::waiting).sum()
    }

    /// When this life began.
    pub(crate) const fn born(&self) -> Millis {
        self.born
    }

    /// The span that runs on this thread, as messages that are sent now carry it.
    #[inline]
    pub(crate) fn present_trace(&self) -> Option<TraceContext> {
        self.traces.as_deref().and_then(TraceBridge::current)
    }

    /// Makes the span of a handler part of the trace that its message came with.
    pub(crate) fn adopt_trace(&self, span: &tracing::Span, scope: Option<&CallScope>) {
        if let (Some(traces), Some(sender)) = (&self.traces, scope.and_then(|scope| scope.trace)) {
            traces.adopt(span, sender);
        }
    }

    /// Whether the node takes nothing new.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lives.is_stopping()
    }

    pub(crate) fn arbiter(&self, index: u16) -> &ArbiterShared {
        &self.arbiters[usize::from(index)]
    }

    /// The numbers of the data arbiters.
    pub(crate) fn data_arbiters(&self) -> std::ops::Range<u16> {
        0..u16::try_from(self.arbiters.len()).unwrap_or(u16::MAX)
    }

    /// Runs `work` on an arbiter: at once if that is the present one, else when its turn comes.
    ///
    /// # Errors
    ///
    /// The arbiter's way in is full, or it has ended; nothing will run.
    pub(crate) fn on_arbiter(
        &self,
        index: u16,
        work: impl FnOnce(&Rc<ArbiterLocal>) + Send + 'static,
    ) -> Result<(), CallError> {
        match local(self, index) {
            Some(local) => {
                work(&local);
                Ok(())
            }
            None => self.enter_work(index, work),
        }
    }

    /// Runs `work` on an arbiter that is not the present one.
    pub(crate) fn enter_work(
        &self,
        index: u16,
        work: impl FnOnce(&Rc<ArbiterLocal>) + Send + 'static,
    ) -> Result<(), CallError> {
        self.enter(index, Entry::Work(Box::new(work)))
    }

    /// Puts an entry into an arbiter's way in.
    pub(crate) fn enter(&self, index: u16, entry: Entry) -> Result<(), CallError> {
        use archipelago_protocol::call::Queue;
        use tokio::sync::mpsc::error::TrySendError;
        self.arbiter(index).ingress().try_send(entry).map_err(|error| match error {
            TrySendError::Full(_) => CallError::Overloaded {
                queue: Queue::Ingress,
                bound: u32::try_from(self.settings.ingress).unwrap_or(u32::MAX),
            },
            TrySendError::Closed(_) => crate::arbiter::not_serving("it has stopped"),
        })
    }

    /// Makes every arbiter look at the gate. One whose way in is full is awake already.
    pub(crate) fn wake_arbiters(&self) {
        for arbiter in &self.arbiters {
            let _ = arbiter.ingress().try_send(Entry::Work(Box::new(|_| {})));
        }
    }

    /// Shows how long the node may serve.
    pub(crate) fn measure_session(&self) {
        let remaining = self.gate.remaining(self.env.now());
        gauge!("archipelago_session_remaining_seconds").set(remaining.to_duration().as_secs_f64());
    }

    /// How many data arbiters have not ended.
    pub(super) fn running_arbiters(&self) -> usize {
        self.arbiters.iter().filter(|arbiter| arbiter.is_running()).count()
    }

    /// Asks one actor to leave.
    pub(crate) fn leave(&self, kind: u32, target: Target, reason: DeactivateReason) {
        let index = self.arbiter_of(kind, target.hash);
        let asked = self.on_arbiter(index, move |local| {
            if let Some(kind) = local.any_kind(kind) {
                kind.leave(&target, reason);
            }
        });
        if let Err(error) = asked {
            tracing::debug!(%error, "a request to deactivate did not get through");
        }
    }

    /// Publishes what somebody did who operates the node.
    pub(crate) fn operated(&self, act: &str, subject: &str, outcome: &str) {
        tracing::info!(node = %self.id, act, subject, outcome, "operated");
        let [act, subject, outcome] = [act, subject, outcome].map(str::to_owned);
        self.events.publish(Event::Operated { act, subject, outcome });
    }

    /// Publishes a message that could not be delivered and that nobody waits for.
    pub(crate) fn dead_letter(&self, target: String, message: &str, reason: &CallError) {
        counter!("archipelago_dead_letters_total").increment(1);
        tracing::debug!(target, message, %reason, "dead letter");
        let letter = DeadLetter { target, message: message.to_owned(), reason: reason.clone() };
        self.events.letters().keep(self.env.wall_millis(), None, &letter);
        self.events.publish(Event::DeadLetter(letter));
    }

    /// Publishes a message to another node that could not be delivered and that nobody waits for.
    pub(crate) fn remote_dead_letter(&self, peer: &Peer, frame: &[u8], reason: &CallError) {
        self.lost_on_the_way(Some(peer.id()), peer.letter_of(self.namespace(), frame, reason.clone()));
    }

    /// Publishes a message that did not get to the node of its actor and that nobody waits for.
    pub(crate) fn lost_on_the_way(&self, node: Option<NodeId>, letter: DeadLetter) {
        counter!("archipelago_remote_dead_letters_total").increment(1);
        tracing::debug!(target = letter.target, message = letter.message, reason = %letter.reason, "remote dead letter");
        self.events.letters().keep(self.env.wall_millis(), node, &letter);
        self.events.publish(Event::RemoteDeadLetter(RemoteDeadLetter { node, letter }));
    }

    /// Stops serving at once and lets the session run out: others may take over when it has ended.
    pub(crate) fn give_up(&self, reason: &str) {
        self.give_up_by(reason, self.gate.over_by());
    }

    /// Stops serving at once; what runs has to end by `over_by`, zero if others may have taken over already.
    pub(crate) fn give_up_by(&self, reason: &str, over_by: Millis) {
        self.gate.shut(over_by);
        self.measure_session();
        tracing::error!(node = %self.id, reason, "the node gives its session up");
        // A session that never came about is a failed start, which its starter is told.
        if self.session.read(|state| *state != SessionState::Opening) {
            self.events.publish(Event::SessionLost { node: self.id, reason: reason.to_owned() });
        }
        self.session.set(SessionState::Lost(reason.to_owned()));
        self.wake_arbiters();
        self.watches.close(self.id);
    }

    pub(crate) fn kind_index(&self, kind: &Kind) -> Option<u32> {
        self.kinds_by_name.get(kind).copied()
    }

    pub(crate) const fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub(crate) const fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    pub(crate) const fn env(&self) -> &Arc<dyn Environment> {
        &self.env
    }

    pub(crate) const fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// Where persistent actors keep their states.
    pub(crate) const fn states(&self) -> Option<&Arc<dyn StateStore>> {
        self.states.as_ref()
    }

    /// The tables that this node passes on if it leads.
    pub(crate) const fn tables(&self) -> &TableBoard {
        &self.tables
    }

    /// The ranges of keys that it knows of and holds.
    pub(crate) const fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Whom this node asks if it is a light client.
    pub(crate) fn contacts(&self) -> Option<&ContactList> {
        self.contacts.as_deref()
    }

    /// Whether it is a light client: it hosts nothing, and is no member.
    pub(crate) const fn is_client(&self) -> bool {
        self.contacts.is_some()
    }

    pub(crate) fn kinds(&self) -> &[Arc<KindShared>] {
        &self.kinds
    }

    pub(crate) const fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) const fn session(&self) -> &Shown<SessionState> {
        &self.session
    }

    pub(crate) const fn events(&self) -> &EventStream {
        &self.events
    }

    pub(crate) fn named(&self) -> &NamedActors {
        &self.named
    }

    pub(crate) const fn remoting(&self) -> &Remoting {
        &self.remoting
    }

    /// Who watches what.
    pub(crate) const fn watches(&self) -> &Watches {
        &self.watches
    }

    /// The state that came ahead of shards.
    pub(crate) const fn parcels(&self) -> &Mutex<ParcelRoom<Shard>> {
        &self.parcels
    }

    /// The nodes of the cluster.
    pub(crate) const fn members(&self) -> &Members {
        &self.members
    }

    /// The datacenters that are known.
    pub(crate) const fn datacenters(&self) -> &Arc<Maps> {
        &self.datacenters
    }

    /// The searches in other datacenters.
    pub(crate) const fn searches(&self) -> &Searches {
        &self.searches
    }

    /// How far away the other datacenters are.
    pub(crate) const fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }

    /// Where it is written which actors were placed abroad.
    pub(crate) const fn homes(&self) -> Option<&Arc<dyn Homes>> {
        self.homes.as_ref()
    }

    /// The registry of datacenters.
    pub(crate) const fn control_plane(&self) -> Option<&Arc<dyn ControlPlane>> {
        self.control_plane.as_ref()
    }

    /// The actor that speaks with the control plane; none without one.
    pub(crate) fn controller(&self) -> Option<&Addr<DataCenterController>> {
        self.controller.get()
    }

    pub(crate) fn has_controller(&self, controller: Addr<DataCenterController>) {
        // Set once, when the control arbiter starts.
        let _ = self.controller.set(controller);
    }

    /// The actor that looks after shards if this node has the duty; none without a transport.
    pub(crate) fn coordinator(&self) -> Option<&Addr<ShardCoordinator>> {
        self.coordinator.get()
    }

    pub(crate) fn has_coordinator(&self, coordinator: Addr<ShardCoordinator>) {
        // Set once, when the control arbiter starts.
        let _ = self.coordinator.set(coordinator);
    }

    /// What this life has in common with the others of its node.
    pub(crate) const fn lives(&self) -> &Arc<Lives> {
        &self.lives
    }

    pub(crate) const fn services(&self) -> &Services {
        &self.services
    }
}
