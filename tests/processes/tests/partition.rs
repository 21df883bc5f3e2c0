//! Members on hosts of their own, whose cables are pulled: to their peers, to the store, and both.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use archipelago_process_tests::{
    Cable, Calls, Fleet, Load, MemberProcess, Network, Scale, Settings, Store, figure, on_own_machine,
};

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");

/// How long the picture must stand still before somebody's session is revoked.
const STABLE: Duration = Duration::from_secs(3);

/// How soon a silent node is suspected by all: the rest of a beat, the silence, a look and the probes, and two rounds of gossip.
const SUSPECTED: Duration = Duration::from_secs(6);

/// Starts one member on each host.
async fn fleet(network: &Network, settings: Settings, hosts: usize) -> Fleet {
    let start = |host: usize, folder: &Path, settings: &Settings| {
        let mut settings = settings.clone();
        settings.push(("transport.bind".to_owned(), at(Network::address(host))));
        network.on(host, || MemberProcess::start(MEMBER, &settings, folder))
    };
    Fleet::start_with(MEMBER, settings, hosts, &at(Network::hub_address()), start).await
}

/// Each host has its ports for itself.
fn at(host: IpAddr) -> String {
    SocketAddr::from((host, 4710)).to_string()
}

/// Pulls cables of a host, sees that the others go on and take over, and puts them back.
async fn cut_off(
    fleet: &mut Fleet,
    network: &Network,
    host: usize,
    cables: &[Cable],
    within: Duration,
) -> Duration {
    let homes = fleet.homes().await;
    let cut = fleet.members[host].present_id();
    let (theirs, others): (Vec<_>, Vec<_>) = homes.into_iter().partition(|(home, _)| *home == cut);
    let accounts = |homes: Vec<(_, Vec<usize>)>| {
        homes.into_iter().flat_map(|(_, accounts)| accounts).collect::<Vec<_>>()
    };
    let (theirs, others) = (accounts(theirs), accounts(others));
    assert!(theirs.len() > 3 && others.len() > 20, "{theirs:?} {others:?}");
    let rejoined = fleet.journals().events_like("rejoined");
    cables.iter().for_each(|cable| network.cut(host, *cable));
    let nobody = BTreeSet::new();
    let unmoved = fleet.time_until_answered(&others, &nobody).await;
    assert!(unmoved < Duration::from_secs(5), "the others took {unmoved:?}");
    let taken = unmoved + fleet.time_until_answered(&theirs, &BTreeSet::from([cut])).await;
    assert!(taken < within, "taken over after {taken:?}, not within {within:?}");
    cables.iter().for_each(|cable| network.heal(host, *cable));
    fleet.noted("rejoined", rejoined + 1).await;
    fleet.all_up().await;
    taken
}

async fn partitions_are_survived(network: &Network, store: &Store, hosts: usize) {
    let scale = Scale::of_this_run();
    let ttl = store.ttl(scale);
    let mut settings = store.settings(scale);
    settings.push(("membership.stable_after".to_owned(), format!("{}s", STABLE.as_secs())));
    let mut fleet = fleet(network, settings, hosts).await;
    let load = Load::begin(&fleet.node, Calls::MayFail);
    let slack = Duration::from_secs(2) + ttl / 2;
    let cuts = [
        ("peers", vec![Cable::Peers], SUSPECTED + STABLE + ttl + slack),
        ("the store", vec![Cable::Store], ttl + slack),
        ("everything", vec![Cable::Peers, Cable::Store], ttl + slack),
    ];
    for (host, (from, cables, within)) in cuts.into_iter().enumerate() {
        let taken = cut_off(&mut fleet, network, host, &cables, within).await;
        figure(
            &format!("{} one of {hosts} cut from {from}: taken over after", store.name()),
            format!("{taken:.1?}"),
        );
    }
    let book = load.end().await;
    let verdict = fleet.judge(&book).await;
    assert!(verdict.handovers > 0, "{verdict:?}");
    assert!(fleet.journals().events_like("lost") >= 3, "who was cut off has fenced itself");
    fleet.end().await;
}

/// Proves: R448, R150, R475
#[actix::test]
async fn cut_members_on_etcd_are_replaced_fence_themselves_and_come_back() {
    let Some(network) = Network::enter(5) else { return };
    on_own_machine(async || {
        let Some(store) = Store::etcd_at(Network::store()) else { return };
        partitions_are_survived(&network, &store, 5).await;
    })
    .await;
}

#[actix::test]
async fn cut_members_on_jetstream_are_replaced_fence_themselves_and_come_back() {
    let Some(network) = Network::enter(3) else { return };
    on_own_machine(async || {
        let Some(store) = Store::nats_at(Network::store()) else { return };
        partitions_are_survived(&network, &store, 3).await;
    })
    .await;
}
