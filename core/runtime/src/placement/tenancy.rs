//! The shards of one arbiter that this node serves, or is about to. Every decision is [`Tenure`]'s.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::contract::{DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{Generation, OwnedKey};
use archipelago_protocol::link::Hint;
use archipelago_protocol::placement::{ClaimOutcome, Tenure, TenureAction, TenureEvent};
use archipelago_protocol::route::RouteEvent;
use archipelago_protocol::session::{Session, times};
use archipelago_protocol::time::Millis;
use metrics::counter;
use tokio::sync::oneshot;

use crate::arbiter::ArbiterLocal;
use crate::env::{Oddity, within};
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::remote::Shard;

/// What this node has to do with the shards of one arbiter.
#[derive(Default)]
pub(crate) struct Tenancies {
    shards: RefCell<BTreeMap<Shard, Tenant>>,
    /// Nothing is served here any more, whatever the answers to claims that are under way.
    over: Cell<bool>,
}

struct Tenant {
    tenure: Tenure,
    askers: Vec<Asker>,
}

/// Waits to be told where a shard is.
type Asker = oneshot::Sender<Option<Hint>>;

impl ArbiterLocal {
    /// Has this node serve a shard, if nobody else does; `asker` is told who serves it then.
    pub(crate) fn want_shard(self: &Rc<Self>, shard: Shard, asker: Option<Asker>) {
        {
            let mut shards = self.tenancies().shards.borrow_mut();
            let tenant = shards.entry(shard).or_insert_with(|| Tenant::new(self.node()));
            tenant.askers.retain(|asker| !asker.is_closed());
            // Beyond the bound nobody waits; whoever asked looks again by itself.
            tenant.askers.extend(asker.filter(|_| tenant.askers.len() < ASKERS));
        }
        self.tenure(shard, TenureEvent::Asked);
    }

    /// Serves nothing from now on: what still comes goes back.
    pub(crate) fn serve_nothing(&self) {
        self.tenancies().over.set(true);
        self.all_kinds().for_each(|kind| kind.shards().serve_nothing());
    }

    fn tenure(self: &Rc<Self>, shard: Shard, event: TenureEvent) {
        let now = self.now();
        let actions = match self.tenancies().shards.borrow_mut().get_mut(&shard) {
            Some(tenant) => tenant.tenure.handle(now, event),
            None => return,
        };
        for action in actions {
            match action {
                TenureAction::Claim => self.claim(shard),
                TenureAction::Serve(generation) => self.begin_tenure(shard, generation),
                TenureAction::Answer(hint) => self.answer_askers(shard, hint),
                TenureAction::WakeAt(at) => self.wake_tenure(shard, at),
                TenureAction::Contradicted { served } => self.contradicted(shard, served),
            }
        }
    }

    fn claim(self: &Rc<Self>, shard: Shard) {
        let Some(key) = self.node().key_of(shard) else { return };
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        self.node().env().spawn(Box::pin(async move {
            let outcome = claimed(&node, &key).await;
            if let Some(on) = on.upgrade() {
                let serve_until = node.gate().serve_until();
                on.tenure(shard, TenureEvent::Claimed { outcome, serve_until });
            }
        }));
    }

    /// Messages that wait for the shard go to its actors, in order, before any that comes later.
    fn begin_tenure(self: &Rc<Self>, shard: Shard, generation: Generation) {
        let Some(kind) = self.any_kind(shard.kind).filter(|_| !self.tenancies().over.get()) else { return };
        kind.shards().serve(shard.number, generation);
        let hint = Hint { owner: self.node().id(), generation };
        tracing::debug!(node = %self.node().id(), kind = shard.kind, shard = shard.number, %generation, "shard served");
        self.route(shard, RouteEvent::Learn(hint));
        self.tell_the_owed(shard, hint);
    }

    fn answer_askers(&self, shard: Shard, hint: Option<Hint>) {
        let askers = match self.tenancies().shards.borrow_mut().get_mut(&shard) {
            Some(tenant) => std::mem::take(&mut tenant.askers),
            None => return,
        };
        for asker in askers {
            // It may have given up.
            let _ = asker.send(hint);
        }
    }

    fn wake_tenure(self: &Rc<Self>, shard: Shard, at: Millis) {
        let (on, env) = (Rc::downgrade(self), self.node().env());
        let sleep = env.sleep(at.since(env.now()));
        env.spawn(Box::pin(async move {
            sleep.await;
            if let Some(on) = on.upgrade() {
                on.tenure(shard, TenureEvent::WokeUp);
            }
        }));
    }

    fn contradicted(&self, shard: Shard, served: Generation) {
        counter!("archipelago_duplicate_activations_total").increment(1);
        tracing::error!(kind = shard.kind, shard = shard.number, %served, "the directory names another owner");
        let reason = "the directory names another owner of what this node serves";
        self.node().give_up_by(reason, Millis::ZERO);
    }
}

impl Tenant {
    fn new(node: &NodeShared) -> Self {
        Self { tenure: Tenure::new(node.id()), askers: Vec::new() }
    }
}

impl NodeShared {
    /// The key of a shard in the directory.
    pub(crate) fn key_of(&self, shard: Shard) -> Option<OwnedKey> {
        let kind = self.kinds().get(shard.kind as usize)?;
        Some(OwnedKey::shard(kind.kind().clone(), u32::from(shard.number)))
    }
}

/// Claims a key once, not waiting for ever.
async fn claimed(node: &Arc<NodeShared>, key: &OwnedKey) -> ClaimOutcome {
    let session = Session { id: node.id(), ttl: node.settings().session_ttl };
    let attempt = node.directory().claim(key, session, None);
    let answer = within(node.env(), times::attempt_timeout(session.ttl), attempt).await;
    match answer.filter(|_| !node.env().oddly(Oddity::ClaimUnanswered)) {
        Some(Ok(PlacementDecision::Placed(placement))) => {
            counter!("archipelago_placements_total", "decision" => "placed").increment(1);
            ClaimOutcome::Placed(placement.generation)
        }
        Some(Ok(PlacementDecision::AlreadyPlaced(record))) => {
            counter!("archipelago_placements_total", "decision" => "already_placed").increment(1);
            ClaimOutcome::Taken(hint_of(&record))
        }
        Some(Ok(PlacementDecision::Raced { winner })) => {
            counter!("archipelago_placements_total", "decision" => "raced").increment(1);
            if broken(Mutant::RaceLostServesAnyway) {
                return ClaimOutcome::Placed(winner.placement.generation);
            }
            ClaimOutcome::Taken(hint_of(&winner))
        }
        Some(Err(DirectoryError::SessionLost { .. })) => ClaimOutcome::SessionLost,
        unanswered => {
            tracing::debug!(%key, ?unanswered, "claim unanswered");
            if broken(Mutant::ServeWithoutGrant) {
                return ClaimOutcome::Placed(Generation::new(u64::MAX));
            }
            ClaimOutcome::Unanswered
        }
    }
}

fn hint_of(record: &archipelago_protocol::contract::OwnerRecord) -> Hint {
    Hint { owner: record.placement.node, generation: record.placement.generation }
}

/// How many may wait for one shard to be placed.
const ASKERS: usize = 1_024;
