//! The searches of a node in other datacenters. Every decision is [`Discovery`]'s; this asks, cancels and wakes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::{
    AskId, DataCenterId, Discovered, Discovery, DiscoveryAction, DiscoveryEvent, DiscoverySettings,
    FarAnswer, Residence, SeekerId,
};
use archipelago_protocol::identity::{ActorId, ActorPath, NodeAddress};
use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};
use metrics::counter;
use tokio::sync::oneshot;

use super::ask::ask_endpoint;
use crate::node::NodeShared;
use crate::remote::{ShardPlace, Subject, WhereIs, Whereabouts};

/// What is looked for in other datacenters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sought {
    /// A virtual actor that is active.
    Actor(ActorId),
    /// Whoever is registered at a path.
    Named(ActorPath),
}

/// Where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FarPlace {
    Shard(ShardPlace),
    /// The datacenter that was asked knows that it was placed in this one.
    Elsewhere(DataCenterId),
    Named(ActorPath),
}

/// The searches under way, and what earlier ones found.
pub(crate) struct Searches {
    state: Mutex<State>,
}

struct State {
    machine: Discovery<Sought, FarPlace>,
    seekers: BTreeMap<SeekerId, oneshot::Sender<Discovered<FarPlace>>>,
    /// The questions under way; dropping one cancels it.
    asks: BTreeMap<AskId, oneshot::Sender<()>>,
    next: u64,
}

impl Searches {
    pub(crate) fn new(settings: DiscoverySettings) -> Self {
        let (seekers, asks) = (BTreeMap::new(), BTreeMap::new());
        Self { state: Mutex::new(State { machine: Discovery::new(settings), seekers, asks, next: 0 }) }
    }

    /// How long a datacenter takes to answer, usually.
    pub(crate) fn round_trip(&self, datacenter: &DataCenterId) -> Option<Millis> {
        self.lock().machine.round_trip(datacenter)
    }

    /// Forgets where an actor was found: it turned out to be wrong, or is about to be.
    pub(crate) fn forget(&self, actor: &ActorId) {
        self.lock().machine.forget(&Sought::Actor(actor.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_seeker(&self, tell: oneshot::Sender<Discovered<FarPlace>>) -> SeekerId {
        let mut state = self.lock();
        state.next += 1;
        let seeker = SeekerId(state.next);
        state.seekers.insert(seeker, tell);
        seeker
    }
}

/// Looks for something in the other datacenters, until `deadline`.
///
/// # Errors
///
/// [`CallError::Unreachable`] if the map is too old to be used, [`CallError::Overloaded`], or the node stops.
pub(super) async fn search(
    node: &Arc<NodeShared>,
    key: Sought,
    deadline: Millis,
) -> Result<Discovered<FarPlace>, CallError> {
    let (tell, told) = oneshot::channel();
    let seeker = node.searches().new_seeker(tell);
    let gone = GivesUp { node, seeker };
    // One arbiter carries all searches: the caller may be on a thread of its own.
    node.on_arbiter(0, move |on| {
        let (map, random) = (on.node().datacenters().newest(), on.node().env().random());
        let event = DiscoveryEvent::Seek { seeker, key, deadline, map: &map, random };
        apply(on.node(), event);
    })?;
    let outcome = told.await.map_err(|_| CallError::Stopped)?;
    drop(gone);
    counter!("archipelago_datacenter_searches_total", "outcome" => name_of(&outcome)).increment(1);
    Ok(outcome)
}

/// Tells the search that its seeker has gone, if it has.
struct GivesUp<'a> {
    node: &'a Arc<NodeShared>,
    seeker: SeekerId,
}

impl Drop for GivesUp<'_> {
    fn drop(&mut self) {
        let seeker = self.seeker;
        if self.node.searches().lock().seekers.remove(&seeker).is_some() {
            // If the arbiter takes nothing more, the search ends by its own deadline.
            let _ = self.node.on_arbiter(0, move |on| apply(on.node(), DiscoveryEvent::GaveUp(seeker)));
        }
    }
}

/// Feeds one event to the machine and carries out what follows. Call it on an arbiter.
fn apply(node: &Arc<NodeShared>, event: DiscoveryEvent<'_, Sought, FarPlace>) {
    let actions = node.searches().lock().machine.handle(node.env().now(), event);
    for action in actions {
        match action {
            DiscoveryAction::Ask { ask, key, datacenter, endpoint, until } => {
                ask_far(node, ask, key, (datacenter, endpoint), until);
            }
            DiscoveryAction::Cancel(ask) => {
                node.searches().lock().asks.remove(&ask);
            }
            DiscoveryAction::Tell(seeker, outcome) => {
                let tell = node.searches().lock().seekers.remove(&seeker);
                // The seeker may have gone.
                let _ = tell.map(|tell| tell.send(outcome));
            }
            DiscoveryAction::WakeAt(at) => wake_at(node, at),
        }
    }
}

fn wake_at(node: &Arc<NodeShared>, at: Millis) {
    let (weak, env) = (Arc::downgrade(node), Arc::clone(node.env()));
    node.env().spawn(Box::pin(async move {
        // The machine takes no wake-up that comes too soon.
        while env.now() < at {
            env.sleep(at.since(env.now())).await;
        }
        if let Some(node) = weak.upgrade() {
            apply(&node, DiscoveryEvent::WokeUp);
        }
    }));
}

/// Asks one endpoint, unless the question is cancelled before the answer comes.
fn ask_far(
    node: &Arc<NodeShared>,
    ask: AskId,
    key: Sought,
    (datacenter, endpoint): (DataCenterId, NodeAddress),
    until: Millis,
) {
    let (cancel, cancelled) = oneshot::channel();
    node.searches().lock().asks.insert(ask, cancel);
    let node = Arc::clone(node);
    let env = Arc::clone(node.env());
    env.spawn(Box::pin(async move {
        let limit = until.since(node.env().now());
        let answer = {
            let asked = pin!(question(&node, &key, &datacenter, endpoint, limit));
            match select(asked, cancelled).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => return,
            }
        };
        node.searches().lock().asks.remove(&ask);
        apply(&node, DiscoveryEvent::Answered { ask, answer });
    }));
}

async fn question(
    node: &Arc<NodeShared>,
    key: &Sought,
    datacenter: &DataCenterId,
    endpoint: NodeAddress,
    limit: Millis,
) -> FarAnswer<FarPlace> {
    let subject = match key {
        Sought::Actor(id) => Subject::of_actor(id),
        Sought::Named(path) => Subject::Named(path.clone()),
    };
    let question = WhereIs { subject, place: false, live: true, relayed: false };
    match ask_endpoint(node, datacenter, &endpoint, &question, limit).await {
        Ok(Whereabouts::Shard(place)) => answer_of(place, datacenter),
        Ok(Whereabouts::Named(Some(path))) => FarAnswer::Yes(FarPlace::Named(path)),
        Ok(_) => FarAnswer::No,
        Err(error) => {
            tracing::debug!(%datacenter, %endpoint, %error, "a datacenter did not say where something is");
            if error.is_refused() { FarAnswer::Refused } else { FarAnswer::Failed }
        }
    }
}

/// What a datacenter has said about an actor: it has it, or knows where it was placed, or neither.
fn answer_of(place: ShardPlace, asked: &DataCenterId) -> FarAnswer<FarPlace> {
    match (place.residence, &place.home) {
        (Residence::Here, _) => FarAnswer::Yes(FarPlace::Shard(place)),
        (_, Some(home)) if home == asked => FarAnswer::Yes(FarPlace::Shard(place)),
        (_, Some(home)) => FarAnswer::Yes(FarPlace::Elsewhere(home.clone())),
        (Residence::NotHere, None) => FarAnswer::No,
        (Residence::Unsettled, None) => FarAnswer::Unsettled,
    }
}

const fn name_of(outcome: &Discovered<FarPlace>) -> &'static str {
    match outcome {
        Discovered::Found { .. } => "found",
        Discovered::NotFound => "not found",
        Discovered::Unreachable { .. } => "unreachable",
        Discovered::Stale => "stale",
        Discovered::Full => "full",
    }
}
