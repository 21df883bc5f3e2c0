//! Whether two nodes fit together.

use alloc::format;
use alloc::string::String;

use super::hello::{Hello, PeerKind};
use super::refusal::{Refusal, RefusalReason};

/// Compares the two hellos of a connection and says which version to speak.
///
/// The node that was dialled calls it with the hello that it would answer with, whose
/// [`lane`](Hello::lane) is the [mirror](super::LaneEnds::mirrored) of what it expects to be asked for; the one that
/// dialled calls it, through [`Welcome::check`](super::Welcome::check), with the answer. Both find the same.
///
/// # Errors
///
/// [`Refusal`]: what does not fit, with the values of both sides.
pub fn negotiate(ours: &Hello, theirs: &Hello) -> Result<u16, Refusal> {
    known_kind(theirs.kind)?;
    not_both_clients(ours.kind, theirs.kind)?;
    same(RefusalReason::Cluster, "cluster", &ours.cluster, &theirs.cluster)?;
    same(RefusalReason::Namespace, "namespace", ours.namespace.as_str(), theirs.namespace.as_str())?;
    let version = common_version(ours, theirs)?;
    not_ourselves(ours, theirs)?;
    right_addressee(ours, theirs)?;
    right_seat(ours, theirs)?;
    if ours.kind == PeerKind::Member && theirs.kind == PeerKind::Member {
        same(RefusalReason::Datacenter, "datacenter", &ours.datacenter, &theirs.datacenter)?;
        same_store(ours, theirs)?;
    }
    Ok(version)
}

fn known_kind(kind: PeerKind) -> Result<(), Refusal> {
    match kind {
        PeerKind::Other(code) => {
            refuse(RefusalReason::Kind, format!("peers of kind {code} are not known here"))
        }
        _ => Ok(()),
    }
}

/// Clients host nothing, so they have nothing to say to each other.
fn not_both_clients(ours: PeerKind, theirs: PeerKind) -> Result<(), Refusal> {
    match (ours, theirs) {
        (PeerKind::Client, PeerKind::Client) => {
            refuse(RefusalReason::Kind, "both sides are clients: a client talks to members only".into())
        }
        _ => Ok(()),
    }
}

/// Texts of a peer are shown quoted and escaped: they end up in logs.
fn same(reason: RefusalReason, what: &str, ours: &str, theirs: &str) -> Result<(), Refusal> {
    if ours == theirs {
        return Ok(());
    }
    refuse(reason, format!("our {what} is {ours:?}, the peer's is {theirs:?}"))
}

fn common_version(ours: &Hello, theirs: &Hello) -> Result<u16, Refusal> {
    ours.versions.newest_common(theirs.versions).ok_or_else(|| {
        let text = format!("we speak versions {}, the peer speaks {}", ours.versions, theirs.versions);
        Refusal::new(RefusalReason::Version, text)
    })
}

fn not_ourselves(ours: &Hello, theirs: &Hello) -> Result<(), Refusal> {
    if ours.node.id != theirs.node.id {
        return Ok(());
    }
    let text = format!("node {} at {} dialled itself", ours.node.id, theirs.node.address);
    refuse(RefusalReason::Ourselves, text)
}

/// Either side may be the one that dialled, and so the one that expects somebody.
fn right_addressee(ours: &Hello, theirs: &Hello) -> Result<(), Refusal> {
    let (we, they) = (ours.node.id, theirs.node.id);
    if let Some(expected) = theirs.expects.filter(|&expected| expected != we) {
        return refuse(RefusalReason::Addressee, format!("the peer expected node {expected}, we are {we}"));
    }
    match ours.expects.filter(|&expected| expected != they) {
        Some(expected) => {
            refuse(RefusalReason::Addressee, format!("we expected node {expected}, the peer is {they}"))
        }
        None => Ok(()),
    }
}

fn right_seat(ours: &Hello, theirs: &Hello) -> Result<(), Refusal> {
    if ours.lane == theirs.lane.mirrored() {
        return Ok(());
    }
    let (ours, theirs) = (ours.lane, theirs.lane);
    let text = format!(
        "we connect our {} to the peer's {}, the peer connects its {} to our {}",
        ours.from, ours.to, theirs.from, theirs.to
    );
    refuse(RefusalReason::Seat, text)
}

fn same_store(ours: &Hello, theirs: &Hello) -> Result<(), Refusal> {
    if ours.store == theirs.store {
        return Ok(());
    }
    let text = format!(
        "our store is {}, the peer's is {}: {}",
        shown(ours.store.as_deref()),
        shown(theirs.store.as_deref()),
        advice(ours, theirs)
    );
    refuse(RefusalReason::Store, text)
}

fn advice(ours: &Hello, theirs: &Hello) -> &'static str {
    let is_embedded =
        |hello: &Hello| hello.store.as_deref().is_none_or(|store| store.starts_with("embedded"));
    if is_embedded(ours) || is_embedded(theirs) {
        "the embedded backend cannot span processes; set backend.kind or embedded.serve"
    } else {
        "the nodes of a cluster need the same backend.kind, and the same place in that store"
    }
}

fn shown(store: Option<&str>) -> String {
    store.map_or_else(|| "not named".into(), |store| format!("{store:?}"))
}

fn refuse(reason: RefusalReason, text: String) -> Result<(), Refusal> {
    Err(Refusal::new(reason, text))
}

#[cfg(test)]
mod tests;
