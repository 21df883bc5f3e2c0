//! Finding out in which datacenter a virtual actor lives.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::{
    ChooseDataCenter, DataCenterId, Discovered, HomeRecord, OnStale, Verdict, in_order, verdict,
};
use archipelago_protocol::link::Hint;
use archipelago_protocol::time::Millis;

use super::ask::{ask_any, may_place, names_of, reached, unreachable};
use super::reach::Reach;
use super::searches::{FarPlace, Sought, search};
use crate::catalog::Target;
use crate::env::within;
use crate::node::NodeShared;
use crate::remote::{Shard, ShardPlace, Subject, WhereIs, Whereabouts, where_is};

/// Where an actor lives.
pub(super) enum Located {
    /// In this datacenter, or nowhere yet.
    Home,
    /// In another one, in this shard, which was last served there.
    Abroad { shard: Shard, hint: Option<Hint> },
}

/// Finds out where the actor of a kind lives, until `until`.
///
/// # Errors
///
/// [`CallError::Unreachable`] if it belongs to a datacenter that does not answer, or the map may not be used.
pub(super) async fn locate(
    node: &Arc<NodeShared>,
    kind: u32,
    target: &Target,
    until: Millis,
) -> Result<Located, CallError> {
    match node.kinds().get(kind as usize).map(|kind| kind.reach()) {
        Some(Reach::Discover) => discover(node, kind, target, until).await,
        Some(Reach::Home(policy)) => {
            let home = home_of(node, &**policy, target.hash)?;
            settle(node, kind, target, home, until).await
        }
        Some(Reach::Local) | None => Ok(Located::Home),
    }
}

/// At home first; then wherever it is active; else at home again, never abroad, if it is certain that it is nowhere else.
async fn discover(
    node: &Arc<NodeShared>,
    kind: u32,
    target: &Target,
    until: Millis,
) -> Result<Located, CallError> {
    let (here, abroad) = look_everywhere(node, target, until).await?;
    let record = match here {
        AtHome::Here => return Ok(Located::Home),
        AtHome::Placed(home) => return settle(node, kind, target, home, until).await,
        AtHome::Not(record) => record,
    };
    match verdict(record, abroad, node.settings().discovery.on_silence) {
        Verdict::Abroad { datacenter, place: FarPlace::Shard(place) } => {
            Ok(at(node, kind, &datacenter, &place).await)
        }
        Verdict::Abroad { place: FarPlace::Elsewhere(home), .. } => {
            settle(node, kind, target, home, until).await
        }
        Verdict::Home | Verdict::Abroad { place: FarPlace::Named(_), .. } => Ok(Located::Home),
        Verdict::CannotSay { by } if by.is_empty() => {
            Err(unreachable("its own does not say whether it has a home"))
        }
        Verdict::CannotSay { by } => Err(unreachable(&names_of(&by))),
        Verdict::Stale => Err(unreachable("the map of datacenters is out of date")),
        Verdict::Full => Err(unreachable("too many searches are under way")),
    }
}

/// What its own datacenter says about an actor, and what the others say, if they have to be asked. One's own is asked again, as
/// long as there is time, if it could not find out and nobody else has the actor.
async fn look_everywhere(
    node: &Arc<NodeShared>,
    target: &Target,
    until: Millis,
) -> Result<(AtHome, Discovered<FarPlace>), CallError> {
    let (now, pause) = (node.env().now(), node.settings().discovery.ask_again_most);
    // The others get their share of the time.
    let mut here = ask_home(node, target, now + Millis(until.since(now).0 / 2)).await;
    if !matches!(here, AtHome::Not(_)) {
        return Ok((here, Discovered::NotFound));
    }
    let abroad = search(node, Sought::Actor(target.id.clone()), until).await?;
    while matches!(here, AtHome::Not(HomeRecord::Unknown))
        && !matches!(abroad, Discovered::Found { .. })
        && node.env().now() + pause < until
    {
        node.env().sleep(pause).await;
        here = ask_home(node, target, until).await;
    }
    Ok((here, abroad))
}

/// What the own datacenter says about an actor.
enum AtHome {
    Here,
    /// It was placed there.
    Placed(DataCenterId),
    /// It is not known to be here.
    Not(HomeRecord),
}

async fn ask_home(node: &Arc<NodeShared>, target: &Target, until: Millis) -> AtHome {
    let subject = Subject::of_actor(&target.id);
    let question = WhereIs { subject, place: false, live: true, relayed: false };
    let limit = until.since(node.env().now());
    let here = within(node.env(), limit, where_is(node, &question)).await;
    match here.unwrap_or(Err(CallError::Timeout { started: false })) {
        Ok(Whereabouts::Shard(place)) if place.residence.is_here() => AtHome::Here,
        Ok(Whereabouts::Shard(ShardPlace { home: Some(home), .. })) => AtHome::Placed(home),
        Ok(_) => AtHome::Not(HomeRecord::Absent),
        Err(error) => {
            tracing::debug!(actor = %target.id, %error, "its own datacenter cannot say where it is");
            AtHome::Not(HomeRecord::Unknown)
        }
    }
}

/// The actor belongs to this datacenter, active or not.
async fn settle(
    node: &Arc<NodeShared>,
    kind: u32,
    target: &Target,
    datacenter: DataCenterId,
    until: Millis,
) -> Result<Located, CallError> {
    let map = node.datacenters().newest();
    if map.is_own(&datacenter) {
        return Ok(Located::Home);
    }
    let entry = map.get(&datacenter).filter(|entry| entry.may_be_asked());
    let entry = entry.ok_or_else(|| unreachable(datacenter.as_str()))?;
    if map.stale && node.settings().discovery.on_stale == OnStale::Fail {
        return Err(unreachable("the map of datacenters is out of date"));
    }
    let subject = Subject::of_actor(&target.id);
    let question = WhereIs { subject, place: may_place(entry), live: false, relayed: false };
    match ask_any(node, entry, &question, until).await {
        Ok(Whereabouts::Shard(place)) => Ok(at(node, kind, &datacenter, &place).await),
        Ok(_) => Err(CallError::UnknownKind { kind: target.id.kind().as_str().into() }),
        Err(error) => {
            tracing::debug!(%datacenter, %error, "the datacenter of an actor does not answer");
            Err(unreachable(datacenter.as_str()))
        }
    }
}

async fn at(node: &Arc<NodeShared>, kind: u32, datacenter: &DataCenterId, place: &ShardPlace) -> Located {
    let shard = Shard { island: node.datacenters().island(datacenter), kind, number: place.number };
    let hint = match &place.owner {
        Some(owner) => reached(node, owner).await,
        None => None,
    };
    Located::Abroad { shard, hint }
}

/// The datacenter that a policy names for the actor with this hash, among all that are known, our own included. One that drains, or
/// is not there now, keeps its actors: nobody else is named in its stead.
///
/// # Errors
///
/// [`CallError::Unreachable`] if none is known, as before the first map.
pub(super) fn home_of(
    node: &NodeShared,
    policy: &dyn ChooseDataCenter,
    actor: u64,
) -> Result<DataCenterId, CallError> {
    let map = node.datacenters().newest();
    let order = in_order(policy, (actor, 0), &map, &map.homes(), |id| node.round_trip(id));
    order.first().map(|entry| entry.id().clone()).ok_or_else(|| unreachable("none is known"))
}
