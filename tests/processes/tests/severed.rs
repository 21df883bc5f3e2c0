//! Two datacenters on hosts of their own, between which the network is cut: both go on, calls across end in time, and when it is
//! healed everybody is reached where he was.
#![expect(clippy::disallowed_methods, reason = "a test waits and measures real time")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState::Active;
use archipelago::{CallError, Outcome};
use archipelago_process_tests::oracle::{Ledger, judge};
use archipelago_process_tests::{
    Cable, DataCenter, Heard, MemberProcess, Network, Scale, Store, VISIT_LIMIT, figure, on_own_machine,
    settings_of, until,
};
use archipelago_protocol::identity::NodeId;

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const NAMES: [&str; 2] = ["north", "south"];
const PATIENCE: Duration = Duration::from_secs(20);

/// What a call may take beyond its deadline before the test has heard of it.
const SLACK: Duration = Duration::from_millis(500);

/// How long the network is cut.
fn cut_for() -> Duration {
    Duration::from_secs(if Scale::of_this_run().long { 60 } else { 6 })
}

/// The accounts of one datacenter, as they were settled before the cut.
struct Home {
    nodes: Vec<NodeId>,
    accounts: Vec<u64>,
}

/// Starts both, each on its host with two nodes: the cable between the hosts is the only way from one to the other, and each
/// has a cable of its own to the store.
fn start(network: &Network, store: &Store, more: &[(&str, &str)]) -> Vec<DataCenter> {
    let one = |host: usize| {
        let mut settings = settings_of(NAMES[host], store, store);
        let bind = SocketAddr::from((Network::address(host), 0)).to_string();
        settings.push(("transport.bind".to_owned(), bind));
        settings.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        network.on(host, || DataCenter::start(MEMBER, NAMES[host], &settings, 2))
    };
    let mut all: Vec<DataCenter> = (0..NAMES.len()).map(one).collect();
    until("both know each other", PATIENCE, || know_each_other(&mut all));
    all
}

fn know_each_other(all: &mut [DataCenter]) -> bool {
    all.iter_mut().all(|one| NAMES.iter().all(|name| one.sees(name, Active)))
}

/// A visit, in the ledger: what certainly did not start was no attempt.
fn visit(caller: &mut MemberProcess, account: u64, ledger: &mut Ledger) -> Result<Heard, CallError> {
    let visited = caller.visit(account);
    let number = usize::try_from(account).expect("a small number");
    match &visited {
        Ok(_) => {
            ledger.attempt(number);
            ledger.acknowledge(number);
        }
        Err(error) if error.outcome() == Outcome::Unknown => ledger.attempt(number),
        Err(_) => {}
    }
    visited
}

/// Every node visits every account, and finds it at home.
fn visit_all(all: &mut [DataCenter], homes: &[Home], ledger: &mut Ledger) {
    for caller in all.iter_mut().flat_map(|one| &mut one.nodes) {
        for home in homes {
            for account in &home.accounts {
                let heard =
                    visit(caller, *account, ledger).unwrap_or_else(|error| panic!("{account}: {error}"));
                assert!(home.nodes.contains(&heard.node), "account {account} is where it was");
            }
        }
    }
}

/// Of all accounts half: the others are called for the first time when the network is cut.
fn halves_of(homes: &[Home]) -> Vec<Home> {
    let half = |home: &Home| {
        let accounts = home.accounts[..home.accounts.len() / 2].to_vec();
        Home { nodes: home.nodes.clone(), accounts }
    };
    homes.iter().map(half).collect()
}

/// What one node of a severed datacenter has seen.
#[derive(Default)]
struct Seen {
    ledger: Ledger,
    answered: usize,
    refused: Vec<CallError>,
    slowest: Duration,
}

impl Seen {
    fn timed(&mut self, caller: &mut MemberProcess, account: u64) -> Result<Heard, CallError> {
        let began = Instant::now();
        let visited = visit(caller, account, &mut self.ledger);
        self.slowest = self.slowest.max(began.elapsed());
        visited
    }
}

/// One node works until the end of the cut: everybody at home answers, and nobody abroad does.
fn work(caller: &mut MemberProcess, home: &Home, abroad: &Home, mut fresh: Range<u64>, end: Instant) -> Seen {
    let mut seen = Seen::default();
    for far in abroad.accounts.iter().rev().cycle() {
        let near = home.accounts.iter().copied().chain(fresh.next());
        for account in near {
            let heard =
                seen.timed(caller, account).unwrap_or_else(|error| panic!("at home {account}: {error}"));
            assert!(home.nodes.contains(&heard.node), "account {account} lives at home");
            seen.answered += 1;
        }
        match seen.timed(caller, *far) {
            Ok(heard) => panic!("account {far} was reached across the cut, or lives twice: {heard:?}"),
            Err(error) => seen.refused.push(error),
        }
        if Instant::now() >= end {
            break;
        }
    }
    seen
}

/// All nodes work at once while the network is cut.
fn go_on(all: &mut [DataCenter], homes: &[Home], fresh: &[Vec<Range<u64>>]) -> Vec<Seen> {
    let end = Instant::now() + cut_for();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, one) in all.iter_mut().enumerate() {
            let (home, abroad) = (&homes[number], &homes[1 - number]);
            for (caller, fresh) in one.nodes.iter_mut().zip(&fresh[number]) {
                threads.push(scope.spawn(move || work(caller, home, abroad, fresh.clone(), end)));
            }
        }
        let done = threads.into_iter().map(|thread| thread.join());
        done.map(|seen| seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Across the cut no call was answered, each ended by its deadline, and each says what is wrong.
fn judge_cut(seen: &[Seen]) {
    for Seen { answered, refused, slowest, .. } in seen {
        assert!(*answered > 0 && !refused.is_empty(), "{answered} answered, {refused:?}");
        assert!(*slowest <= VISIT_LIMIT + SLACK, "a call took {slowest:?}");
        for error in refused {
            let says_why = matches!(
                error,
                CallError::Timeout { .. } | CallError::Unreachable { .. } | CallError::ConnectionLost { .. }
            );
            assert!(says_why, "{error:?}");
        }
    }
}

/// Every account answers every node again; how long that took.
fn until_healed(all: &mut [DataCenter], homes: &[Home], ledger: &mut Ledger) -> Duration {
    until("calls across are answered again", PATIENCE, || {
        all.iter_mut().flat_map(|one| &mut one.nodes).all(|caller| {
            let accounts = homes.iter().flat_map(|home| &home.accounts);
            accounts.copied().all(|account| visit(caller, account, ledger).is_ok())
        })
    })
}

/// In each datacenter nothing was done under an old generation, and nobody has lived in both.
fn judge_journals(all: &mut [DataCenter]) {
    let mut lived: BTreeSet<u64> = BTreeSet::new();
    for one in all {
        let journals = one.journals();
        let here: BTreeSet<u64> = journals.marks.iter().map(|mark| mark.actor).collect();
        assert!(lived.is_disjoint(&here), "in both: {:?}", lived.intersection(&here).collect::<Vec<_>>());
        lived.extend(here);
        judge(journals.marks).unwrap_or_else(|objection| panic!("{}: {objection}", one.name));
        assert!(journals.events.is_empty(), "{}: {:?}", one.name, journals.events);
    }
}

/// Each datacenter's accounts are placed there by the other, so that both know where they have their home.
fn placed(all: &mut [DataCenter]) -> Vec<Vec<u64>> {
    let settled: Vec<Vec<u64>> = vec![(1_000..1_006).collect(), (1_100..1_106).collect()];
    for (number, accounts) in settled.iter().enumerate() {
        for account in accounts {
            let there = all[1 - number].nodes[0].place(NAMES[number], *account);
            assert_eq!(there, Ok(NAMES[number].to_owned()), "account {account}");
        }
    }
    settled
}

/// The key of an account says where it has its home.
fn by_key(all: &mut [DataCenter]) -> Vec<Vec<u64>> {
    let nodes: Vec<_> = all.iter_mut().map(ids).collect();
    let mut settled = vec![Vec::new(), Vec::new()];
    for account in 2_000..2_012 {
        let heard = all[0].nodes[0].visit(account).unwrap_or_else(|error| panic!("{account}: {error}"));
        let home =
            nodes.iter().position(|nodes| nodes.contains(&heard.node)).expect("it lives in one of them");
        settled[home].push(account);
    }
    settled
}

fn ids(datacenter: &mut DataCenter) -> Vec<NodeId> {
    datacenter.nodes.iter_mut().map(MemberProcess::present_id).collect()
}

/// Cuts the network between both, sees that both go on, and heals it. `visited` says how often each account was visited before;
/// `fresh` are accounts that live nowhere, for each node.
fn cut_and_heal(
    network: &Network,
    all: &mut [DataCenter],
    settled: Vec<Vec<u64>>,
    mut ledger: Ledger,
    fresh: &[Vec<Range<u64>>],
) -> String {
    let nodes: Vec<_> = all.iter_mut().map(ids).collect();
    let homes: Vec<Home> =
        nodes.into_iter().zip(settled).map(|(nodes, accounts)| Home { nodes, accounts }).collect();
    assert!(homes.iter().all(|home| home.accounts.len() > 2), "both have some");
    visit_all(all, &halves_of(&homes), &mut ledger);
    network.cut(0, Cable::Peers);
    let seen = go_on(all, &homes, fresh);
    assert!(know_each_other(all), "the registry is reached by both");
    network.heal(0, Cable::Peers);
    judge_cut(&seen);
    seen.iter().for_each(|one| ledger.add(&one.ledger));
    let healed = until_healed(all, &homes, &mut ledger);
    visit_all(all, &homes, &mut ledger);
    for account in homes.iter().flat_map(|home| &home.accounts) {
        let heard = all[0].nodes[0].visit(*account).unwrap_or_else(|error| panic!("{account}: {error}"));
        let number = usize::try_from(*account).expect("a small number");
        ledger.check(number, heard.visits - 1).unwrap_or_else(|objection| panic!("{objection}"));
    }
    judge_journals(all);
    let sum = |count: fn(&Seen) -> usize| seen.iter().map(count).sum::<usize>();
    let (answered, refused) = (sum(|one| one.answered), sum(|one| one.refused.len()));
    format!(
        "{answered} visits at home, {refused} refused abroad, calls again {healed:.1?} after it was healed"
    )
}

fn accounts_that_were_placed_stay_where_they_are(network: &Network, store: &Store) {
    let mut all = start(network, store, &[]);
    let settled = placed(&mut all);
    let fresh = |first: u64| vec![first..first + 100, first + 100..first + 200];
    let told = cut_and_heal(network, &mut all, settled, Ledger::default(), &[fresh(5_000), fresh(6_000)]);
    figure(&format!("{}: network between datacenters cut for {:?}", store.name(), cut_for()), told);
}

fn accounts_whose_key_says_their_home_stay_there(network: &Network, store: &Store) {
    let mut all = start(network, store, &[("actors.kinds.Account.reach", "home")]);
    let settled = by_key(&mut all);
    let mut ledger = Ledger::default();
    for account in settled.iter().flatten() {
        ledger.attempt(usize::try_from(*account).expect("a small number"));
        ledger.acknowledge(usize::try_from(*account).expect("a small number"));
    }
    // Whoever lives nowhere yet has a home all the same.
    let nobody = || vec![0..0, 0..0];
    let told = cut_and_heal(network, &mut all, settled, ledger, &[nobody(), nobody()]);
    figure(&format!("{}: the same, with homes by key", store.name()), told);
}

/// Proves: R441
#[actix::test]
async fn datacenters_that_are_cut_from_each_other_go_on_and_nobody_lives_twice() {
    let Some(network) = Network::enter(2) else { return };
    on_own_machine(async || {
        let Some(store) = Store::etcd_at(Network::store()) else { return };
        accounts_that_were_placed_stay_where_they_are(&network, &store);
    })
    .await;
}

/// Proves: R503
#[actix::test]
async fn a_home_that_follows_from_the_key_holds_while_datacenters_are_cut_from_each_other() {
    let Some(network) = Network::enter(2) else { return };
    on_own_machine(async || {
        let Some(store) = Store::nats_at(Network::store()) else { return };
        accounts_whose_key_says_their_home_stay_there(&network, &store);
    })
    .await;
}
