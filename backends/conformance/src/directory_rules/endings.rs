//! Rules about when a session has ended, with the real machines on the fixture's clock.

use archipelago_directory::carry_out_observer;
use archipelago_protocol::contract::PlacementDecision;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::{
    LeaseObserver, LeaseVersion, ObserverAction, ObserverEvent, Session, times,
};
use archipelago_protocol::time::Millis;

use super::{Fixture, NONCE, OBSERVER, applied, beat_of, found, info, session, shard};
use crate::waiting::PATIENCE;

/// An observer ends no session that beats, and ends one that is silent only after the whole wait, on its own clock.
///
/// Proves: R168, R180
pub async fn session_end_is_judged_on_the_observers_clock(f: Fixture) {
    let mut last = f.open_short(1).await;
    let mut observer = observe_all();
    for seq in 1..=6 {
        f.timer.sleep(times::beat_period(SHORT)).await;
        last = applied(f.directory.beat(beat_of(short(1), seq, last)).await.expect("beats"));
        f.look(&mut observer, 1).await;
        assert!(!observer.has_ended(NodeId::new(1)), "beat {seq}");
    }
    let (seen_at, ended_at) = f.watch_it_end(&mut observer, 1).await;
    assert!(ended_at - seen_at >= times::observer_wait(SHORT), "ended after {}", ended_at - seen_at);
    found(f.directory.beat(beat_of(short(1), 7, last)).await.expect("answers"));
    assert!(f.lease(1).await.lease.has_ended());
}

/// A node that stops without a word keeps its keys until the wait is over; then they are free.
///
/// Proves: R169
pub async fn a_silent_stop_frees_its_keys_after_the_wait(f: Fixture) {
    f.open_short(1).await;
    f.open(2).await;
    let held = f.place_for(short(1), 1).await;
    let mut observer = observe_all();
    f.look(&mut observer, 1).await;
    let early = f.directory.claim(&held.key, session(2), None).await.expect("answers");
    assert!(!matches!(early, PlacementDecision::Placed(_)), "{early:?}");
    f.watch_it_end(&mut observer, 1).await;
    let taken = f.place(&held.key, 2).await;
    assert!(taken.generation > held.generation);
}

/// A node that takes its leave is gone at once: nobody waits, and nobody lists it.
///
/// Proves: R170, R171
pub async fn a_farewell_needs_no_wait(f: Fixture) {
    f.open(1).await;
    f.open(2).await;
    let held = f.place(&shard("Account", 1), 1).await;
    let before = f.timer.now();
    f.directory.close_session(session(1)).await.expect("closes");
    f.place(&held.key, 2).await;
    assert_eq!(f.directory.sessions().await.expect("lists").records, [info(2)]);
    assert!(f.timer.now() - before < times::observer_wait(session(1).ttl), "nothing waited for the lease");
}

/// A session whose record the engine has deleted is ended only after its absence was written down and stood still.
pub async fn a_vanished_lease_is_waited_for_like_a_silent_one(f: Fixture) {
    f.open_short(1).await;
    f.open(2).await;
    let held = f.place_for(short(1), 1).await;
    f.expire(1).await;
    let blocked = f.directory.claim(&held.key, session(2), None).await.expect("answers");
    let (PlacementDecision::AlreadyPlaced(owner) | PlacementDecision::Raced { winner: owner }) = blocked
    else {
        panic!("{blocked:?}")
    };
    let mut observer = LeaseObserver::new(NodeId::new(OBSERVER));
    f.carry_out(&mut observer, ObserverEvent::Blocked(owner.session())).await;
    let (seen_at, ended_at) = f.watch_it_end(&mut observer, 1).await;
    assert!(ended_at - seen_at >= times::observer_wait(SHORT));
    f.place(&held.key, 2).await;
}

impl Fixture {
    async fn open_short(&self, id: u64) -> LeaseVersion {
        let version = applied(self.directory.open_session(short(id), NONCE).await.expect("opens"));
        self.directory.announce(&info(id)).await.expect("announces");
        version
    }

    async fn place_for(&self, session: Session, n: u32) -> archipelago_protocol::identity::Placement {
        match self.directory.claim(&shard("Account", n), session, None).await.expect("claims") {
            PlacementDecision::Placed(placement) => placement,
            other => panic!("{other:?}"),
        }
    }

    /// Reads the lease of `id` and hands it to the observer.
    async fn look(&self, observer: &mut LeaseObserver, id: u64) {
        let seen = self.lease(id).await;
        self.carry_out(observer, ObserverEvent::Seen(seen)).await;
    }

    async fn carry_out(&self, observer: &mut LeaseObserver, event: ObserverEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for action in observer.handle(self.timer.now(), event) {
                let me = NodeId::new(OBSERVER);
                if !matches!(action, ObserverAction::WakeAt(_) | ObserverAction::WatchAll(_)) {
                    events.extend(carry_out_observer(&*self.directory, me, &action).await);
                }
            }
        }
    }

    /// Looks and waits until the observer has ended `id`; when it first saw the last version, and when it ended it.
    async fn watch_it_end(&self, observer: &mut LeaseObserver, id: u64) -> (Millis, Millis) {
        let (seen_at, seen) = (self.timer.now(), self.lease(id).await);
        self.carry_out(observer, ObserverEvent::Seen(seen)).await;
        while !observer.has_ended(NodeId::new(id)) {
            assert!(self.timer.now() - seen_at < PATIENCE, "not ended within {PATIENCE}");
            self.timer.sleep(Millis(20)).await;
            self.carry_out(observer, ObserverEvent::Wake).await;
        }
        (seen_at, self.timer.now())
    }
}

fn observe_all() -> LeaseObserver {
    let mut observer = LeaseObserver::new(NodeId::new(OBSERVER));
    observer.handle(Millis::ZERO, ObserverEvent::Reachable([NodeId::new(OBSERVER)].into()));
    observer
}

fn short(id: u64) -> Session {
    Session { id: NodeId::new(id), ttl: SHORT }
}

/// Short enough to be waited for; long enough for a beat every third of it.
const SHORT: Millis = Millis(1_200);
