//! The other nodes and datacenters, what is on its way to them, and what did not arrive.

use std::collections::BTreeMap;

use actix_web::web;
use archipelago_runtime::{KeptLetter, LaneView, PeerView};
use serde::Serialize;

use crate::routes::Admin;
use crate::wire::{Answer, Id, show};

#[derive(Serialize)]
struct Peers {
    peers: Vec<Peer>,
}

#[derive(Serialize)]
struct Peer {
    id: Id,
    name: String,
    address: String,
    datacenter: String,
    client: bool,
    connected: bool,
    leaving: bool,
    silent_for_ms: Option<u64>,
}

#[derive(Serialize)]
struct Lanes {
    lanes: Vec<Lane>,
    silent: Vec<String>,
}

#[derive(Serialize)]
struct Lane {
    from: String,
    node: Id,
    to: String,
    connected: bool,
    waiting_bytes: usize,
    answer_bytes: usize,
    in_flight: usize,
    stalled: usize,
}

#[derive(Serialize)]
struct Letters {
    letters: Vec<Letter>,
}

#[derive(Serialize)]
struct Letter {
    number: u64,
    at_unix_ms: u64,
    node: Option<Id>,
    target: String,
    message: String,
    reason: String,
}

#[derive(Serialize)]
struct DataCenters {
    own: Option<String>,
    stale: bool,
    age_ms: Option<u64>,
    version: String,
    datacenters: Vec<DataCenter>,
}

#[derive(Serialize)]
struct DataCenter {
    id: String,
    name: String,
    region: String,
    zone: String,
    labels: BTreeMap<String, String>,
    endpoints: Vec<String>,
    standing: String,
    round_trip_ms: Option<f64>,
}

pub(crate) async fn peers(admin: web::Data<Admin>) -> Answer {
    let view = |peer: PeerView| Peer {
        id: Id(peer.node),
        name: peer.name,
        address: peer.address.to_string(),
        datacenter: peer.datacenter,
        client: peer.client,
        connected: peer.connected,
        leaving: peer.leaving,
        silent_for_ms: peer.silent_for.map(|silent| silent.0),
    };
    show(Peers { peers: admin.node.peers().into_iter().map(view).collect() })
}

pub(crate) async fn lanes(admin: web::Data<Admin>) -> Answer {
    let gathered = admin.node.lanes().await;
    let view = |lane: LaneView| Lane {
        from: lane.from,
        node: Id(lane.node),
        to: lane.to,
        connected: lane.connected,
        waiting_bytes: lane.waiting_bytes,
        answer_bytes: lane.answer_bytes,
        in_flight: lane.in_flight,
        stalled: lane.stalled,
    };
    show(Lanes { lanes: gathered.items.into_iter().map(view).collect(), silent: gathered.silent })
}

pub(crate) async fn dead_letters(admin: web::Data<Admin>) -> Answer {
    let view = |kept: KeptLetter| Letter {
        number: kept.number,
        at_unix_ms: kept.at_millis,
        node: kept.node.map(Id),
        target: kept.letter.target,
        message: kept.letter.message,
        reason: kept.letter.reason.to_string(),
    };
    show(Letters { letters: admin.node.dead_letters().into_iter().map(view).collect() })
}

pub(crate) async fn datacenters(admin: web::Data<Admin>) -> Answer {
    let node = &admin.node;
    let (map, age) = (node.datacenters(), node.datacenters_age().await);
    let view = |entry: &archipelago_protocol::datacenter::MapEntry| DataCenter {
        id: entry.id().to_string(),
        name: entry.info.name().to_owned(),
        region: entry.info.region().to_owned(),
        zone: entry.info.zone().to_owned(),
        labels: entry.info.labels().clone(),
        endpoints: entry.info.endpoints().iter().map(ToString::to_string).collect(),
        standing: entry.standing.to_string().to_lowercase(),
        round_trip_ms: node.datacenter_round_trip(entry.id()).map(|trip| trip.as_secs_f64() * 1e3),
    };
    show(DataCenters {
        own: map.own.as_ref().map(ToString::to_string),
        stale: map.stale,
        age_ms: age.map(|age| age.0),
        version: map.version.to_string(),
        datacenters: map.entries.iter().map(view).collect(),
    })
}
