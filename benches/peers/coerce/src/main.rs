//! The work done by coerce: remote actors of a cluster of two, over its own protocol on plain TCP.
//!
//! Messages are encoded as their bare bytes, which is faster than the JSON of its derive. Metrics and tracing are not
//! compiled in. It offers no setting for TCP's nodelay.

use std::process::ExitCode;

use async_trait::async_trait;
use coerce::actor::context::ActorContext;
use coerce::actor::message::{Handler, Message, MessageUnwrapErr, MessageWrapErr};
use coerce::actor::scheduler::ActorType;
use coerce::actor::system::ActorSystem;
use coerce::actor::{Actor, ActorRef, IntoActorId};
use coerce::remote::RemoteActorRef;
use coerce::remote::system::{NodeId, RemoteActorSystem};
use harness::{Caller, Payload, Peer, Ready, Reason, TARGETS, free_port, reason};

fn main() -> ExitCode {
    harness::run::<Coerce>()
}

struct Echo(Payload);
struct Note(Payload);
struct Count;

impl Message for Echo {
    type Result = Payload;

    fn as_bytes(&self) -> Result<Vec<u8>, MessageWrapErr> {
        Ok(self.0.0.to_vec())
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Self, MessageUnwrapErr> {
        payload(&bytes).map(Self)
    }

    fn write_remote_result(payload: Payload) -> Result<Vec<u8>, MessageWrapErr> {
        Ok(payload.0.to_vec())
    }

    fn read_remote_result(bytes: Vec<u8>) -> Result<Payload, MessageUnwrapErr> {
        payload(&bytes)
    }
}

impl Message for Note {
    type Result = ();

    fn as_bytes(&self) -> Result<Vec<u8>, MessageWrapErr> {
        Ok(self.0.0.to_vec())
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Self, MessageUnwrapErr> {
        payload(&bytes).map(Self)
    }

    fn write_remote_result((): ()) -> Result<Vec<u8>, MessageWrapErr> {
        Ok(Vec::new())
    }

    fn read_remote_result(_: Vec<u8>) -> Result<(), MessageUnwrapErr> {
        Ok(())
    }
}

impl Message for Count {
    type Result = u64;

    fn as_bytes(&self) -> Result<Vec<u8>, MessageWrapErr> {
        Ok(Vec::new())
    }

    fn from_bytes(_: Vec<u8>) -> Result<Self, MessageUnwrapErr> {
        Ok(Self)
    }

    fn write_remote_result(count: u64) -> Result<Vec<u8>, MessageWrapErr> {
        Ok(count.to_le_bytes().to_vec())
    }

    fn read_remote_result(bytes: Vec<u8>) -> Result<u64, MessageUnwrapErr> {
        let bytes = bytes.try_into().map_err(|_| MessageUnwrapErr::DeserializationErr)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

fn payload(bytes: &[u8]) -> Result<Payload, MessageUnwrapErr> {
    bytes.try_into().map(Payload).map_err(|_| MessageUnwrapErr::DeserializationErr)
}

#[derive(Default)]
struct Target {
    notes: u64,
}

impl Actor for Target {}

#[async_trait]
impl Handler<Echo> for Target {
    async fn handle(&mut self, Echo(payload): Echo, _: &mut ActorContext) -> Payload {
        payload
    }
}

#[async_trait]
impl Handler<Note> for Target {
    async fn handle(&mut self, _: Note, _: &mut ActorContext) {
        self.notes += 1;
    }
}

#[async_trait]
impl Handler<Count> for Target {
    async fn handle(&mut self, _: Count, _: &mut ActorContext) -> u64 {
        self.notes
    }
}

async fn node(id: NodeId, name: &str) -> RemoteActorSystem {
    RemoteActorSystem::builder()
        .with_actor_system(ActorSystem::new())
        .with_id(id)
        .with_tag(name)
        .with_handlers(|handlers| {
            handlers
                .with_handler::<Target, Echo>("Target.Echo")
                .with_handler::<Target, Note>("Target.Note")
                .with_handler::<Target, Count>("Target.Count")
        })
        .build()
        .await
}

struct Coerce {
    node: RemoteActorSystem,
}

impl Peer for Coerce {
    const NAME: &'static str = "coerce";
    type Caller = CoerceCaller;

    async fn serve(ready: Ready) -> Result<(), Reason> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let node = node(SERVER, "server").await;
        for target in 0..TARGETS {
            let id = name(target).into_actor_id();
            let started = node.actor_system().new_actor(id, Target::default(), ActorType::Tracked).await;
            started.map_err(reason)?;
        }
        let _server = node.clone().cluster_worker().listen_addr(&address).start().await;
        ready.at(address);
        std::future::pending().await
    }

    async fn connect(address: String) -> Result<Self, Reason> {
        let node = node(CLIENT, "client").await;
        let own = format!("127.0.0.1:{}", free_port()?);
        let worker = node.clone().cluster_worker().listen_addr(own).with_seed_addr(address);
        worker.start().await;
        Ok(Self { node })
    }

    async fn caller(&self, number: u64) -> Result<CoerceCaller, Reason> {
        let id = name(number % TARGETS).into_actor_id();
        let target = RemoteActorRef::<Target>::new(id, SERVER, self.node.clone());
        Ok(CoerceCaller { target: target.into() })
    }
}

struct CoerceCaller {
    target: ActorRef<Target>,
}

impl Caller for CoerceCaller {
    async fn ask(&mut self) -> Result<(), Reason> {
        self.target.send(Echo(Payload::new())).await.map(|_| ()).map_err(reason)
    }

    async fn tell(&mut self) -> Result<(), Reason> {
        self.target.notify(Note(Payload::new())).await.map_err(reason)
    }

    async fn count(&mut self) -> Result<u64, Reason> {
        self.target.send(Count).await.map_err(reason)
    }
}

fn name(target: u64) -> String {
    format!("target-{target}")
}

const SERVER: NodeId = 1;
const CLIENT: NodeId = 2;
