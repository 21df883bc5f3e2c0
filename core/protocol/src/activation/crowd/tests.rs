use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::activation::{ActivationState, Life, RoomLook, TimeQueue};
use crate::message::MessageFlags;
use crate::time::Millis;

const PLAIN: MessageFlags = MessageFlags::empty();

/// Actors of one arbiter, as the runtime keeps them.
struct Roster {
    crowd: Crowd,
    lives: Vec<Option<Life>>,
    queue: TimeQueue<usize>,
    looks: usize,
    /// Jobs started since the beginning.
    uses: usize,
}

impl Roster {
    fn new(bound: usize) -> Self {
        let crowd = Crowd::new(bound, 1);
        Self { crowd, lives: Vec::new(), queue: TimeQueue::new(), looks: 0, uses: 0 }
    }

    fn activate(&mut self, now: Millis) -> usize {
        let mut life = Life::new(now);
        life.advance(ActivationState::Activating).unwrap();
        life.advance(ActivationState::Valid).unwrap();
        self.queue.push(life.last_used(), self.lives.len());
        self.lives.push(Some(life));
        self.lives.len() - 1
    }

    fn begin(&mut self, actor: usize, now: Millis) {
        if let Some(life) = &mut self.lives[actor] {
            life.job_started(now, PLAIN);
            self.uses += 1;
        }
    }

    fn end(&mut self, actor: usize, now: Millis) {
        if let Some(life) = self.lives[actor].as_mut().filter(|life| life.running() > 0) {
            life.job_ended(now, PLAIN);
        }
    }

    fn active(&self) -> usize {
        self.lives.iter().flatten().count()
    }

    fn is_idle(&self, actor: usize) -> bool {
        self.lives[actor].as_ref().is_some_and(|life| life.running() == 0)
    }

    /// Looks until enough were asked, or everybody was looked at; those that were asked are gone at once. Answers who went.
    fn look(&mut self, now: Millis) -> Vec<usize> {
        let active = self.active();
        let mut left = self.crowd.surplus(active, active);
        let mut gone = Vec::new();
        // An entry may be brought up to date first, and taken when its turn comes again.
        for _ in 0..2 * self.queue.len() {
            if left == 0 {
                break;
            }
            let Some((known, actor)) = self.queue.pop_first() else { break };
            self.looks += 1;
            let Some(life) = &mut self.lives[actor] else { continue };
            match life.look_for_room(now, known, false) {
                RoomLook::Asked => {
                    self.crowd.asked();
                    left -= 1;
                    gone.push(actor);
                }
                RoomLook::UsedAt(used) => self.queue.push(used, actor),
                RoomLook::Leaves => {}
            }
        }
        self.crowd.looked(left);
        for actor in &gone {
            self.lives[*actor] = None;
            self.crowd.gone();
        }
        gone
    }
}

#[test]
fn an_arbiter_acts_only_if_the_node_is_over_and_only_down_to_its_share() {
    let mut crowd = Crowd::new(10, 2);
    assert_eq!(crowd.surplus(10, 9), 0, "the node is not over");
    assert_eq!(crowd.surplus(12, 4), 0, "others have more than their share");
    assert_eq!(crowd.surplus(12, 9), 2);
    assert_eq!(crowd.surplus(20, 7), 2);
    crowd.asked();
    assert_eq!(crowd.surplus(12, 9), 1, "one is on its way");
    crowd.gone();
    assert_eq!(crowd.surplus(12, 9), 2);
}

#[test]
fn an_overflow_is_news_once_until_it_has_ended() {
    let mut crowd = Crowd::new(1, 1);
    assert!(!crowd.looked(0));
    assert!(crowd.looked(2) && crowd.is_overflowing());
    assert!(!crowd.looked(1));
    assert!(!crowd.looked(0) && !crowd.is_overflowing());
    assert!(crowd.looked(1));
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut roster = Roster::new(3);
    for now in 0..4 {
        roster.activate(Millis(now));
    }
    roster.begin(0, Millis(10));
    roster.end(0, Millis(11));
    assert_eq!(roster.look(Millis(12)), [1]);
    roster.activate(Millis(13));
    roster.activate(Millis(14));
    assert_eq!(roster.look(Millis(15)), [2, 3]);
    assert!(roster.look(Millis(16)).is_empty(), "the bound is kept");
}

#[test]
fn busy_actors_stay_although_the_bound_is_exceeded() {
    let mut roster = Roster::new(2);
    for now in 0..5 {
        let actor = roster.activate(Millis(now));
        roster.begin(actor, Millis(now));
    }
    assert!(roster.look(Millis(10)).is_empty());
    assert!(roster.crowd.is_overflowing());
    for actor in 0..5 {
        roster.end(actor, Millis(11 + actor as u64));
    }
    assert_eq!(roster.look(Millis(20)), [0, 1, 2]);
    assert!(!roster.crowd.is_overflowing());
}

/// Making room costs what goes and what was used, not what is active.
#[test]
fn a_look_does_not_walk_through_all_actors() {
    let mut roster = Roster::new(50_000);
    for _ in 0..50_000 {
        roster.activate(Millis(0));
    }
    for (now, round) in (1_u64..).zip(0..1_000) {
        roster.begin(round, Millis(now));
        roster.end(round, Millis(now));
        roster.activate(Millis(now));
        // The roster counts by walking; the crowd does not.
        let active = 50_001;
        let mut left = roster.crowd.surplus(active, active);
        while left > 0 {
            let (known, actor) = roster.queue.pop_first().unwrap();
            roster.looks += 1;
            match roster.lives[actor].as_mut().unwrap().look_for_room(Millis(now), known, false) {
                RoomLook::Asked => left -= 1,
                RoomLook::UsedAt(used) => roster.queue.push(used, actor),
                RoomLook::Leaves => {}
            }
        }
    }
    assert!(roster.looks <= 1_000 + roster.uses, "{} looks for 1000 that went", roster.looks);
}

proptest! {
    /// Whatever is activated and used: after a look the bound holds unless everybody is busy, nobody with work goes, and
    /// nobody goes before one who was used earlier and had nothing to do.
    #[test]
    fn the_bound_holds_unless_all_are_busy(
        bound in 1_usize..6,
        steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 1..120),
    ) {
        let mut roster = Roster::new(bound);
        for (now, (step, index)) in (1_u64..).zip(steps) {
            let now = Millis(now * 10);
            match (step, roster.lives.len()) {
                (0, _) | (_, 0) => { roster.activate(now); }
                (1, count) => roster.begin(index.index(count), now),
                (2, count) => roster.end(index.index(count), now),
                _ => {
                    let idle: Vec<usize> = (0..roster.lives.len()).filter(|n| roster.is_idle(*n)).collect();
                    let used = |n: usize| roster.lives[n].as_ref().map(Life::last_used);
                    let times: Vec<_> = (0..roster.lives.len()).map(used).collect();
                    let gone = roster.look(now);
                    prop_assert!(gone.iter().all(|actor| idle.contains(actor)));
                    let youngest = gone.iter().map(|n| times[*n]).max();
                    let stayed = idle.iter().filter(|n| !gone.contains(n));
                    let oldest = stayed.map(|n| times[*n]).min();
                    prop_assert!(youngest.is_none() || oldest.is_none() || youngest <= oldest);
                    let busy = (0..roster.lives.len()).filter(|n| roster.lives[*n].is_some() && !roster.is_idle(*n));
                    prop_assert!(roster.active() <= bound.max(busy.count()));
                    prop_assert_eq!(roster.crowd.is_overflowing(), roster.active() > bound);
                }
            }
        }
    }
}
