//! Writes that were given up and land later, one by one: each test is a trace that breaks a tempting shortcut.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::{Faults, FaultyStore, ImmediateTimer};
use archipelago_directory::{Store, StoreDirectory, carry_out_holder, carry_out_observer};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::{Directory, DirectoryError, PlacementDecision};
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey, Placement};
use archipelago_protocol::session::{
    Beat, EndReason, HolderAction, LeaseAnswer, LeaseObserver, LostReason, ObserverAction, ObserverEvent,
    Session, SessionHolder, times,
};
use archipelago_protocol::time::Millis;
use futures_util::FutureExt;

const A: Session = Session { id: NodeId::new(0xa), ttl: times::DEFAULT_TTL };
const B: Session = Session { id: NodeId::new(0xb), ttl: times::DEFAULT_TTL };
const C: Session = Session { id: NodeId::new(0xc), ttl: times::DEFAULT_TTL };

/// Two directories above one store: one that answers, and one whose every write is unanswered and comes late.
struct Late {
    good: StoreDirectory,
    late: StoreDirectory,
    faulty: Arc<FaultyStore>,
}

impl Late {
    fn new(sessions: &[Session]) -> Self {
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::default());
        let faults = Faults { late: 1_000, ..Faults::default() };
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&store), Arc::new(ImmediateTimer), 1, faults));
        let good = StoreDirectory::new(store, Arc::new(ImmediateTimer));
        let above: Arc<dyn Store> = Arc::<FaultyStore>::clone(&faulty);
        let late = StoreDirectory::new(above, Arc::new(ImmediateTimer));
        for session in sessions {
            now(good.open_session(*session, 1)).unwrap();
            now(good.announce(&info(*session))).unwrap();
        }
        Self { good, late, faulty }
    }

    fn deliver(&self) {
        assert!(self.faulty.late_writes() > 0, "nothing is under way");
        now(self.faulty.flush_late());
    }

    fn place(&self, session: Session) -> Placement {
        match now(self.good.claim(&key(), session, None)).unwrap() {
            PlacementDecision::Placed(placement) => placement,
            other => panic!("{other:?}"),
        }
    }

    fn end(&self, session: Session) {
        let seen = now(self.good.lease(session.id)).unwrap().unwrap();
        let answer = now(self.good.end_session(session.id, seen.version, C.id, EndReason::Silent)).unwrap();
        assert!(matches!(answer, LeaseAnswer::Applied(_)));
    }

    fn owner(&self) -> Option<Placement> {
        now(self.good.lookup(&key())).unwrap().map(|record| record.placement)
    }
}

fn now<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("the embedded store answers at once")
}

fn key() -> OwnedKey {
    OwnedKey::shard(Kind::new("Account").unwrap(), 1)
}

fn info(session: Session) -> NodeInfo {
    let address = NodeAddress::new("127.0.0.1", 4_700).unwrap();
    let (roles, kinds) = (BTreeSet::new(), BTreeSet::new());
    NodeInfo { id: session.id, name: "n".into(), address, roles, version: "0".into(), kinds }
}

fn is_unknown<T>(answer: &Result<T, DirectoryError>) -> bool {
    matches!(answer, Err(error) if error.is_unknown())
}

/// H3, mutant 14: the transfer was unanswered, a read still shows A; A goes on only by a write of its own.
#[test]
fn a_late_transfer_cannot_land_after_the_owner_claimed_anew() {
    let late = Late::new(&[A, B]);
    let first = late.place(A);
    assert!(is_unknown(&now(late.late.transfer(&first, B, None))));
    assert_eq!(late.owner(), Some(first.clone()), "adopting this would be the mistake");
    let second = late.place(A);
    assert!(second.generation > first.generation);
    late.deliver();
    assert_eq!(late.owner(), Some(second));
}

/// H3 with `reassert`: "the shard stays" after an unanswered hand-over.
#[test]
fn a_late_transfer_cannot_land_after_a_reassertion() {
    let late = Late::new(&[A, B]);
    let first = late.place(A);
    let record = now(late.good.lookup(&key())).unwrap().unwrap();
    assert!(is_unknown(&now(late.late.transfer(&first, B, None))));
    let second = now(late.good.reassert(&record)).unwrap();
    late.deliver();
    assert_eq!(late.owner(), Some(second.placement));
}

/// Mutant 15: a late release of an old generation.
#[test]
fn a_late_release_cannot_free_a_newer_generation() {
    let late = Late::new(&[A, B]);
    let first = late.place(A);
    assert!(is_unknown(&now(late.late.release(&first))));
    let second = late.place(A);
    late.deliver();
    assert_eq!(late.owner(), Some(second));
}

/// H9, mutant 17: B evicts the dead A, but the deletes come after C has claimed.
#[test]
fn a_late_eviction_spares_the_new_owner() {
    let late = Late::new(&[A, B, C]);
    late.place(A);
    late.end(A);
    assert!(is_unknown(&now(late.late.evict(A.id))));
    let taken = late.place(C);
    late.deliver();
    assert_eq!(late.owner(), Some(taken));
}

/// H2, mutant 7: an end that was decided before a beat and comes after it.
#[test]
fn a_late_end_loses_against_a_beat() {
    let late = Late::new(&[A]);
    let seen = now(late.good.lease(A.id)).unwrap().unwrap();
    assert!(is_unknown(&now(late.late.end_session(A.id, seen.version, B.id, EndReason::Silent))));
    let beat = Beat { session: A, seq: 1, nonce: 2, expect: seen.version };
    assert!(matches!(now(late.good.beat(beat)).unwrap(), LeaseAnswer::Applied(_)));
    late.deliver();
    assert!(!now(late.good.lease(A.id)).unwrap().unwrap().lease.has_ended());
}

/// And the beat loses against an end that came first (mutant 8).
#[test]
fn a_late_beat_does_not_revive_an_ended_session() {
    let late = Late::new(&[A]);
    let seen = now(late.good.lease(A.id)).unwrap().unwrap();
    let beat = Beat { session: A, seq: 1, nonce: 2, expect: seen.version };
    assert!(is_unknown(&now(late.late.beat(beat))));
    late.end(A);
    late.deliver();
    assert!(now(late.good.lease(A.id)).unwrap().unwrap().lease.has_ended());
}

/// H18: a claim of a session that has ended lands in an empty record; nobody takes it for an owner.
#[test]
fn a_late_claim_of_an_ended_session_is_no_owner() {
    let late = Late::new(&[A, B]);
    assert!(is_unknown(&now(late.late.claim(&key(), A, None))));
    late.deliver();
    late.end(A);
    assert_eq!(late.owner(), None);
    assert_eq!(late.place(B).node, B.id);
}

/// H5, mutant 20: the open's answer is lost, the session is ended and collected, then everything under way arrives. The
/// holder has thrown the id away and never sends its open again, so nobody can mistake the dead id for a live one.
#[test]
fn a_lost_open_is_never_sent_again() {
    let late = Late::new(&[B]);
    let (mut holder, actions) = SessionHolder::open(Millis::ZERO, A, 5);
    let [open @ HolderAction::SendOpen { .. }, HolderAction::WakeAt(_)] = &actions[..] else {
        panic!("{actions:?}")
    };
    let answer = now(carry_out_holder(&late.late, &info(A), open)).unwrap();
    let actions = holder.handle(Millis(10), answer);
    let [read @ HolderAction::ReadBack(_)] = &actions[..] else { panic!("{actions:?}") };
    let seen = now(carry_out_holder(&late.good, &info(A), read)).unwrap();
    let actions = holder.handle(Millis(20), seen);
    assert!(actions.contains(&HolderAction::Lost { reason: LostReason::OpenFailed, fence_at: Millis::ZERO }));
    late.deliver();
    let orphan = now(late.good.lease(A.id)).unwrap().expect("the open arrived after all");
    end_by_observer(&late, ObserverEvent::Seen(orphan));
    assert!(now(late.good.collect(A.id)).unwrap());
    assert_eq!(
        holder.handle(Millis(9_000), archipelago_protocol::session::HolderEvent::Wake { nonce: 6 }),
        []
    );
    assert_eq!(now(late.good.lease(A.id)).unwrap(), None);
}

fn end_by_observer(late: &Late, seen: ObserverEvent) {
    let mut observer = LeaseObserver::new(B.id);
    observer.handle(Millis::ZERO, ObserverEvent::Reachable(BTreeSet::new()));
    observer.handle(Millis::ZERO, seen);
    let due = times::observer_wait(A.ttl);
    for action in observer.handle(due, ObserverEvent::Wake) {
        if let Some(answer) = now(carry_out_observer(&late.good, B.id, &action)) {
            let told = observer.handle(due, answer);
            assert_eq!(told, [ObserverAction::Ended(A.id)]);
        }
    }
    assert!(observer.has_ended(A.id));
}

/// A close that read an old state of the lease goes on from what its write found.
#[test]
fn a_close_ends_the_session_whatever_it_read_first() {
    let late = Late::new(&[]);
    late.faulty.set_faults(Faults::default());
    let mut last = now(late.late.open_session(A, 1)).unwrap();
    for seq in 1..9 {
        let LeaseAnswer::Applied(expect) = last else { panic!("{last:?}") };
        last = now(late.late.beat(Beat { session: A, seq, nonce: seq, expect })).unwrap();
    }
    late.faulty.set_faults(Faults { stale: 1_000, ..Faults::default() });
    now(late.late.close_session(A)).unwrap();
    assert!(now(late.good.lease(A.id)).unwrap().unwrap().lease.has_ended());
}

/// A blocked claimer frees the key of a holder that vanished with its lease: PIN, W, end, claim. No leader, no TTL.
#[test]
fn an_orphaned_key_is_freed_by_whoever_is_blocked() {
    let late = Late::new(&[A, B]);
    late.place(A);
    let lease = archipelago_directory::lease_id(A.id);
    let record = now(late.good.store().get(&lease, archipelago_directory::Read::Any)).unwrap().unwrap();
    now(late.good.store().cas(&lease, record.expect(), archipelago_directory::Write::Delete, None)).unwrap();
    let decision = now(late.good.claim(&key(), B, None)).unwrap();
    let PlacementDecision::Raced { winner } = decision else { panic!("{decision:?}") };
    let mut observer = LeaseObserver::new(B.id);
    let blocked = observer.handle(Millis::ZERO, ObserverEvent::Blocked(winner.session()));
    let seen = now(carry_out_observer(&late.good, B.id, &blocked[0])).unwrap();
    observer.handle(Millis(5), seen);
    let due = Millis(5) + times::observer_wait(A.ttl);
    assert!(
        !observer
            .handle(due - Millis(1), ObserverEvent::Wake)
            .iter()
            .any(|a| matches!(a, ObserverAction::End { .. }))
    );
    let actions = observer.handle(due, ObserverEvent::Wake);
    let answer = now(carry_out_observer(&late.good, B.id, &actions[0])).unwrap();
    observer.handle(due, answer);
    assert_eq!(late.place(B).node, B.id);
}
