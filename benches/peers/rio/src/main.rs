//! The work done by rio-rs: service objects on one server, asked by its client over plain TCP.
//!
//! A client sends one request at a time, so every caller has a client, and a connection, of its own. There is no tell.
//! Membership and placement are kept in memory, the fastest it has. It offers no setting for TCP's nodelay.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use harness::{Caller, Payload, Peer, Ready, Reason, TARGETS, reason};
use rio_rs::client::Client;
use rio_rs::cluster::storage::Member;
use rio_rs::cluster::storage::local::LocalStorage;
use rio_rs::object_placement::local::LocalObjectPlacement;
use rio_rs::prelude::*;
use serde::{Deserialize, Serialize};

fn main() -> ExitCode {
    harness::run::<Rio>()
}

#[derive(TypeName, Message, Serialize, Deserialize)]
struct Echo(Payload);

#[derive(TypeName, Message, Serialize, Deserialize)]
struct Count;

#[derive(TypeName, WithId, Default)]
struct Target {
    id: String,
}

#[async_trait]
impl Handler<Echo> for Target {
    type Returns = Echo;
    type Error = NoopError;
    async fn handle(&mut self, echo: Echo, _: Arc<AppData>) -> Result<Echo, NoopError> {
        Ok(echo)
    }
}

#[async_trait]
impl Handler<Count> for Target {
    type Returns = u64;
    type Error = NoopError;
    async fn handle(&mut self, _: Count, _: Arc<AppData>) -> Result<u64, NoopError> {
        Ok(0)
    }
}

struct Rio {
    members: LocalStorage,
}

impl Peer for Rio {
    const NAME: &'static str = "rio-rs";
    type Caller = RioCaller;

    async fn serve(ready: Ready) -> Result<(), Reason> {
        let mut registry = Registry::new();
        registry.add_type::<Target>();
        registry.add_handler::<Target, Echo>();
        registry.add_handler::<Target, Count>();
        let members = PeerToPeerClusterProvider::builder().members_storage(LocalStorage::default()).build();
        let mut server = Server::builder()
            .address("127.0.0.1:0".to_owned())
            .registry(registry)
            .app_data(AppData::new())
            .cluster_provider(members)
            .object_placement_provider(LocalObjectPlacement::default())
            .build();
        server.prepare().await.map_err(reason)?;
        let listener = server.bind().await.map_err(reason)?;
        ready.at(listener.local_addr().map_err(reason)?);
        server.run(listener).await.map_err(reason)
    }

    async fn connect(address: String) -> Result<Self, Reason> {
        let (ip, port) = address.split_once(':').ok_or("not an address")?;
        let mut server = Member::new(ip.to_owned(), port.to_owned());
        server.set_active(true);
        let members = LocalStorage::default();
        members.push(server).await.map_err(reason)?;
        Ok(Self { members })
    }

    async fn caller(&self, number: u64) -> Result<RioCaller, Reason> {
        let client = ClientBuilder::new().members_storage(self.members.clone()).build().map_err(reason)?;
        Ok(RioCaller { client, target: format!("target-{}", number % TARGETS) })
    }
}

struct RioCaller {
    client: Client<LocalStorage>,
    target: String,
}

impl Caller for RioCaller {
    async fn ask(&mut self) -> Result<(), Reason> {
        let echo = Echo(Payload::new());
        let answer = self.client.send::<Echo, NoopError>("Target", &self.target, &echo).await;
        answer.map(|_| ()).map_err(whole_reason)
    }

    async fn tell(&mut self) -> Result<(), Reason> {
        Err("its client offers no message without an answer".to_owned())
    }

    async fn count(&mut self) -> Result<u64, Reason> {
        self.client.send::<u64, NoopError>("Target", &self.target, &Count).await.map_err(whole_reason)
    }
}

/// Its errors say little for users and more for programmers.
fn whole_reason(error: RequestError<NoopError>) -> Reason {
    reason(format!("{error:?}"))
}
