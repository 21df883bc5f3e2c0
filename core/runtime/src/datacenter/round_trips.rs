//! How far away the other datacenters are, measured on the control lane by whoever has a policy that looks at it. Every decision
//! is [`Distances`]'; this asks, and takes the time from the question to the answer, without what it takes to connect.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::{DataCenterId, DistanceAction, DistanceEvent, Distances};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;
use metrics::gauge;

use super::reach::Reach;
use super::words::greet;
use crate::env::within;
use crate::node::{KindShared, Node, NodeShared};
use crate::settings::NodeSettings;

/// The round trips that a node has measured.
pub(crate) struct RoundTrips {
    machine: Mutex<Distances>,
    wanted: bool,
}

impl RoundTrips {
    /// None yet; there will be some if a policy asks for them.
    pub(crate) fn new(settings: &NodeSettings, kinds: &[Arc<KindShared>]) -> Self {
        let by_home =
            |kind: &Arc<KindShared>| matches!(kind.reach(), Reach::Home(policy) if policy.measures());
        let wanted = settings.datacenter.placement.measures() || kinds.iter().any(by_home);
        Self { machine: Mutex::default(), wanted }
    }

    fn lock(&self) -> MutexGuard<'_, Distances> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeShared {
    /// How long a datacenter takes to answer, as policies are told: as measured, or by what searches have seen if nobody measures.
    pub(super) fn round_trip(&self, datacenter: &DataCenterId) -> Option<Millis> {
        if self.round_trips().wanted {
            self.round_trips().lock().round_trip(datacenter).map(Millis::from_duration)
        } else {
            self.searches().round_trip(datacenter)
        }
    }
}

impl Node {
    /// How long another datacenter takes to answer this node, the median of the last five times, five seconds apart; none if it
    /// does not answer, or if no policy of the node looks at round trips and so nobody measures.
    pub fn datacenter_round_trip(&self, datacenter: &DataCenterId) -> Option<Duration> {
        self.shared().round_trips().lock().round_trip(datacenter)
    }
}

/// Begins to measure, if anybody wants to know. Call it on the control arbiter.
pub(super) fn start(node: &Arc<NodeShared>) {
    if node.round_trips().wanted {
        look_again(node, Millis::ZERO);
    }
}

fn look_again(node: &Arc<NodeShared>, after: Millis) {
    let (weak, sleep) = (Arc::downgrade(node), node.env().sleep(after));
    node.env().spawn(Box::pin(async move {
        sleep.await;
        if let Some(node) = Weak::upgrade(&weak) {
            let (map, random) = (node.datacenters().newest(), node.env().random());
            apply(&node, DistanceEvent::Look { map: &map, random });
        }
    }));
}

fn apply(node: &Arc<NodeShared>, event: DistanceEvent<'_>) {
    let now = node.env().now();
    let actions = node.round_trips().lock().handle(now, event);
    for action in actions {
        match action {
            DistanceAction::Ask { datacenter, endpoint } => ask(node, datacenter, endpoint),
            DistanceAction::Measured { datacenter, round_trip } => {
                let seconds = round_trip.map_or(f64::NAN, |trip| trip.as_secs_f64());
                let label = datacenter.to_string();
                gauge!("archipelago_datacenter_round_trip_seconds", "datacenter" => label).set(seconds);
            }
            DistanceAction::LookAt(at) => look_again(node, at.since(now)),
        }
    }
}

fn ask(node: &Arc<NodeShared>, datacenter: DataCenterId, endpoint: NodeAddress) {
    let weak = Arc::downgrade(node);
    node.env().spawn(Box::pin(async move {
        let Some(node) = Weak::upgrade(&weak) else { return };
        let event = match measured(&node, &datacenter, endpoint).await {
            Ok(after) => DistanceEvent::Answered { datacenter, after },
            Err(error) => {
                tracing::debug!(%datacenter, %error, "the distance of a datacenter could not be measured");
                DistanceEvent::Silent { datacenter }
            }
        };
        apply(&node, event);
    }));
}

/// How long one endpoint takes to answer.
async fn measured(
    node: &Arc<NodeShared>,
    datacenter: &DataCenterId,
    endpoint: NodeAddress,
) -> Result<Duration, CallError> {
    let env = node.env();
    let until = env.now() + Distances::PATIENCE;
    let no_route = |reason: String| CallError::NoRoute { reason: reason.into() };
    let met = within(env, Distances::PATIENCE, node.remoting().meet(endpoint)).await;
    let peer = met.ok_or(CallError::Timeout { started: false })?.map_err(no_route)?;
    if peer.datacenter() != datacenter.as_str() {
        return Err(no_route(format!("the endpoint belongs to {:?} now", peer.datacenter())));
    }
    let asked = env.nanos();
    greet(node, peer, until.since(env.now())).await?;
    Ok(Duration::from_nanos(env.nanos().saturating_sub(asked)))
}
