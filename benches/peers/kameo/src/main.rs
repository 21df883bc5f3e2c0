//! The work done by kameo: remote actors in a swarm of two, over libp2p on TCP with noise and yamux.
//!
//! Its swarm is made by hand, so that it listens on loopback only and finds its peer by address instead of by multicast. Every
//! message is a request on a stream of its own; more streams than its default of 100 are allowed, since more are in flight. A
//! tell without an acknowledgement is dropped when those are used up, so tells wait for theirs, 64 at a time.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt;
use harness::{Caller, Payload, Peer, Ready, Reason, TARGETS, reason};
use kameo::prelude::*;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, Swarm, SwarmBuilder, noise, tcp, yamux};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

fn main() -> ExitCode {
    harness::run::<Kameo>()
}

#[derive(Serialize, Deserialize)]
struct Echo(Payload);

#[derive(Serialize, Deserialize)]
struct Note(Payload);

#[derive(Serialize, Deserialize)]
struct Count;

#[derive(Actor, RemoteActor, Default)]
struct Target {
    notes: u64,
}

#[derive(Reply, Serialize, Deserialize)]
struct Echoed(Payload);

#[remote_message]
impl Message<Echo> for Target {
    type Reply = Echoed;

    async fn handle(&mut self, Echo(payload): Echo, _: &mut Context<Self, Echoed>) -> Echoed {
        Echoed(payload)
    }
}

#[remote_message]
impl Message<Note> for Target {
    type Reply = ();

    async fn handle(&mut self, _: Note, _: &mut Context<Self, ()>) {
        self.notes += 1;
    }
}

#[remote_message]
impl Message<Count> for Target {
    type Reply = u64;

    async fn handle(&mut self, _: Count, _: &mut Context<Self, u64>) -> u64 {
        self.notes
    }
}

#[derive(Default)]
struct Kameo {
    /// Looked up once each.
    known: Mutex<HashMap<u64, RemoteActorRef<Target>>>,
}

impl Peer for Kameo {
    const NAME: &'static str = "kameo";
    const TELLERS: u64 = 64;
    type Caller = KameoCaller;

    async fn serve(ready: Ready) -> Result<(), Reason> {
        let mut swarm = swarm()?;
        let peer = *swarm.local_peer_id();
        let address = loop {
            if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
                break address;
            }
        };
        tokio::spawn(drive(swarm));
        for target in 0..TARGETS {
            let started = Target::spawn(Target::default());
            started.register(name(target)).await.map_err(reason)?;
        }
        ready.at(format!("{address}/p2p/{peer}"));
        std::future::pending().await
    }

    async fn connect(address: String) -> Result<Self, Reason> {
        let address: Multiaddr = address.parse().map_err(reason)?;
        let mut swarm = swarm()?;
        if let Some(Protocol::P2p(server)) = address.iter().last() {
            swarm.add_peer_address(server, address.clone());
        }
        swarm.dial(address).map_err(reason)?;
        tokio::spawn(drive(swarm));
        Ok(Self::default())
    }

    async fn caller(&self, number: u64) -> Result<KameoCaller, Reason> {
        let (target, mut known) = (number % TARGETS, self.known.lock().await);
        if let Some(target) = known.get(&target) {
            return Ok(KameoCaller { target: target.clone() });
        }
        let found = RemoteActorRef::<Target>::lookup(name(target)).await.map_err(reason)?;
        let found = found.ok_or("the target is not found")?;
        known.insert(target, found.clone());
        Ok(KameoCaller { target: found })
    }
}

struct KameoCaller {
    target: RemoteActorRef<Target>,
}

impl Caller for KameoCaller {
    async fn ask(&mut self) -> Result<(), Reason> {
        self.target.ask(&Echo(Payload::new())).await.map(|_| ()).map_err(reason)
    }

    async fn tell(&mut self) -> Result<(), Reason> {
        self.target.tell(&Note(Payload::new())).send_ack().await.map_err(reason)
    }

    async fn count(&mut self) -> Result<u64, Reason> {
        self.target.ask(&Count).await.map_err(reason)
    }
}

fn swarm() -> Result<Swarm<remote::Behaviour>, Reason> {
    let config = || {
        let mut config = yamux::Config::default();
        config.set_max_num_streams(STREAMS);
        config
    };
    let messaging = remote::messaging::Config::default()
        .with_request_timeout(Duration::from_secs(30))
        .with_max_concurrent_streams(STREAMS);
    let mut swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(tcp::Config::default().nodelay(true), noise::Config::new, config)
        .map_err(reason)?
        .with_behaviour(|key| remote::Behaviour::new(key.public().to_peer_id(), messaging))
        .map_err(reason)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(300)))
        .build();
    swarm.behaviour().try_init_global().map_err(reason)?;
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().map_err(reason)?).map_err(reason)?;
    Ok(swarm)
}

async fn drive(mut swarm: Swarm<remote::Behaviour>) {
    loop {
        swarm.select_next_some().await;
    }
}

fn name(target: u64) -> String {
    format!("target-{target}")
}

/// More than are ever in flight.
const STREAMS: usize = 4_096;
