//! The actor that ends the sessions of nodes that fell silent, and removes what is left of them long after. Every decision is
//! [`LeaseObserver`]'s and [`Collector`]'s.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_directory::carry_out_observer;
use archipelago_protocol::contract::{Entry, EntryId, WatchEvent, WatchScope};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::{
    Collector, CollectorAction, CollectorEvent, LeaseObserver, LeaseOutcome, ObserverAction, ObserverEvent,
    Session, times,
};
use archipelago_protocol::time::Millis;

use super::actor::{Cluster, Ended};
use super::watching::{Watched, watch};
use crate::env::within;
use crate::events::Event;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;

// ---- messages ----

/// These nodes can be reached, and have not ended.
pub(super) struct Reachable(pub(super) BTreeSet<NodeId>);

/// Something cannot go on because of this session.
pub(super) struct Blocked(pub(super) Session);

/// Whom to tell that a session has ended.
pub(super) struct Report(pub(super) Addr<Cluster>);

impl Message for Reachable {
    type Result = ();
}

impl Message for Blocked {
    type Result = ();
}

impl Message for Report {
    type Result = ();
}

// ---- state ----

/// Watches leases, all of them or those that stand in the way, and ends what stood still for too long.
pub(crate) struct Monitor {
    node: Arc<NodeShared>,
    observer: LeaseObserver,
    watching: Option<SpawnHandle>,
    wake: Option<SpawnHandle>,
    collector: Collector,
    collect: Option<SpawnHandle>,
    report_to: Option<Addr<Cluster>>,
}

impl Monitor {
    pub(super) fn new(node: Arc<NodeShared>) -> Self {
        let observer = LeaseObserver::new(node.id());
        let (collector, collect) = (Collector::default(), None);
        Self { node, observer, watching: None, wake: None, collector, collect, report_to: None }
    }

    fn apply(&mut self, event: ObserverEvent, ctx: &mut Context<Self>) {
        if broken(Mutant::NobodyMonitors) {
            return;
        }
        for action in self.observer.handle(self.node.env().now(), event) {
            match action {
                ObserverAction::WatchAll(wanted) => self.watch_all(wanted, ctx),
                ObserverAction::WakeAt(at) => self.wake_at(at, ctx),
                ObserverAction::Ended(id) => self.ended(id, ctx),
                request => self.request(request, ctx),
            }
        }
    }

    fn watch_all(&mut self, wanted: bool, ctx: &mut Context<Self>) {
        if let Some(watching) = self.watching.take() {
            ctx.cancel_future(watching);
        }
        if wanted {
            self.watching = Some(watch(&Arc::clone(&self.node), WatchScope::Leases, self, ctx));
        }
    }

    fn wake_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.wake.take() {
            ctx.cancel_future(earlier);
        }
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()));
        self.wake = Some(ctx.spawn(sleep.into_actor(self).map(|(), monitor, ctx| {
            monitor.wake = None;
            monitor.apply(ObserverEvent::Wake, ctx);
        })));
    }

    /// Runs one request to the directory, not for ever, and feeds what came of it to the machine.
    fn request(&self, request: ObserverAction, ctx: &mut Context<Self>) {
        let (env, directory, me) =
            (Arc::clone(self.node.env()), Arc::clone(self.node.directory()), self.node.id());
        let limit = times::attempt_timeout(self.node.settings().session_ttl);
        let work = async move {
            let answer = within(&env, limit, carry_out_observer(&*directory, me, &request)).await;
            answer.unwrap_or_else(|| unanswered(&request))
        };
        ctx.spawn(work.into_actor(self).map(|event, monitor, ctx| {
            if let Some(event) = event {
                monitor.apply(event, ctx);
            }
        }));
    }

    /// A session is over: its keys are free. Taking its records away saves others a look at its lease.
    fn ended(&mut self, id: NodeId, ctx: &mut Context<Self>) {
        if id == self.node.id() {
            return;
        }
        tracing::info!(node = %self.node.id(), ended = %id, "a session has ended");
        self.tidy(CollectorEvent::Ended(id), ctx);
        self.node.events().publish(Event::SessionEnded { node: id });
        if let Some(cluster) = &self.report_to {
            cluster.do_send(Ended(id));
        }
        if !self.observer.is_monitoring() {
            return;
        }
        let directory = Arc::clone(self.node.directory());
        let evict = async move {
            match directory.evict(id).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(ended = %id, records, "records of an ended session removed"),
                Err(error) => tracing::debug!(ended = %id, %error, "records of an ended session stay"),
            }
        };
        ctx.spawn(evict.into_actor(self));
    }

    // ---- what is left of ended sessions ----

    fn tidy(&mut self, event: CollectorEvent, ctx: &mut Context<Self>) {
        for action in self.collector.handle(self.node.env().now(), event) {
            match action {
                CollectorAction::Collect(id) => self.collect(id, ctx),
                CollectorAction::Forget(id) => self.apply(ObserverEvent::Gone(id), ctx),
                CollectorAction::WakeAt(at) => self.tidy_at(at, ctx),
            }
        }
    }

    fn tidy_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()));
        let wake = ctx.spawn(sleep.into_actor(self).map(|(), monitor, ctx| {
            monitor.collect = None;
            let monitoring = monitor.observer.is_monitoring();
            monitor.tidy(CollectorEvent::Wake { monitoring }, ctx);
        }));
        if let Some(earlier) = self.collect.replace(wake) {
            ctx.cancel_future(earlier);
        }
    }

    /// A lease is evidence for whoever still meets a record of its session: the records go first.
    fn collect(&self, id: NodeId, ctx: &mut Context<Self>) {
        let (env, directory) = (Arc::clone(self.node.env()), Arc::clone(self.node.directory()));
        let limit = times::attempt_timeout(self.node.settings().session_ttl);
        let work = async move {
            let removed = async {
                directory.evict(id).await?;
                directory.collect(id).await
            };
            within(&env, limit, removed).await
        };
        ctx.spawn(work.into_actor(self).map(move |removed, monitor, ctx| match removed {
            Some(Ok(true)) => monitor.tidy(CollectorEvent::Collected(id), ctx),
            other => tracing::debug!(ended = %id, ?other, "the lease of an ended session stays for now"),
        }));
    }

    fn take_in(&mut self, change: WatchEvent, ctx: &mut Context<Self>) {
        match change {
            WatchEvent::Snapshot { entries, .. } => {
                let mut listed = BTreeSet::new();
                for entry in entries {
                    listed.extend(if let Entry::Lease(seen) = &entry { Some(seen.id) } else { None });
                    self.seen(entry, ctx);
                }
                self.tidy(CollectorEvent::Listed(listed.clone()), ctx);
                self.apply(ObserverEvent::Listed(listed), ctx);
            }
            WatchEvent::Put { entry, .. } => self.seen(entry, ctx),
            WatchEvent::Gone { id: EntryId::Lease(id), .. } => {
                self.tidy(CollectorEvent::Gone(id), ctx);
                self.apply(ObserverEvent::Gone(id), ctx);
            }
            WatchEvent::Gone { .. } => {}
        }
    }

    fn seen(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        if let Entry::Lease(seen) = entry {
            self.apply(ObserverEvent::Seen(seen), ctx);
        }
    }
}

impl Actor for Monitor {
    type Context = Context<Self>;
}

// ---- handlers ----

impl Handler<Reachable> for Monitor {
    type Result = ();

    fn handle(&mut self, Reachable(nodes): Reachable, ctx: &mut Context<Self>) {
        self.apply(ObserverEvent::Reachable(nodes), ctx);
    }
}

impl Handler<Blocked> for Monitor {
    type Result = ();

    fn handle(&mut self, Blocked(session): Blocked, ctx: &mut Context<Self>) {
        self.apply(ObserverEvent::Blocked(session), ctx);
    }
}

impl Handler<Report> for Monitor {
    type Result = ();

    fn handle(&mut self, Report(cluster): Report, _: &mut Context<Self>) {
        self.report_to = Some(cluster);
    }
}

impl Handler<Watched> for Monitor {
    type Result = ();

    fn handle(&mut self, watched: Watched, ctx: &mut Context<Self>) {
        match watched {
            Watched::Change(change) => self.take_in(change, ctx),
            Watched::Broken => self.apply(ObserverEvent::Interrupted, ctx),
        }
    }
}

/// What the machine is told about a request that was given up waiting for.
fn unanswered(request: &ObserverAction) -> Option<ObserverEvent> {
    match request {
        ObserverAction::ReadOrPin(session) => Some(ObserverEvent::Unread(session.id)),
        ObserverAction::End { id, version, .. } => {
            Some(ObserverEvent::EndAnswered { id: *id, version: *version, outcome: LeaseOutcome::Unknown })
        }
        _ => None,
    }
}
