//! The work done by ractor: actors of two nodes of `ractor_cluster`, over plain TCP.
//!
//! A remote actor is found through its process group, which the nodes tell each other. Messages are encoded as their bare bytes.

use std::process::ExitCode;
use std::time::Duration;

use harness::{Caller, Payload, Peer, Ready, Reason, TARGETS, free_port, reason};
use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, pg};
use ractor_cluster::{NodeServer, NodeServerMessage, RactorClusterMessage};

fn main() -> ExitCode {
    harness::run::<Ractor>()
}

#[derive(RactorClusterMessage)]
enum Word {
    #[rpc]
    Echo(Vec<u8>, RpcReplyPort<Vec<u8>>),
    Note(Vec<u8>),
    #[rpc]
    Count(RpcReplyPort<u64>),
}

struct Target;

impl Actor for Target {
    type Msg = Word;
    type State = u64;
    type Arguments = String;

    async fn pre_start(&self, own: ActorRef<Word>, group: String) -> Result<u64, ActorProcessingErr> {
        pg::join(group, vec![own.get_cell()]);
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Word>, word: Word, notes: &mut u64) -> Result<(), ActorProcessingErr> {
        match word {
            Word::Echo(payload, reply) => reply.send(payload)?,
            Word::Note(_) => *notes += 1,
            Word::Count(reply) => reply.send(*notes)?,
        }
        Ok(())
    }
}

async fn node(name: &str, port: u16) -> Result<ActorRef<NodeServerMessage>, Reason> {
    let server =
        NodeServer::new(port, "cookie".to_owned(), name.to_owned(), "127.0.0.1".to_owned(), None, None);
    let (node, _) = Actor::spawn(None, server, ()).await.map_err(reason)?;
    Ok(node)
}

struct Ractor {
    _node: ActorRef<NodeServerMessage>,
}

impl Peer for Ractor {
    const NAME: &'static str = "ractor";
    type Caller = RactorCaller;

    async fn serve(ready: Ready) -> Result<(), Reason> {
        let port = free_port()?;
        let _node = node("server", port).await?;
        for target in 0..TARGETS {
            Actor::spawn(None, Target, group(target)).await.map_err(reason)?;
        }
        ready.at(port);
        std::future::pending().await
    }

    async fn connect(port: String) -> Result<Self, Reason> {
        let node = node("client", free_port()?).await?;
        ractor_cluster::client_connect(&node, format!("127.0.0.1:{port}")).await.map_err(reason)?;
        Ok(Self { _node: node })
    }

    async fn caller(&self, number: u64) -> Result<RactorCaller, Reason> {
        let members = pg::get_members(&group(number % TARGETS));
        let target = members.into_iter().find(|member| !member.get_id().is_local());
        let target = target.ok_or("the target is not known yet")?;
        Ok(RactorCaller { target: target.into() })
    }
}

struct RactorCaller {
    target: ActorRef<Word>,
}

impl RactorCaller {
    async fn call<T: Send + 'static>(&self, word: impl FnOnce(RpcReplyPort<T>) -> Word) -> Result<T, Reason> {
        match self.target.call(word, Some(PATIENCE)).await.map_err(reason)? {
            CallResult::Success(answer) => Ok(answer),
            CallResult::Timeout => Err(format!("no answer within {} s", PATIENCE.as_secs())),
            CallResult::SenderError => Err("the call was dropped".to_owned()),
        }
    }
}

impl Caller for RactorCaller {
    async fn ask(&mut self) -> Result<(), Reason> {
        self.call(|reply| Word::Echo(Payload::new().0.to_vec(), reply)).await.map(|_| ())
    }

    async fn tell(&mut self) -> Result<(), Reason> {
        self.target.cast(Word::Note(Payload::new().0.to_vec())).map_err(reason)
    }

    async fn count(&mut self) -> Result<u64, Reason> {
        self.call(Word::Count).await
    }
}

fn group(target: u64) -> String {
    format!("target-{target}")
}

const PATIENCE: Duration = Duration::from_secs(30);
