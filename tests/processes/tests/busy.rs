//! Processors that are never idle: nobody is called unreachable because a machine has much to do.
#![expect(clippy::disallowed_methods, reason = "a test starts threads, waits and measures real time")]

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use archipelago_process_tests::{Fleet, MemberProcess, RingCount, Scale, Store, figure, on_own_machine};

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const MEMBERS: usize = 5;
const RATE: u64 = 20_000;

/// Threads that do nothing, as fast as they can, until this is dropped.
struct BusyLoops(Arc<AtomicBool>);

impl BusyLoops {
    fn begin(threads: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..threads {
            let over = Arc::clone(&over);
            std::thread::spawn(move || while !over.load(Ordering::Relaxed) {});
        }
        Self(over)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn rings(members: &mut [MemberProcess]) -> RingCount {
    members.iter_mut().map(MemberProcess::rings).fold(RingCount::default(), Add::add)
}

/// Proves: R468
#[actix::test]
async fn busy_members_are_not_called_unreachable() {
    on_own_machine(busy_members_go_on).await;
}

async fn busy_members_go_on() {
    let scale = Scale::of_this_run();
    let Some(store) = Store::etcd() else { return };
    // What is judged is the detector, with sessions as users have them.
    let mut fleet = Fleet::start(MEMBER, store.settings(Scale { long: true, ..scale }), MEMBERS).await;
    let begin = Instant::now();
    fleet.members.iter_mut().for_each(|member| member.ring(RATE / MEMBERS as u64));
    let busy = BusyLoops::begin(2);
    tokio::time::sleep(scale.busy).await;
    let count = rings(&mut fleet.members);
    let per_second =
        |calls: u64| calls * 1_000 / u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (offered, answered) = (per_second(count.offered), per_second(count.answered));
    drop(busy);
    let journals = fleet.journals();
    let suspected = journals.events_like("unreachable");
    figure(
        &format!(
            "busy for {} s: calls per second offered, answered; shed, failed, suspicions",
            scale.busy.as_secs()
        ),
        format!("{offered} {answered}; {} {} {suspected}", count.shed, count.failed),
    );
    assert_eq!((suspected, journals.events_like("missed")), (0, 0), "{:?}", journals.events);
    assert_eq!(count.failed, 0, "what was not shed was answered: {count:?}");
    assert!(offered >= LEAST_OFFERED, "{offered} calls per second were offered, not {RATE}");
    assert!(answered >= LEAST_ANSWERED, "{answered} calls per second were answered: {count:?}");
    fleet.end().await;
}

/// What must really have been offered: all of it, but for what the last moments owe.
const LEAST_OFFERED: u64 = RATE / 100 * 95;

/// What must have been answered, whatever else the processors do.
const LEAST_ANSWERED: u64 = RATE / 20;
