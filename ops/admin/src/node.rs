//! The node itself, its session, and the members of its cluster.

use std::collections::BTreeMap;

use actix_web::web;
use archipelago_protocol::identity::NodeId;
use archipelago_runtime::{ClusterMember, Node, SessionStanding, Suspicion};
use serde::Serialize;

use crate::routes::Admin;
use crate::wire::{Answer, Id, show};

#[derive(Serialize)]
struct NodeView {
    id: Id,
    name: String,
    address: String,
    namespace: String,
    version: String,
    roles: Vec<String>,
    ready: bool,
    leader: Option<Id>,
    session: SessionBody,
}

#[derive(Serialize)]
struct SessionBody {
    standing: &'static str,
    reason: Option<String>,
    serving_for_ms: u64,
    ttl_ms: u64,
    heartbeat_ms: u64,
    stopping: bool,
}

#[derive(Serialize)]
struct Members {
    leader: Option<Id>,
    members: Vec<MemberView>,
}

#[derive(Serialize)]
struct MemberView {
    id: Id,
    name: String,
    address: String,
    roles: Vec<String>,
    version: String,
    kinds: Vec<String>,
    status: String,
    suspect: bool,
    own: bool,
    phi: Option<f64>,
    reachable: Option<bool>,
    load: Option<LoadView>,
}

#[derive(Serialize)]
struct LoadView {
    activations: u32,
    waiting: u32,
}

pub(crate) async fn node(admin: web::Data<Admin>) -> Answer {
    let node = &admin.node;
    let settings = node.settings();
    show(NodeView {
        id: Id(node.id()),
        name: settings.name.clone(),
        address: node.address().to_string(),
        namespace: node.namespace().to_string(),
        version: settings.version.clone(),
        roles: settings.roles.clone(),
        ready: node.session().is_ready(),
        leader: node.leader().map(Id),
        session: session_of(node),
    })
}

pub(crate) async fn session(admin: web::Data<Admin>) -> Answer {
    show(session_of(&admin.node))
}

pub(crate) async fn members(admin: web::Data<Admin>) -> Answer {
    let (node, suspicions) = (&admin.node, admin.node.suspicions().await);
    let own = node.id();
    let members = node.members().into_iter().map(|member| member_of(member, own, &suspicions)).collect();
    show(Members { leader: node.leader().map(Id), members })
}

fn session_of(node: &Node) -> SessionBody {
    let session = node.session();
    let (standing, reason) = match session.standing {
        SessionStanding::Opening => ("opening", None),
        SessionStanding::Live => ("live", None),
        SessionStanding::Closing => ("closing", None),
        SessionStanding::Closed => ("closed", None),
        SessionStanding::Lost(reason) => ("lost", Some(reason)),
        _ => ("unknown", None),
    };
    SessionBody {
        standing,
        reason,
        serving_for_ms: session.serving_for.0,
        ttl_ms: session.ttl.0,
        heartbeat_ms: session.heartbeat.0,
        stopping: session.stopping,
    }
}

fn member_of(member: ClusterMember, own: NodeId, suspicions: &BTreeMap<NodeId, Suspicion>) -> MemberView {
    let ClusterMember { info, status, suspect, load, .. } = member;
    let suspicion = suspicions.get(&info.id);
    MemberView {
        id: Id(info.id),
        name: info.name,
        address: info.address.to_string(),
        roles: info.roles.into_iter().collect(),
        version: info.version,
        kinds: info.kinds.into_iter().collect(),
        status: format!("{status:?}").to_lowercase(),
        suspect,
        own: info.id == own,
        // JSON has no infinity.
        phi: suspicion.map(|suspicion| suspicion.phi.clamp(0.0, MOST_PHI)),
        reachable: suspicion.map(|suspicion| suspicion.reachable),
        load: load.map(|load| LoadView { activations: load.activations, waiting: load.waiting }),
    }
}

/// Beyond it a silence is certain enough.
const MOST_PHI: f64 = 1_000.0;
