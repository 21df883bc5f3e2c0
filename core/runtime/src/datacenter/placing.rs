//! Placing actors in a datacenter of the caller's choice.
//!
//! The home of the actor is written down in this datacenter first and then in the other, which settles a race in favour of
//! whoever was first; only after that does the actor come to life. Both records outlive it, so it does not come to life
//! elsewhere later. Everything that is said to the other side may be repeated, so an endpoint that does not answer is
//! followed by the next.

use std::collections::VecDeque;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{DirectoryError, HomeStamp, Homes, SettledHome};
use archipelago_protocol::datacenter::{
    AfterAttempt, DataCenterId, DataCenterMap, DataCenterState, DataCenterTarget, EndpointSaid, MapEntry,
    NoCandidate, PlacingAttempt, Residence, TargetError, endpoint_order, in_order, share_of,
};
use archipelago_protocol::identity::{ActorId, Kind};
use archipelago_protocol::time::Millis;
use metrics::counter;

use super::locate::home_of;
use super::reach::Reach;
use super::words::{Answer, Word, say};
use crate::arbiter::not_serving;
use crate::catalog::Target;
use crate::message::{AcceptedBy, VirtualActor};
use crate::node::{KindShared, Node, NodeShared};
use crate::placement::{Found, address_of, seek};
use crate::remote::{Shard, Spawned, Subject, WhereIs, Whereabouts, where_is};

/// Why an actor was not placed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// What was asked for is neither the id of a datacenter nor a selector of labels.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The node has no control plane, and so knows of no other datacenter.
    #[error("the node has no control plane")]
    NoControlPlane,
    /// Actors of this kind live in the datacenter of whoever sends to them, so none is placed in another one. Nothing was written.
    #[error(
        "actors of kind {kind} live in their sender's own datacenter alone: give the kind another reach, if it may have one"
    )]
    NeverAbroad {
        /// The kind.
        kind: String,
    },
    /// No datacenter takes the actor now. Nothing was written.
    #[error(transparent)]
    NoCandidate(#[from] NoCandidate),
    /// The actor was placed in another datacenter before, or its kind has its home there. Actors do not move between datacenters.
    #[error("the actor lives in datacenter {datacenter}")]
    HomedElsewhere {
        /// Where it lives.
        datacenter: DataCenterId,
    },
    /// The directory did not say, or did not take down, where the actor lives.
    #[error("the home of the actor could not be settled: {0}")]
    Homes(#[from] DirectoryError),
    /// No endpoint of the datacenter took it. If one may have, the home of the actor stays written down: ask again.
    #[error("no endpoint of datacenter {datacenter} took the actor: {last}")]
    Unreachable {
        /// The datacenter.
        datacenter: DataCenterId,
        /// What came of the last attempt.
        last: CallError,
    },
    /// The message to the actor failed, after it was placed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Where an actor was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedActor {
    /// The actor.
    pub actor: ActorId,
    /// Its datacenter.
    pub datacenter: DataCenterId,
    /// Where in it the actor lives, if it was brought to life.
    pub spawned: Option<Spawned>,
}

impl Node {
    /// Brings the virtual actor of a kind with a key to life in a datacenter: by its id, or in any that has these labels
    /// (`tier=prod`, `tier=prod, latency=low`). It stays there: messages to it go there from then on, from everywhere.
    ///
    /// Which of several datacenters is chosen first, and which after one that was never reached, is for the policy to say
    /// (`datacenter.placement`); without one it depends on the actor and on the map alone.
    ///
    /// # Errors
    ///
    /// [`PlaceError`]; an actor that lives elsewhere stays there.
    pub async fn spawn_in(&self, target: &str, kind: &str, key: &str) -> Result<PlacedActor, PlaceError> {
        place(self.shared(), target, kind, key, true).await
    }

    /// Sends a message to an actor in a datacenter, chosen as by [`spawn_in`](Self::spawn_in), and waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`spawn_in`](Self::spawn_in), or why the message was not answered.
    pub async fn send_in<A, M>(&self, target: &str, key: &str, message: M) -> Result<M::Result, PlaceError>
    where
        A: VirtualActor,
        M: AcceptedBy<A>,
    {
        place(self.shared(), target, A::KIND, key, false).await?;
        Ok(self.actor::<A>(key).send(message).await?)
    }
}

/// Settles the home of an actor in one of the datacenters that fit, and wakes it there if asked.
async fn place(
    node: &Arc<NodeShared>,
    target: &str,
    kind: &str,
    key: &str,
    wake: bool,
) -> Result<PlacedActor, PlaceError> {
    let target: DataCenterTarget = target.parse()?;
    let homes = node.homes().filter(|_| node.controller().is_some()).ok_or(PlaceError::NoControlPlane)?;
    let actor = actor_id(node, kind, key)?;
    let map = node.datacenters().newest();
    let candidates = choose(node, &target, &map, &actor, &**homes).await?;
    let placed = place_in_one(node, &map, &actor, candidates, wake).await;
    let outcome = match &placed {
        Ok(_) => "placed",
        Err(PlaceError::Unreachable { .. }) => "unreachable",
        Err(_) => "refused",
    };
    counter!("archipelago_datacenter_placements_total", "outcome" => outcome).increment(1);
    let (datacenter, spawned) = placed?;
    forget_place(node, &actor);
    Ok(PlacedActor { actor, datacenter, spawned })
}

/// Settles the home of an actor in the first of the datacenters that takes it.
async fn place_in_one(
    node: &Arc<NodeShared>,
    map: &DataCenterMap,
    actor: &ActorId,
    candidates: Vec<&MapEntry>,
    wake: bool,
) -> Result<(DataCenterId, Option<Spawned>), PlaceError> {
    let (mut left, mut last) = (VecDeque::from(candidates), None);
    let until = node.env().now() + node.settings().call_timeout;
    while let Some(entry) = left.pop_front() {
        let placed = if map.is_own(entry.id()) {
            place_at_home(node, actor, entry.id(), wake).await
        } else {
            // Whoever comes after it gets a share of the time.
            let share = share_of(until.since(node.env().now()), left.len() + 1);
            place_abroad(node, actor, entry, (wake, node.env().now() + share)).await
        };
        let Unplaced { error, others_may } = match placed {
            Ok(spawned) => return Ok((entry.id().clone(), spawned)),
            Err(unplaced) => unplaced,
        };
        match &error {
            _ if others_may => {}
            // Somebody else was faster, and chose one that fits as well.
            PlaceError::HomedElsewhere { datacenter } if left.iter().any(|one| one.id() == datacenter) => {
                left.retain(|one| one.id() == datacenter);
            }
            _ => return Err(error),
        }
        last = Some(error);
    }
    Err(last.unwrap_or(PlaceError::NoControlPlane))
}

/// Why one datacenter did not take an actor.
struct Unplaced {
    error: PlaceError,
    /// Nothing of the attempt is left, so another datacenter may take it.
    others_may: bool,
}

impl<E: Into<PlaceError>> From<E> for Unplaced {
    fn from(error: E) -> Self {
        Self { error: error.into(), others_may: false }
    }
}

/// The datacenters that may take the actor, best first: where it has its home or lives already, else as the policy says.
async fn choose<'map>(
    node: &Arc<NodeShared>,
    target: &DataCenterTarget,
    map: &'map DataCenterMap,
    actor: &ActorId,
    homes: &dyn Homes,
) -> Result<Vec<&'map MapEntry>, PlaceError> {
    let settings = &node.settings().datacenter;
    let mut fitting = target.candidates(map, settings.stale_placement)?;
    stay_within_reach(node, actor, map, &mut fitting)?;
    if let Some(home) = homes.home_of(actor).await? {
        fitting.retain(|entry| *entry.id() == home);
        if fitting.is_empty() {
            return Err(PlaceError::HomedElsewhere { datacenter: home });
        }
    } else {
        let question = (actor.stable_hash(), node.env().random());
        fitting = in_order(&*settings.placement, question, map, &fitting, |id| node.round_trip(id));
    }
    stay_where_it_lives(node, actor, map, &mut fitting).await?;
    if fitting.is_empty() {
        return Err(NoCandidate::NotChosen { target: target.to_string() }.into());
    }
    Ok(fitting)
}

/// An actor is placed only where messages to its kind go, whatever is written about its home.
fn stay_within_reach(
    node: &NodeShared,
    actor: &ActorId,
    map: &DataCenterMap,
    chosen: &mut Vec<&MapEntry>,
) -> Result<(), PlaceError> {
    let kind = node.kind_index(actor.kind()).and_then(|index| node.kinds().get(index as usize));
    match kind.map(|kind| kind.reach()) {
        Some(Reach::Local) => {
            chosen.retain(|entry| map.is_own(entry.id()));
            let never = || PlaceError::NeverAbroad { kind: actor.kind().as_str().to_owned() };
            if chosen.is_empty() { Err(never()) } else { Ok(()) }
        }
        Some(Reach::Home(policy)) => {
            let datacenter = home_of(node, &**policy, actor.stable_hash())?;
            chosen.retain(|entry| *entry.id() == datacenter);
            if chosen.is_empty() { Err(PlaceError::HomedElsewhere { datacenter }) } else { Ok(()) }
        }
        Some(Reach::Discover) | None => Ok(()),
    }
}

/// An actor that lives here stays here, whoever is chosen.
async fn stay_where_it_lives(
    node: &Arc<NodeShared>,
    actor: &ActorId,
    map: &DataCenterMap,
    chosen: &mut Vec<&MapEntry>,
) -> Result<(), PlaceError> {
    // Where this datacenter comes first and does not take it, that is looked at before another is tried.
    let Some(own) = map.own.as_ref().filter(|own| chosen.first().is_none_or(|entry| entry.id() != *own))
    else {
        return Ok(());
    };
    match residence_here(node, actor).await? {
        Residence::Here => chosen.retain(|entry| entry.id() == own),
        Residence::NotHere => return Ok(()),
        Residence::Unsettled => {
            return Err(not_serving("the shard of the actor has no owner at present").into());
        }
    }
    if chosen.is_empty() { Err(PlaceError::HomedElsewhere { datacenter: own.clone() }) } else { Ok(()) }
}

/// Whether an actor lives in this datacenter; asked again, for a while, as long as nobody can say.
async fn residence_here(node: &Arc<NodeShared>, actor: &ActorId) -> Result<Residence, CallError> {
    let subject = Subject::of_actor(actor);
    let question = WhereIs { subject, place: false, live: true, relayed: false };
    let settings = node.settings();
    let until = node.env().now() + settings.discovery.timeout.min(settings.call_timeout);
    loop {
        let residence = match where_is(node, &question).await? {
            Whereabouts::Shard(place) => place.residence,
            _ => Residence::NotHere,
        };
        if residence != Residence::Unsettled || until <= node.env().now() {
            return Ok(residence);
        }
        node.env().sleep(settings.discovery.ask_again_most).await;
    }
}

/// What this node remembers of the actor's place may be older than its home record.
fn forget_place(node: &NodeShared, actor: &ActorId) {
    let target = Target { hash: actor.stable_hash(), id: actor.clone() };
    node.searches().forget(actor);
    let Some(kind) = node.kind_index(actor.kind()) else { return };
    let arbiter = node.arbiter_of(kind, target.hash);
    if let Err(error) = node.on_arbiter(arbiter, move |on| on.abroad().forget(&target)) {
        tracing::debug!(%error, "an arbiter goes on with what it knew");
    }
}

async fn place_at_home(
    node: &Arc<NodeShared>,
    actor: &ActorId,
    own: &DataCenterId,
    wake: bool,
) -> Result<Option<Spawned>, Unplaced> {
    match take_in(node, actor.kind().as_str(), actor.key().as_str(), own, wake).await? {
        Answer::Elsewhere(datacenter) => Err(PlaceError::HomedElsewhere { datacenter }.into()),
        Answer::Placed(spawned) => Ok(spawned),
        Answer::NotTaken(error) => {
            // It may live here without a home record, by an ordinary message.
            let others_may = matches!(residence_here(node, actor).await, Ok(Residence::NotHere));
            Err(Unplaced { error: error.into(), others_may })
        }
        _ => Err(PlaceError::Call(CallError::Stopped).into()),
    }
}

async fn place_abroad(
    node: &Arc<NodeShared>,
    actor: &ActorId,
    entry: &MapEntry,
    (wake, until): (bool, Millis),
) -> Result<Option<Spawned>, Unplaced> {
    let (homes, id) = (node.homes().ok_or(PlaceError::NoControlPlane)?, entry.id());
    let SettledHome { home, made } = homes.settle_home(actor, id).await?;
    if home != *id {
        return Err(PlaceError::HomedElsewhere { datacenter: home }.into());
    }
    let (kind, key) = (actor.kind().as_str().to_owned(), actor.key().as_str().to_owned());
    let word = Word::Place { kind, key, datacenter: id.clone(), wake };
    let mut last = not_serving("it has no endpoints");
    let mut attempt = PlacingAttempt::new(made, until, entry.info.endpoints().len());
    for address in endpoint_order(entry.info.endpoints(), node.env().random()) {
        let share = attempt.next_share(node.env().now());
        match say(node, address.clone(), None, &word, share).await {
            Ok(Answer::Placed(spawned)) => return Ok(spawned),
            Ok(Answer::Elsewhere(datacenter)) => {
                take_back(homes, actor, made).await;
                return Err(PlaceError::HomedElsewhere { datacenter }.into());
            }
            Ok(Answer::NotTaken(error)) => {
                tracing::debug!(%address, %error, "an endpoint refuses an actor");
                attempt.heard(EndpointSaid::NotTaken);
                last = error;
            }
            Ok(other) => {
                tracing::debug!(?other, "an answer to something else");
                attempt.heard(EndpointSaid::MayHaveTaken);
            }
            Err(error) => {
                tracing::debug!(%address, %error, "an endpoint did not take an actor");
                attempt.heard(if error.is_not_sent() {
                    EndpointSaid::NeverAsked
                } else {
                    EndpointSaid::MayHaveTaken
                });
                last = error.into();
            }
        }
    }
    // Where its home may be written down it stays, and no other datacenter could take it.
    let others_may = match attempt.over() {
        AfterAttempt::TakeBack(made) => take_back(homes, actor, Some(made)).await,
        AfterAttempt::Stays => false,
    };
    Err(Unplaced { error: PlaceError::Unreachable { datacenter: id.clone(), last }, others_may })
}

/// Takes back what came to nothing; whether nothing of it is left. If not, the actor lives there from its first message on.
async fn take_back(homes: &Arc<dyn Homes>, actor: &ActorId, made: Option<HomeStamp>) -> bool {
    let Some(made) = made else { return false };
    match homes.forget_home(actor, made).await {
        Ok(taken_back) => taken_back,
        Err(error) => {
            tracing::debug!(%actor, %error, "the home of an actor that was not placed stays written down");
            false
        }
    }
}

/// Takes an actor in that somebody places in this datacenter.
///
/// # Errors
///
/// [`CallError::NotServing`] if nobody can say now whether it does, and as [`Node::spawn_at`].
pub(super) async fn take_in(
    node: &Arc<NodeShared>,
    kind: &str,
    key: &str,
    datacenter: &DataCenterId,
    wake: bool,
) -> Result<Answer, CallError> {
    let own = node.settings().datacenter.info.id();
    if own != datacenter {
        return Err(not_serving(&format!("this is datacenter {own}, not {datacenter}")));
    }
    let homes = node.homes().ok_or_else(|| not_serving("the node keeps no homes"))?;
    let actor = actor_id(node, kind, key)?;
    let unsettled = |error: DirectoryError| not_serving(&error.to_string());
    let home = match homes.home_of(&actor).await.map_err(unsettled)? {
        Some(home) => home,
        None => {
            // Once a home is written down nobody else takes the actor: what speaks against it is said before.
            if let Err(error) = takes_new(node, own, &actor) {
                return Ok(Answer::NotTaken(error));
            }
            homes.settle_home(&actor, own).await.map_err(unsettled)?.home
        }
    };
    if home != *own {
        return Ok(Answer::Elsewhere(home));
    }
    if !wake {
        return Ok(Answer::Placed(None));
    }
    bring_to_life(node, kind, key, &actor).await.map(|spawned| Answer::Placed(Some(spawned)))
}

/// Whether an actor that has no home yet may get it here: the datacenter stays, and this node knows the kind, which somebody hosts.
fn takes_new(node: &NodeShared, own: &DataCenterId, actor: &ActorId) -> Result<(), CallError> {
    let standing = node.datacenters().newest().get(own).map(|entry| entry.standing);
    if let Some(DataCenterState::Draining | DataCenterState::Inactive) = standing {
        return Err(not_serving("the datacenter takes no new actors"));
    }
    let name = actor.kind().as_str();
    let kind = node.kind_index(actor.kind()).and_then(|index| node.kinds().get(index as usize));
    let view = node.members().view();
    let is_hosted = |kind: &Arc<KindShared>| {
        kind.is_hosted() || view.members.values().any(|member| member.info.kinds.contains(name))
    };
    if kind.is_some_and(is_hosted) { Ok(()) } else { Err(CallError::UnknownKind { kind: name.into() }) }
}

/// Brings an actor to life on whichever node of this datacenter owns it.
async fn bring_to_life(
    node: &Arc<NodeShared>,
    kind: &str,
    key: &str,
    actor: &ActorId,
) -> Result<Spawned, CallError> {
    let unknown = || CallError::UnknownKind { kind: kind.into() };
    let index = node.kind_index(actor.kind()).ok_or_else(unknown)?;
    let shard: Shard = node.shard(index, actor.stable_hash());
    let owned = node.key_for(shard, actor).ok_or_else(unknown)?;
    let hint = match seek(node, shard, &owned).await {
        Found::At(hint) => hint,
        Found::OutOfReach(owner) => return Err(not_serving(&format!("node {owner} cannot be reached"))),
        Found::NotYet | Found::Gone(_) => {
            return Err(not_serving("no node has taken the shard yet"));
        }
    };
    if hint.owner == node.id() {
        return node.bring_to_life(kind, key).await;
    }
    let address = address_of(node, hint.owner).await;
    let address = address.ok_or_else(|| not_serving(&format!("nobody says where node {} is", hint.owner)))?;
    Node::of(Arc::clone(node)).spawn_at(&address, kind, key).await
}

fn actor_id(node: &NodeShared, kind: &str, key: &str) -> Result<ActorId, CallError> {
    let unknown = |_| CallError::UnknownKind { kind: kind.into() };
    Ok(node.namespace().actor_id_of(&Kind::new(kind).map_err(unknown)?, key)?)
}
