//! Which actors are active on a node, a page at a time.
//!
//! The order is that of the tables in which they stand, so that a page costs what it shows and not what there is: nothing is
//! sorted but one table. A search looks at so many actors for one page and no more; the page then says where to go on.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::activation::{ActivationState, DeactivateReason};
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{ActorId, Generation, Kind, NodeId, OwnedKey};
use archipelago_protocol::time::Millis;

use super::cursor::ActorCursor;
use super::look_at;
use crate::arbiter::{ArbiterLocal, not_serving};
use crate::catalog::Target;
use crate::env::within;
use crate::node::{Node, NodeShared};

/// An actor that is active on this node, or about to be, or about to end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorView {
    /// Who it is.
    pub actor: ActorId,
    /// The shard it belongs to; none if its kind is not divided into shards.
    pub shard: Option<u32>,
    /// The generation under which the node owns it.
    pub generation: Generation,
    /// Where its life stands.
    pub state: ActivationState,
    /// Why it is to go, if it is.
    pub leaving: Option<DeactivateReason>,
    /// Messages that are being handled.
    pub running: u32,
    /// Messages that wait.
    pub waiting: usize,
    /// How long ago its last message began or ended.
    pub idle: Millis,
}

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorQuery {
    /// Only this kind.
    pub kind: Option<String>,
    /// Only keys that begin so.
    pub prefix: String,
    /// Where to go on; the default is the beginning.
    pub from: ActorCursor,
    /// How many to show at most, up to [`MOST`](Self::MOST).
    pub limit: usize,
}

/// Some of the actors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorPage {
    /// Those that fit the query.
    pub actors: Vec<ActorView>,
    /// Where to go on; nothing if there are no more. A search may end a page early.
    pub next: Option<ActorCursor>,
    /// How many were looked at.
    pub looked_at: usize,
}

/// Where an actor is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Whereabouts {
    /// Who it is.
    pub actor: ActorId,
    /// Which node owns its shard, its range or itself, and at which generation; none if nobody does.
    pub owner: Option<(NodeId, Generation)>,
    /// Its activation on this node, if there is one.
    pub here: Option<ActorView>,
}

/// A page cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchPlace {
    /// The node knows no such kind.
    #[error("the node knows no kind {kind:?}")]
    Kind {
        /// The kind that was asked for.
        kind: String,
    },
    /// An arbiter does not answer: an actor blocks it, or the node has stopped.
    #[error("data arbiter {arbiter} does not answer")]
    Silent {
        /// Its number.
        arbiter: u16,
    },
}

/// What is asked of one table.
pub(crate) struct Wanted<'a> {
    pub(crate) table: usize,
    pub(crate) after: Option<&'a (u64, String)>,
    pub(crate) prefix: &'a str,
    /// How many to look at, and how many to show.
    pub(crate) look_at: usize,
    pub(crate) room: usize,
}

/// What one table has shown.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) actors: Vec<ActorView>,
    pub(crate) looked_at: usize,
    /// The last one that was looked at, if there are more.
    pub(crate) last: Option<(u64, String)>,
}

impl Default for ActorQuery {
    fn default() -> Self {
        Self { kind: None, prefix: String::new(), from: ActorCursor::default(), limit: 100 }
    }
}

impl ActorQuery {
    /// How many actors one page shows at most.
    pub const MOST: usize = 1_000;

    /// How many actors are looked at for one page at most.
    pub const MOST_LOOKED_AT: usize = 20_000;
}

impl Node {
    /// A page of the actors that are active on this node.
    ///
    /// # Errors
    ///
    /// [`NoSuchPlace`] if there is no such kind, or an arbiter does not answer.
    pub async fn active_actors(&self, query: ActorQuery) -> Result<ActorPage, NoSuchPlace> {
        let node = self.shared();
        let kind = query.kind.as_deref().map(|kind| index_of(node, kind)).transpose()?;
        let limit = query.limit.clamp(1, ActorQuery::MOST);
        let mut page = ActorPage { actors: Vec::new(), next: None, looked_at: 0 };
        let mut at = query.from;
        while at.arbiter < node.data_arbiters().end {
            if page.actors.len() >= limit || page.looked_at >= ActorQuery::MOST_LOOKED_AT {
                page.next = Some(at);
                return Ok(page);
            }
            let (arbiter, prefix, room) = (at.arbiter, query.prefix.clone(), limit - page.actors.len());
            let part = look_at(node, arbiter, move |local| read_on(local, kind, &prefix, at, room)).await;
            let part = part.ok_or(NoSuchPlace::Silent { arbiter })?;
            page.actors.extend(part.actors);
            page.looked_at += part.looked_at;
            at = part.at;
        }
        Ok(page)
    }

    /// Where an actor is, and how it is doing if that is here.
    ///
    /// # Errors
    ///
    /// [`CallError`] if there is no such kind, the key can be none, or the directory or the arbiter does not answer.
    pub async fn whereabouts(&self, kind: &str, key: &str) -> Result<Whereabouts, CallError> {
        let node = self.shared();
        let unknown = || CallError::UnknownKind { kind: kind.into() };
        let index = index_of(node, kind).map_err(|_| unknown())?;
        let name = node.kinds().get(index as usize).ok_or_else(unknown)?.kind().clone();
        let actor = node.namespace().actor_id_of(&name, key).map_err(CallError::from)?;
        let target = Target { hash: actor.stable_hash(), id: actor.clone() };
        let owner = owner_of(node, index, &target).await?;
        let arbiter = node.arbiter_of(index, target.hash);
        let here = look_at(node, arbiter, move |local| {
            local.any_kind(index).and_then(|kind| kind.view(&target, local.now()))
        });
        let here =
            here.await.ok_or_else(|| not_serving(&format!("data arbiter {arbiter} does not answer")))?;
        Ok(Whereabouts { actor, owner, here })
    }
}

async fn owner_of(
    node: &Arc<NodeShared>,
    kind: u32,
    target: &Target,
) -> Result<Option<(NodeId, Generation)>, CallError> {
    let Some(key) = record_of(node, kind, target) else { return Ok(None) };
    let limit = node.settings().call_timeout;
    let found = within(node.env(), limit, node.directory().lookup(&key)).await;
    let found = found.ok_or(CallError::Timeout { started: false })?;
    let record = found.map_err(|error| not_serving(&error.to_string()))?;
    Ok(record.map(|record| (record.placement.node, record.placement.generation)))
}

/// The record in the directory that says who owns the actor; none if it is not known which range it belongs to.
fn record_of(node: &NodeShared, kind: u32, target: &Target) -> Option<OwnedKey> {
    let shared = node.kinds().get(kind as usize)?;
    if shared.layout().is_by_range() {
        let known = node.ranges().table(kind)?;
        let partition = known.table.find(target.id.key().as_str()).partition.clone();
        return Some(OwnedKey::Range { kind: shared.kind().clone(), partition });
    }
    node.key_for(node.shard(kind, target.hash), &target.id)
}

fn index_of(node: &NodeShared, kind: &str) -> Result<u32, NoSuchPlace> {
    let known = Kind::new(kind).ok().and_then(|kind| node.kind_index(&kind));
    known.ok_or_else(|| NoSuchPlace::Kind { kind: kind.to_owned() })
}

/// What one turn of an arbiter has shown, and where the listing goes on.
struct Part {
    actors: Vec<ActorView>,
    looked_at: usize,
    at: ActorCursor,
}

fn read_on(
    local: &Rc<ArbiterLocal>,
    only: Option<u32>,
    prefix: &str,
    mut at: ActorCursor,
    room: usize,
) -> Part {
    let (mut actors, mut looked_at) = (Vec::new(), 0);
    while let Some(kind) = local.any_kind(at.kind) {
        if actors.len() >= room || looked_at >= LOOKED_AT_IN_A_TURN {
            return Part { actors, looked_at, at };
        }
        if only.is_some_and(|only| only != at.kind) || at.table as usize >= kind.tables() {
            at.next_kind();
            continue;
        }
        let wanted = Wanted {
            table: at.table as usize,
            after: at.after.as_ref(),
            prefix,
            look_at: LOOKED_AT_IN_A_TURN - looked_at,
            room: room - actors.len(),
        };
        let listed = kind.list(&wanted, local.now());
        looked_at += listed.looked_at;
        actors.extend(listed.actors);
        match listed.last {
            Some(last) => at.after = Some(last),
            None => at.next_table(),
        }
    }
    at.next_arbiter();
    Part { actors, looked_at, at }
}

/// How many actors are looked at before an arbiter does something else.
const LOOKED_AT_IN_A_TURN: usize = 2_000;
