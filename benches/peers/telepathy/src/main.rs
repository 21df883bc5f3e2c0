//! The work done by actix-telepathy: actix actors of two nodes, over its cluster on plain TCP.
//!
//! It has no ask: `RemoteAddr::send` is not implemented. So an ask is a tell each way, matched by a number, as its
//! users must do it. It offers no setting for TCP's nodelay.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::prelude::*;
use actix_broker::BrokerSubscribe;
use actix_telepathy::prelude::*;
use actix_telepathy::{AddrRequest, AddrResolver, Node};
use harness::{Caller, Payload, Peer, Ready, Reason, TARGETS, free_port, reason};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

fn main() -> ExitCode {
    harness::run_on::<Telepathy>(|work| System::new().block_on(work))
}

#[derive(RemoteMessage, Serialize, Deserialize)]
struct Echo {
    number: u64,
    payload: Payload,
}

#[derive(RemoteMessage, Serialize, Deserialize)]
struct Note {
    payload: Payload,
}

#[derive(RemoteMessage, Serialize, Deserialize)]
struct Count {
    number: u64,
}

#[derive(RemoteMessage, Serialize, Deserialize)]
struct Echoed {
    number: u64,
    payload: Payload,
}

#[derive(RemoteMessage, Serialize, Deserialize)]
struct Counted {
    number: u64,
    notes: u64,
}

#[derive(RemoteActor)]
#[remote_messages(Echo, Note, Count)]
struct Target {
    number: u64,
    notes: u64,
    asker: Option<RemoteAddr>,
}

impl Actor for Target {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let register = AddrRequest::Register(ctx.address().recipient(), name(self.number));
        AddrResolver::from_registry().do_send(register);
        self.subscribe_system_async::<ClusterLog>(ctx);
    }
}

impl Handler<ClusterLog> for Target {
    type Result = ();
    fn handle(&mut self, event: ClusterLog, _: &mut Context<Self>) {
        if let ClusterLog::NewMember(node) = event {
            self.asker = Some(node.get_remote_addr(Asker::ACTOR_ID.to_owned()));
        }
    }
}

impl Handler<Echo> for Target {
    type Result = ();
    fn handle(&mut self, Echo { number, payload }: Echo, _: &mut Context<Self>) {
        if let Some(asker) = &self.asker {
            asker.do_send(Echoed { number, payload });
        }
    }
}

impl Handler<Note> for Target {
    type Result = ();
    fn handle(&mut self, _: Note, _: &mut Context<Self>) {
        self.notes += 1;
    }
}

impl Handler<Count> for Target {
    type Result = ();
    fn handle(&mut self, Count { number }: Count, _: &mut Context<Self>) {
        if let Some(asker) = &self.asker {
            asker.do_send(Counted { number, notes: self.notes });
        }
    }
}

/// Receives the answers and hands them to those who wait.
#[derive(RemoteActor)]
#[remote_messages(Echoed, Counted)]
struct Asker {
    waiting: Waiting,
    joined: mpsc::UnboundedSender<Node>,
}

impl Actor for Asker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.register(ctx.address().recipient());
        self.subscribe_system_async::<ClusterLog>(ctx);
    }
}

impl Handler<ClusterLog> for Asker {
    type Result = ();
    fn handle(&mut self, event: ClusterLog, _: &mut Context<Self>) {
        if let ClusterLog::NewMember(node) = event {
            let _ = self.joined.send(node);
        }
    }
}

impl Handler<Echoed> for Asker {
    type Result = ();
    fn handle(&mut self, Echoed { number, .. }: Echoed, _: &mut Context<Self>) {
        self.waiting.answer(number, 0);
    }
}

impl Handler<Counted> for Asker {
    type Result = ();
    fn handle(&mut self, Counted { number, notes }: Counted, _: &mut Context<Self>) {
        self.waiting.answer(number, notes);
    }
}

/// Who waits for the answer with which number.
#[derive(Clone, Default)]
struct Waiting(Arc<(AtomicU64, Mutex<HashMap<u64, oneshot::Sender<u64>>>)>);

impl Waiting {
    fn expect(&self) -> (u64, oneshot::Receiver<u64>) {
        let (sender, receiver) = oneshot::channel();
        let number = self.0.0.fetch_add(1, Ordering::Relaxed);
        self.table().insert(number, sender);
        (number, receiver)
    }

    fn answer(&self, number: u64, value: u64) {
        if let Some(sender) = self.table().remove(&number) {
            // The one who waited may have given up.
            let _ = sender.send(value);
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<u64>>> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Telepathy {
    server: Node,
    waiting: Waiting,
}

impl Peer for Telepathy {
    const NAME: &'static str = "actix-telepathy";
    type Caller = TelepathyCaller;

    async fn serve(ready: Ready) -> Result<(), Reason> {
        let address = free_address()?;
        for number in 0..TARGETS {
            Target { number, notes: 0, asker: None }.start();
        }
        let _cluster = Cluster::new(address, Vec::new());
        // Nothing tells when the cluster listens, but from then on nobody else can.
        while TcpListener::bind(address).is_ok() {
            tokio::task::yield_now().await;
        }
        ready.at(address);
        std::future::pending().await
    }

    async fn connect(address: String) -> Result<Self, Reason> {
        let (joined, mut nodes) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        Asker { waiting: waiting.clone(), joined }.start();
        let _cluster = Cluster::new(free_address()?, vec![address.parse().map_err(reason)?]);
        let server = nodes.recv().await.ok_or("no node joined")?;
        Ok(Self { server, waiting })
    }

    async fn caller(&self, number: u64) -> Result<TelepathyCaller, Reason> {
        let target = self.server.get_remote_addr(name(number % TARGETS));
        Ok(TelepathyCaller { target, waiting: self.waiting.clone() })
    }
}

struct TelepathyCaller {
    target: RemoteAddr,
    waiting: Waiting,
}

impl Caller for TelepathyCaller {
    async fn ask(&mut self) -> Result<(), Reason> {
        let (number, answer) = self.waiting.expect();
        self.target.do_send(Echo { number, payload: Payload::new() });
        answer.await.map(|_| ()).map_err(reason)
    }

    async fn tell(&mut self) -> Result<(), Reason> {
        self.target.do_send(Note { payload: Payload::new() });
        Ok(())
    }

    async fn count(&mut self) -> Result<u64, Reason> {
        let (number, answer) = self.waiting.expect();
        self.target.do_send(Count { number });
        answer.await.map_err(reason)
    }
}

fn free_address() -> Result<SocketAddr, Reason> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

fn name(target: u64) -> String {
    format!("target-{target}")
}
