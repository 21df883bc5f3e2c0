//! The actor that follows the tables of a node's kinds and has its ranges claimed, emptied and given up. Every decision is
//! [`RangeKeeper`]'s, one per kind that the node hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_protocol::contract::{DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{Generation, Kind, OwnedKey, PartitionName, Placement};
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::ranges::{
    KeeperAction, KeeperEvent, KeeperLimits, KeyRange, KnownTable, LetGoOutcome, PartitionClaim, RangeKeeper,
};
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use metrics::{counter, gauge};

use super::emptying::empty;
use crate::cluster::ClusterMember;
use crate::env::within;
use crate::events::Event;
use crate::mutants::{Mutant, broken};
use crate::node::{KindShared, Node, NodeShared};
use crate::placement::session_of;
use crate::role::note_block;

/// Starts the actor. Call it on the control arbiter.
pub(super) fn start(node: &Arc<NodeShared>) {
    let keepers = RangeKeepers { node: Arc::clone(node), kinds: BTreeMap::new() };
    node.ranges().has_keepers(keepers.start());
}

/// Gives the ranges up that others can take, because the node leaves; waits for that until `until` at most. What nobody else
/// can take stays until the session ends.
pub(crate) async fn leave(node: &Arc<NodeShared>, until: Millis) {
    let kinds: Vec<u32> =
        node.kinds().iter().filter(|kind| is_taken(node, kind)).map(|kind| kind.index()).collect();
    let held = || kinds.iter().map(|kind| node.ranges().count(*kind)).sum::<usize>();
    let Some(keepers) = node.ranges().keepers().filter(|_| held() > 0) else { return };
    let mut changes = node.ranges().changes();
    keepers.do_send(Leave(kinds.clone()));
    while held() > 0 {
        let left = until.since(node.env().now());
        if left == Millis::ZERO || within(node.env(), left, changes.changed()).await.is_none() {
            return;
        }
    }
}

/// Whether another node can take the ranges of a kind.
fn is_taken(node: &NodeShared, kind: &KindShared) -> bool {
    let takes = |member: &ClusterMember| {
        let stays = member.status < MemberStatus::Leaving && !member.suspect;
        member.info.id != node.id() && stays && member.info.kinds.contains(kind.name())
    };
    kind.layout().is_by_range() && node.members().view().members.values().any(takes)
}

// ---- messages ----

/// A newer table.
struct Told {
    kind: u32,
    known: KnownTable,
}

impl Message for Told {
    type Result = ();
}

/// The node leaves, and others can take its ranges of these kinds.
struct Leave(Vec<u32>);

impl Message for Leave {
    type Result = ();
}

// ---- state ----

pub(crate) struct RangeKeepers {
    node: Arc<NodeShared>,
    /// Those of the kinds that the node hosts.
    kinds: BTreeMap<u32, Keeping>,
}

struct Keeping {
    kind: Kind,
    machine: RangeKeeper,
    wake: Option<SpawnHandle>,
}

impl RangeKeepers {
    fn apply(&mut self, kind: u32, event: KeeperEvent, ctx: &mut Context<Self>) {
        let now = self.node.env().now();
        let Some(keeping) = self.kinds.get_mut(&kind) else { return };
        for action in keeping.machine.handle(now, event) {
            self.carry_out(kind, action, ctx);
        }
    }

    fn carry_out(&mut self, kind: u32, action: KeeperAction, ctx: &mut Context<Self>) {
        match action {
            KeeperAction::Claim { partition, parents } => self.claim(kind, partition, parents, ctx),
            KeeperAction::Serve { partition, range, generation } => {
                self.serve(kind, &partition, range, generation);
            }
            KeeperAction::Empty { partition, range } => self.empty(kind, partition, range, ctx),
            KeeperAction::LetGo { partition, generation, retire } => {
                self.let_go(kind, partition, (generation, retire), ctx);
            }
            KeeperAction::Forget(partition) => {
                self.node.ranges().forget(kind, &partition);
                self.measure(kind);
            }
            KeeperAction::WakeAt(at) => self.wake_at(kind, at, ctx),
        }
    }

    fn claim(
        &self,
        kind: u32,
        partition: PartitionName,
        parents: Vec<PartitionName>,
        ctx: &mut Context<Self>,
    ) {
        let Some(key) = self.key(kind, &partition) else { return };
        let node = Arc::clone(&self.node);
        let claim = async move { claimed(&node, &key, &parents).await };
        ctx.spawn(claim.into_actor(self).map(move |outcome, keepers, ctx| {
            keepers.apply(kind, KeeperEvent::Claimed { partition, outcome }, ctx);
        }));
    }

    fn serve(&self, kind: u32, partition: &PartitionName, range: KeyRange, generation: Generation) {
        tracing::info!(node = %self.node.id(), kind, %partition, %range, %generation, "a range is served");
        self.node.ranges().hold(kind, partition, range.clone(), generation);
        self.measure(kind);
        if let Some(keeping) = self.kinds.get(&kind) {
            let (kind, partition) = (keeping.kind.as_str().to_owned(), partition.as_str().to_owned());
            self.node.events().publish(Event::RangeServed { kind, partition, range, generation });
        }
    }

    fn empty(&self, kind: u32, partition: PartitionName, range: KeyRange, ctx: &mut Context<Self>) {
        let Some(closing) = self.node.ranges().close(kind, &partition) else { return };
        let (node, name) = (Arc::clone(&self.node), partition.clone());
        let emptied =
            async move { empty(&node, kind, &range, || node.ranges().is_closed(kind, &name, closing)).await };
        ctx.spawn(emptied.into_actor(self).map(move |is_empty, keepers, ctx| {
            // It may have been opened again, and closed once more: then another counts its actors.
            if is_empty && keepers.node.ranges().is_closed(kind, &partition, closing) {
                keepers.apply(kind, KeeperEvent::Emptied(partition), ctx);
            }
        }));
    }

    fn let_go(
        &self,
        kind: u32,
        partition: PartitionName,
        (generation, retire): (Generation, bool),
        ctx: &mut Context<Self>,
    ) {
        let Some(key) = self.key(kind, &partition) else { return };
        let node = Arc::clone(&self.node);
        let placement = Placement { key, node: node.id(), generation };
        let write = async move { given_up(&node, &placement, retire).await };
        ctx.spawn(write.into_actor(self).map(move |outcome, keepers, ctx| {
            if outcome == LetGoOutcome::Done {
                keepers.gave_up(kind, &partition, retire);
            }
            keepers.apply(kind, KeeperEvent::LetGo { partition, outcome }, ctx);
        }));
    }

    fn gave_up(&self, kind: u32, partition: &PartitionName, retired: bool) {
        let how = if retired { "retired" } else { "released" };
        counter!("archipelago_ranges_given_up_total", "how" => how).increment(1);
        tracing::info!(node = %self.node.id(), kind, %partition, how, "a range was given up");
        if let Some(keeping) = self.kinds.get(&kind) {
            let (kind, partition) = (keeping.kind.as_str().to_owned(), partition.as_str().to_owned());
            self.node.events().publish(Event::RangeGivenUp { kind, partition, retired });
        }
    }

    fn wake_at(&mut self, kind: u32, at: Millis, ctx: &mut Context<Self>) {
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()).max(LEAST_PAUSE));
        let wake = ctx.spawn(sleep.into_actor(self).map(move |(), keepers, ctx| {
            keepers.apply(kind, KeeperEvent::WokeUp, ctx);
        }));
        let earlier = self.kinds.get_mut(&kind).and_then(|keeping| keeping.wake.replace(wake));
        if let Some(earlier) = earlier {
            ctx.cancel_future(earlier);
        }
    }

    fn key(&self, kind: u32, partition: &PartitionName) -> Option<OwnedKey> {
        let kind = self.kinds.get(&kind)?.kind.clone();
        Some(OwnedKey::Range { kind, partition: partition.clone() })
    }

    fn measure(&self, kind: u32) {
        if let Some(keeping) = self.kinds.get(&kind) {
            let served = keeping.machine.served().count();
            gauge!("archipelago_ranges_served", "kind" => keeping.kind.as_str().to_owned())
                .set(served as f64);
        }
    }
}

/// Claims a partition once.
async fn claimed(node: &Arc<NodeShared>, key: &OwnedKey, parents: &[PartitionName]) -> PartitionClaim {
    let session = session_of(node);
    let parents = if broken(Mutant::RangeBeforeItsParents) { &[] } else { parents };
    let attempt = node.directory().claim_range(key, parents, session, None);
    match within(node.env(), times::attempt_timeout(session.ttl), attempt).await {
        Some(Ok(PlacementDecision::Placed(placement))) => PartitionClaim::Placed(placement.generation),
        Some(Ok(PlacementDecision::AlreadyPlaced(held) | PlacementDecision::Raced { winner: held }))
            if held.placement.node != node.id() =>
        {
            note_block(node, &held);
            PartitionClaim::Taken
        }
        Some(Err(DirectoryError::NotRetired { parent })) => {
            note_block(node, &parent);
            PartitionClaim::NotRetired
        }
        Some(Err(DirectoryError::Retired { .. })) => PartitionClaim::Retired,
        Some(Err(DirectoryError::SessionLost { .. })) => PartitionClaim::SessionLost,
        unanswered => {
            tracing::debug!(%key, ?unanswered, "a claim of a range was not answered");
            PartitionClaim::Unanswered
        }
    }
}

/// Gives a partition up once.
async fn given_up(node: &NodeShared, placement: &Placement, retire: bool) -> LetGoOutcome {
    let directory = node.directory();
    let attempt =
        async { if retire { directory.retire(placement).await } else { directory.release(placement).await } };
    match within(node.env(), times::attempt_timeout(node.settings().session_ttl), attempt).await {
        // A conflict says that it is not ours any more.
        Some(Ok(()) | Err(DirectoryError::Conflict { .. } | DirectoryError::Retired { .. })) => {
            LetGoOutcome::Done
        }
        Some(Err(DirectoryError::Unavailable { .. } | DirectoryError::Invalid { .. })) => {
            LetGoOutcome::Unapplied
        }
        Some(Err(_)) | None => LetGoOutcome::Unknown,
    }
}

/// Follows the tables of a kind for as long as the actor lives.
async fn follow(node: Arc<NodeShared>, kind: (u32, Kind), to: Addr<RangeKeepers>) {
    let (index, kind) = kind;
    // Whoever may read the store need not ask the leader, who may be the one that has just gone.
    let source = node.tables().source().unwrap_or_else(|| Node::of(Arc::clone(&node)).pushed_tables());
    loop {
        match source.watch_tables(&kind).await {
            Ok(mut news) => {
                while let Some(told) = news.next().await {
                    match told {
                        Ok(known) => {
                            if to.send(Told { kind: index, known }).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => tracing::debug!(%kind, %error, "a watch of a table broke"),
                    }
                }
            }
            Err(error) => tracing::debug!(%kind, %error, "a table cannot be watched yet"),
        }
        if !to.connected() {
            return;
        }
        node.env().sleep(FOLLOW_AGAIN).await;
    }
}

impl Actor for RangeKeepers {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let (id, limits) = (self.node.id(), KeeperLimits::DEFAULT);
        let kinds: Vec<_> =
            self.node.kinds().iter().filter(|kind| kind.layout().is_by_range()).cloned().collect();
        for kind in kinds {
            if kind.is_hosted() {
                let machine = RangeKeeper::new(id, limits);
                let keeping = Keeping { kind: kind.kind().clone(), machine, wake: None };
                self.kinds.insert(kind.index(), keeping);
            }
            let followed = follow(Arc::clone(&self.node), (kind.index(), kind.kind().clone()), ctx.address());
            ctx.spawn(followed.into_actor(self));
        }
    }
}

// ---- handlers ----

impl Handler<Told> for RangeKeepers {
    type Result = ();

    fn handle(&mut self, Told { kind, known }: Told, ctx: &mut Context<Self>) {
        let (version, partitions) = (known.version, known.table.entries().len());
        self.node.ranges().note_table(kind, Arc::new(known.clone()));
        if let Some(name) = self.node.kinds().get(kind as usize).map(|kind| kind.name().to_owned()) {
            tracing::debug!(node = %self.node.id(), kind = name, version = version.0, partitions, "a newer table");
            self.node.events().publish(Event::RangesChanged { kind: name, version, ranges: partitions });
        }
        self.apply(kind, KeeperEvent::Table(known), ctx);
    }
}

impl Handler<Leave> for RangeKeepers {
    type Result = ();

    fn handle(&mut self, Leave(kinds): Leave, ctx: &mut Context<Self>) {
        kinds.into_iter().for_each(|kind| self.apply(kind, KeeperEvent::Leave, ctx));
    }
}

/// Between two looks at what is due.
const LEAST_PAUSE: Millis = Millis(10);

/// Before a watch of a table is begun again.
const FOLLOW_AGAIN: Millis = Millis(200);
