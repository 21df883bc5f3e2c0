//! The work done by elfo: actor groups of two nodes, over its network on plain TCP.
//!
//! Sixteen actors ask and sixteen answer. Compression is off (the default), mailboxes hold more than is ever in
//! flight, and dumping is off: the settings for speed. No logger and no telemeter run.

use std::process::ExitCode;
use std::sync::Arc;

use elfo::messages::UpdateConfig;
use elfo::prelude::*;
use elfo::routers::{MapRouter, Outcome};
use elfo::scope::Scope;
use elfo::{Topology, topology};
use harness::{Caller, Payload, Peer, Ready, Reason, TARGETS, Task, free_port, reason};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use toml::Table;

fn main() -> ExitCode {
    harness::run::<Elfo>()
}

#[message(ret = Payload)]
struct Echo(u64, Payload);

#[message]
struct Note(u64, Payload);

#[message(ret = u64)]
struct Count(u64);

fn targets() -> Blueprint {
    ActorGroup::new()
        .router(MapRouter::new(|envelope| {
            msg!(match envelope {
                Echo(target, _) => Outcome::Unicast(*target),
                Note(target, _) => Outcome::Unicast(*target),
                Count(target) => Outcome::Unicast(*target),
                _ => Outcome::Default,
            })
        }))
        .exec(|mut ctx| async move {
            let mut notes = 0;
            while let Some(envelope) = ctx.recv().await {
                msg!(match envelope {
                    (Echo(_, payload), token) => ctx.respond(token, payload),
                    Note => notes += 1,
                    (Count, token) => ctx.respond(token, notes),
                });
            }
        })
}

type CallerContext = (u64, Arc<Context<(), u64>>, Scope);

/// Actors that hand out what is needed to send in their name, since the tasks that send are not theirs.
fn callers(handed_out: UnboundedSender<CallerContext>) -> Blueprint {
    ActorGroup::new()
        .router(MapRouter::new(|envelope| {
            msg!(match envelope {
                UpdateConfig => Outcome::Multicast((0..TARGETS).collect()),
                _ => Outcome::Default,
            })
        }))
        .exec(move |ctx: Context<(), u64>| {
            let handed_out = handed_out.clone();
            async move {
                let _ = handed_out.send((*ctx.key(), Arc::new(ctx), elfo::scope::expose()));
                std::future::pending::<()>().await;
            }
        })
}

struct Elfo {
    callers: Vec<(Arc<Context<(), u64>>, Scope)>,
}

impl Peer for Elfo {
    const NAME: &'static str = "elfo";
    type Caller = ElfoCaller;

    async fn serve(ready: Ready) -> Result<(), Reason> {
        let port = free_port()?;
        let topology = Topology::empty();
        let group = topology.local("targets");
        group.mount(targets());
        mount_system(&topology, &format!("listen = ['tcp://127.0.0.1:{port}']"))?;
        let started = elfo::init::try_start(topology);
        ready.at(port);
        started.await.map_err(reason)
    }

    async fn connect(port: String) -> Result<Self, Reason> {
        let (handed_out, mut handed) = unbounded_channel();
        let topology = Topology::empty();
        let group = topology.local("callers");
        let targets = topology.remote("targets");
        group.route_to(&targets, |_, _| topology::Outcome::Broadcast);
        group.mount(callers(handed_out));
        mount_system(&topology, &format!("discovery.predefined = ['tcp://127.0.0.1:{port}']"))?;
        tokio::spawn(elfo::init::try_start(topology));
        let mut callers = Vec::new();
        while callers.len() < TARGETS as usize {
            callers.push(handed.recv().await.ok_or("the node did not start")?);
        }
        callers.sort_by_key(|(key, ..)| *key);
        let callers = callers.into_iter().map(|(_, ctx, scope)| (ctx, scope)).collect();
        Ok(Self { callers })
    }

    async fn caller(&self, number: u64) -> Result<ElfoCaller, Reason> {
        let target = number % TARGETS;
        let (ctx, scope) = self.callers[target as usize].clone();
        Ok(ElfoCaller { target, ctx, scope })
    }

    fn surround(&self, number: u64, task: Task) -> Task {
        let (_, scope) = &self.callers[(number % TARGETS) as usize];
        Box::pin(scope.clone().within(task))
    }
}

struct ElfoCaller {
    target: u64,
    ctx: Arc<Context<(), u64>>,
    scope: Scope,
}

impl Caller for ElfoCaller {
    async fn ask(&mut self) -> Result<(), Reason> {
        let echo = Echo(self.target, Payload::new());
        self.ctx.request(echo).resolve().await.map(|_| ()).map_err(reason)
    }

    async fn tell(&mut self) -> Result<(), Reason> {
        self.ctx.send(Note(self.target, Payload::new())).await.map_err(reason)
    }

    async fn count(&mut self) -> Result<u64, Reason> {
        let (ctx, count) = (Arc::clone(&self.ctx), Count(self.target));
        self.scope.clone().within(async move { ctx.request(count).resolve().await.map_err(reason) }).await
    }
}

fn mount_system(topology: &Topology, network: &str) -> Result<(), Reason> {
    let config = format!(
        "[common]
        system.mailbox.capacity = 10000
        system.dumping.disabled = true
        [system.network]
        discovery.attempt_interval = '100ms'
        {network}"
    );
    let config: Table = config.parse().map_err(reason)?;
    topology.local("system.network").mount(elfo::batteries::network::new(topology));
    let configurers = topology.local("system.configurers").entrypoint();
    configurers.mount(elfo::batteries::configurer::fixture(topology, config));
    Ok(())
}
