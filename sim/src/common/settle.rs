//! The end of a run: nothing is wrong any more, and everything must become well and quiet.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use archipelago::{CallOptions, Node};
use archipelago_protocol::call::CallError;
use archipelago_runtime::env::from_outside;

use super::ledger::{ActorNumber, Ledger, Letter};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::world::World;

/// A fresh ask of node `index` to an actor must succeed before `until`, or at the first attempt.
pub(crate) async fn reach<M: Copy + Debug, F: Future<Output = Option<CallError>>>(
    world: &World,
    ledger: &Ledger<M>,
    (index, to): (usize, ActorNumber),
    until: Duration,
    ask: impl Fn(&Node, u64, CallOptions) -> F,
    more: impl Fn(&Node) -> M,
) {
    let mut last = None;
    while let Some(node) = world.node(index)
        && !ledger.judge().violated()
    {
        let ticket = ledger.sending(Letter { to, sender: None, tell: false, more: more(&node) });
        world.record("reach", ticket, to.as_u64());
        let options = CallOptions::new().timeout(Duration::from_secs(1));
        last = from_outside(|| ask(&node, ticket, options)).await;
        if last.is_none() || world.now() >= until {
            break;
        }
        TrueClock::sleep(Duration::from_millis(100)).await;
    }
    ledger.check(Invariant::HealsAfterFaults, last.is_none(), || {
        format!("node {index} does not reach {to:?}, and last: {last:?}")
    });
}

/// Nothing is open on a node when nobody sends any more.
pub(crate) fn is_quiet<M: Copy + Debug>(world: &World, ledger: &Ledger<M>, index: usize) {
    let Some(env) = world.env(index) else { return };
    let gauges = ["archipelago_active_actors", "archipelago_open_jobs", "archipelago_pending_calls"];
    let left = gauges.map(|gauge| env.switch().meters().gauge(gauge));
    ledger.check(Invariant::CatalogIsConsistent, left == [0.0; 3], || {
        format!("all is quiet, but places, jobs, calls of node {index} are {left:?}")
    });
}

/// Idle nodes stop without a complaint, and nothing of them is left.
pub(crate) async fn stop_all<M: Copy + Debug>(world: &World, ledger: &Ledger<M>, nodes: usize) {
    let envs: Vec<Arc<SimEnvironment>> = (0..nodes).filter_map(|index| world.env(index)).collect();
    for index in 0..nodes {
        let stopped = world.stop(index).await;
        ledger.check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
            format!("idle node {index} stopped with {stopped:?}")
        });
    }
    TrueClock::sleep(Duration::from_secs(3)).await;
    let running = envs.iter().filter(|env| !env.switch().is_empty()).count();
    let (connections, _) = world.network_load();
    ledger.check(Invariant::NothingOutlivesItsNode, running == 0 && connections == 0, || {
        format!("all nodes have stopped, but {running} still run, and {connections} connections stand")
    });
}
