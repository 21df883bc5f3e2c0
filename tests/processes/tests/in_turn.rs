//! Two datacenters at work: each process, the leader of each, and the store fail in turn, and nobody hears anything wrong.
#![expect(clippy::disallowed_methods, reason = "a test waits and measures real time")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use archipelago_process_tests::oracle::{Verdict, judge};
use archipelago_process_tests::{
    Book, CALL_LIMIT, Callers, DataCenter, Scale, Store, figure, home_of, on_own_machine, settings_of, until,
};

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const NAMES: [&str; 2] = ["north", "south"];
const PATIENCE: Duration = Duration::from_secs(60);

/// What a call may take beyond its deadline before somebody notices: the clock of deadlines looks every few milliseconds.
const SLACK: Duration = Duration::from_millis(500);

/// How long whatever pauses does, and how long everything fails in turn: once, or as often as there is time.
struct Plan {
    pause: Duration,
    length: Duration,
    thorough: bool,
}

impl Plan {
    fn of_this_run() -> Self {
        let long = Scale::of_this_run().long;
        let (pause, length) = if long { (30, 300) } else { (5, 0) };
        Self { pause: Duration::from_secs(pause), length: Duration::from_secs(length), thorough: long }
    }
}

/// The datacenters, the callers in each of them, and how long it took after each failure until all answered.
struct World {
    store: Store,
    datacenters: Vec<DataCenter>,
    callers: Callers,
    recoveries: Vec<(String, Duration)>,
}

impl World {
    fn begin(store: Store) -> Self {
        let settings = NAMES.map(|name| {
            let mut settings = settings_of(name, &store, &store);
            // The callers listen at a higher address: they never lead.
            settings.push(("membership.leader".to_owned(), "lowest-address".to_owned()));
            settings
        });
        let start = |(name, settings)| DataCenter::start(MEMBER, name, settings, 2);
        let mut datacenters: Vec<_> = NAMES.into_iter().zip(&settings).map(start).collect();
        let callers = Callers::begin(NAMES.into_iter().zip(settings).collect());
        datacenters.iter_mut().for_each(|one| one.others = 1);
        let mut world = Self { store, datacenters, callers, recoveries: Vec::new() };
        world.is_whole();
        world
    }

    /// Kills the leader of a datacenter, or one of its nodes that does not lead, and puts another one in its place.
    fn lose(&mut self, number: usize, leader: bool) {
        let datacenter = &mut self.datacenters[number];
        let name = datacenter.name;
        let leading = datacenter.take_leader();
        let mut lost = if leader {
            leading
        } else {
            datacenter.nodes.push(leading);
            datacenter.nodes.remove(0)
        };
        lost.kill();
        self.recovered(&format!("{name}: {} killed", if leader { "leader" } else { "follower" }));
        self.datacenters[number].add();
        self.is_whole();
    }

    /// Freezes the leader of a datacenter for longer than its session.
    fn freeze(&mut self, number: usize, length: Duration) {
        let datacenter = &mut self.datacenters[number];
        let name = datacenter.name;
        let frozen = datacenter.take_leader();
        frozen.freeze();
        let since = Instant::now();
        self.recovered(&format!("{name}: leader frozen"));
        std::thread::sleep(length.saturating_sub(since.elapsed()));
        frozen.thaw();
        self.datacenters[number].nodes.push(frozen);
        self.is_whole();
    }

    /// The store, with both directories and the registry, stands still.
    fn pause_store(&mut self, length: Duration) {
        self.store.server().pause();
        std::thread::sleep(length);
        self.store.server().resume();
        self.recovered("store paused");
        self.is_whole();
    }

    /// The store is killed, and comes back with its data.
    fn kill_store(&mut self, length: Duration) {
        self.store.server().kill();
        std::thread::sleep(length);
        self.store.server().restart();
        self.recovered("store killed");
        self.is_whole();
    }

    fn recovered(&mut self, what: &str) {
        let took = self.callers.until_all_answer();
        self.recoveries.push((what.to_owned(), took));
    }

    fn is_whole(&mut self) {
        let all = &mut self.datacenters;
        until("both datacenters are whole", PATIENCE, || all.iter_mut().all(DataCenter::is_whole));
    }

    /// Calls the callers back, and judges what they and the nodes have noted.
    fn end(self) -> (Book, Vec<Verdict>, Vec<(String, Duration)>) {
        let book = self.callers.end();
        let verdicts = (0..).zip(&self.datacenters).map(|(number, one)| judge_one(number, one)).collect();
        (book, verdicts, self.recoveries)
    }
}

/// Nothing was done under an old generation, and nobody came to life whose home is elsewhere.
fn judge_one(number: usize, datacenter: &DataCenter) -> Verdict {
    let marks = datacenter.journals().marks;
    let lived: BTreeSet<usize> = marks.iter().filter_map(|mark| usize::try_from(mark.actor).ok()).collect();
    let strangers: Vec<_> =
        lived.iter().filter(|account| home_of(**account, NAMES.len()) != number).collect();
    assert!(strangers.is_empty(), "{} is not the home of {strangers:?}", datacenter.name);
    judge(marks).unwrap_or_else(|objection| panic!("{}: {objection}", datacenter.name))
}

fn everything_fails_in_turn(store: Store) {
    let (plan, name, began) = (Plan::of_this_run(), store.name(), Instant::now());
    let mut world = World::begin(store);
    loop {
        (0..NAMES.len()).for_each(|number| world.lose(number, true));
        world.pause_store(plan.pause);
        (0..NAMES.len()).for_each(|number| world.lose(number, false));
        if plan.thorough {
            (0..NAMES.len()).for_each(|number| world.freeze(number, plan.pause));
            world.kill_store(plan.pause);
        }
        if began.elapsed() >= plan.length {
            break;
        }
    }
    let (book, verdicts, recoveries) = world.end();
    let (acknowledged, unanswered) = (book.ledger.acknowledged(), book.ledger.unanswered());
    figure(&format!("{name}: all answer in both datacenters after"), format!("{recoveries:.1?}"));
    figure(
        &format!("{name}: everything failed in turn for {:.0?}", began.elapsed()),
        format!(
            "{verdicts:?}, {acknowledged} writes acknowledged, {unanswered} not, {} transfers, slowest call {:.2?}",
            book.transfers, book.slowest
        ),
    );
    assert!(verdicts.iter().all(|verdict| verdict.handovers > 0), "{verdicts:?}");
    assert!(book.slowest <= CALL_LIMIT + SLACK, "a call took {:?}", book.slowest);
}

/// Proves: R441, R478
#[actix::test]
async fn datacenters_on_etcd_lose_each_process_and_the_store_in_turn_and_nothing_else() {
    on_own_machine(async || {
        let Some(store) = Store::etcd() else { return };
        everything_fails_in_turn(store);
    })
    .await;
}

#[actix::test]
#[ignore = "the same as on etcd: for `cargo xtask soak`"]
async fn datacenters_on_nats_lose_each_process_and_the_store_in_turn_and_nothing_else() {
    on_own_machine(async || {
        let Some(store) = Store::nats() else { return };
        everything_fails_in_turn(store);
    })
    .await;
}
