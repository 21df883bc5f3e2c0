//! One shard at one node: how it comes to be served here.
//!
//! [`Tenure`] claims the shard when somebody asks for it, and serves it only at the generation that the answer to its own
//! claim gave, while the session still grants it (GRANT, RECAS). A claim without an answer is repeated; the directory
//! recasts what an earlier one may have written. One claim is under way at a time (ONE-FLIGHT). Talking to the directory and
//! telling whoever asked is left to the shell.
//!
//! Invariant: whoever serves a shard has been granted it, and its generation only grows.

use alloc::vec;
use alloc::vec::Vec;

use crate::identity::{Generation, NodeId};
use crate::link::Hint;
use crate::time::Millis;

/// What one node has to do with one shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tenure {
    me: NodeId,
    state: TenureState,
}

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenureState {
    /// This node does not serve the shard.
    Absent,
    /// A claim is under way, or about to be repeated.
    Claiming {
        /// Since when somebody has been waiting for it.
        since: Millis,
        /// How many claims were left unanswered.
        unanswered: u32,
        /// Whether one is under way now.
        in_flight: bool,
    },
    /// This node serves the shard.
    Serving(Generation),
}

/// What reaches the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenureEvent {
    /// Somebody wants this node to serve the shard.
    Asked,
    /// A claim has ended. `serve_until`: as long as the session grants ownership, as known after the answer came.
    Claimed {
        /// What became of it.
        outcome: ClaimOutcome,
        /// Until when the node's session lets it serve.
        serve_until: Millis,
    },
    /// The time asked for by [`TenureAction::WakeAt`] has come.
    WokeUp,
    /// The directory shows a record that names this node (MY-RECORDS).
    SeenMine(Generation),
    /// The directory shows that this node has no record of the shard, or that another node has.
    SeenNotMine,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimOutcome {
    /// The shard is this node's.
    Placed(Generation),
    /// Another node has it.
    Taken(Hint),
    /// No answer, or none that says anything: it may still be applied.
    Unanswered,
    /// This node's session is over.
    SessionLost,
}

/// What the shell does about it, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenureAction {
    /// Claim the shard, and answer with [`TenureEvent::Claimed`].
    Claim,
    /// Serve the shard from now on.
    Serve(Generation),
    /// Tell everybody who asked where the shard is; `None`: it could not be found out.
    Answer(Option<Hint>),
    /// Wake the machine at this time.
    WakeAt(Millis),
    /// The directory contradicts what this node was granted: stop everything, this must not happen.
    Contradicted {
        /// The generation that was served.
        served: Generation,
    },
}

impl Tenure {
    /// The first and the longest pause between two claims.
    pub const PAUSE: (Millis, Millis) = (Millis(50), Millis(1_000));
    /// For how long an unanswered claim is repeated.
    pub const GIVE_UP: Millis = Millis(30_000);

    /// A shard that node `me` does not serve.
    pub const fn new(me: NodeId) -> Self {
        Self { me, state: TenureState::Absent }
    }

    /// How things stand.
    pub const fn state(&self) -> TenureState {
        self.state
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: TenureEvent) -> Vec<TenureAction> {
        match event {
            TenureEvent::Asked => self.on_asked(now),
            TenureEvent::Claimed { outcome, serve_until } => self.on_claimed(now, outcome, serve_until),
            TenureEvent::WokeUp => self.on_woke_up(),
            TenureEvent::SeenMine(generation) => self.on_mine(now, generation),
            TenureEvent::SeenNotMine => self.on_not_mine(),
        }
    }

    fn on_asked(&mut self, now: Millis) -> Vec<TenureAction> {
        match self.state {
            TenureState::Absent => self.claim(now, 0),
            TenureState::Claiming { .. } => Vec::new(),
            TenureState::Serving(generation) => vec![self.here(generation)],
        }
    }

    fn on_claimed(&mut self, now: Millis, outcome: ClaimOutcome, serve_until: Millis) -> Vec<TenureAction> {
        let TenureState::Claiming { since, unanswered, in_flight: true } = self.state else {
            return Vec::new();
        };
        match outcome {
            ClaimOutcome::Placed(generation) if now < serve_until => {
                self.state = TenureState::Serving(generation);
                vec![TenureAction::Serve(generation), self.here(generation)]
            }
            ClaimOutcome::Taken(hint) if hint.owner != self.me => self.end(Some(hint)),
            ClaimOutcome::SessionLost => self.end(None),
            _ if now.since(since) >= Self::GIVE_UP => self.end(None),
            _ => {
                self.state = TenureState::Claiming { since, unanswered: unanswered + 1, in_flight: false };
                vec![TenureAction::WakeAt(now + pause(unanswered))]
            }
        }
    }

    fn on_woke_up(&mut self) -> Vec<TenureAction> {
        let TenureState::Claiming { since, unanswered, in_flight: false } = self.state else {
            return Vec::new();
        };
        self.state = TenureState::Claiming { since, unanswered, in_flight: true };
        vec![TenureAction::Claim]
    }

    /// A record that this node does not serve is one that an unanswered claim has left behind.
    fn on_mine(&mut self, now: Millis, generation: Generation) -> Vec<TenureAction> {
        match self.state {
            TenureState::Absent => self.claim(now, 0),
            TenureState::Claiming { .. } => Vec::new(),
            TenureState::Serving(served) if generation <= served => Vec::new(),
            TenureState::Serving(served) => vec![TenureAction::Contradicted { served }],
        }
    }

    fn on_not_mine(&self) -> Vec<TenureAction> {
        match self.state {
            TenureState::Serving(served) => vec![TenureAction::Contradicted { served }],
            _ => Vec::new(),
        }
    }

    fn claim(&mut self, since: Millis, unanswered: u32) -> Vec<TenureAction> {
        self.state = TenureState::Claiming { since, unanswered, in_flight: true };
        vec![TenureAction::Claim]
    }

    fn end(&mut self, answer: Option<Hint>) -> Vec<TenureAction> {
        self.state = TenureState::Absent;
        vec![TenureAction::Answer(answer)]
    }

    const fn here(&self, generation: Generation) -> TenureAction {
        TenureAction::Answer(Some(Hint { owner: self.me, generation }))
    }
}

fn pause(unanswered: u32) -> Millis {
    let factor = 1_u64.checked_shl(unanswered).unwrap_or(u64::MAX);
    Millis(Tenure::PAUSE.0.0.saturating_mul(factor)).min(Tenure::PAUSE.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ME: NodeId = NodeId::new(1);
    const OTHER: Hint = Hint { owner: NodeId::new(2), generation: Generation::new(9) };
    const LONG: Millis = Millis(100_000);

    fn placed(generation: u64) -> TenureEvent {
        TenureEvent::Claimed { outcome: ClaimOutcome::Placed(Generation::new(generation)), serve_until: LONG }
    }

    fn ended(outcome: ClaimOutcome) -> TenureEvent {
        TenureEvent::Claimed { outcome, serve_until: LONG }
    }

    fn hint(generation: u64) -> Option<Hint> {
        Some(Hint { owner: ME, generation: Generation::new(generation) })
    }

    fn asked() -> Tenure {
        let mut tenure = Tenure::new(ME);
        assert_eq!(tenure.handle(Millis(0), TenureEvent::Asked), [TenureAction::Claim]);
        tenure
    }

    /// Proves: R237
    #[test]
    fn a_shard_is_served_once_the_claim_is_answered() {
        let mut tenure = asked();
        assert!(tenure.handle(Millis(1), TenureEvent::Asked).is_empty(), "one claim is under way");
        let serve = TenureAction::Serve(Generation::new(5));
        assert_eq!(tenure.handle(Millis(2), placed(5)), [serve, TenureAction::Answer(hint(5))]);
        assert_eq!(tenure.handle(Millis(3), TenureEvent::Asked), [TenureAction::Answer(hint(5))]);
    }

    /// Proves: R235, R238
    #[test]
    fn the_loser_of_a_race_names_the_winner_and_serves_nothing() {
        let mut tenure = asked();
        let answer = [TenureAction::Answer(Some(OTHER))];
        assert_eq!(tenure.handle(Millis(2), ended(ClaimOutcome::Taken(OTHER))), answer);
        assert_eq!(tenure.state(), TenureState::Absent);
    }

    #[test]
    fn a_grant_that_comes_after_the_session_serves_nothing() {
        let mut tenure = asked();
        let outcome = ClaimOutcome::Placed(Generation::new(5));
        tenure.handle(Millis(50), TenureEvent::Claimed { outcome, serve_until: Millis(50) });
        assert!(!matches!(tenure.state(), TenureState::Serving(_)));
    }

    #[test]
    fn an_unanswered_claim_is_repeated_with_growing_pauses_and_given_up() {
        let (mut tenure, mut now, mut pauses) = (asked(), Millis(0), Vec::new());
        loop {
            match tenure.handle(now, ended(ClaimOutcome::Unanswered))[..] {
                [TenureAction::WakeAt(at)] => {
                    pauses.push(at.since(now).0);
                    now = at;
                    assert_eq!(tenure.handle(now, TenureEvent::WokeUp), [TenureAction::Claim]);
                }
                [TenureAction::Answer(None)] => break,
                ref other => panic!("{other:?}"),
            }
        }
        assert_eq!(pauses[..6], [50, 100, 200, 400, 800, 1_000]);
        assert!(now >= Tenure::GIVE_UP && now < Tenure::GIVE_UP + Tenure::PAUSE.1 + Millis(1));
        assert_eq!(tenure.state(), TenureState::Absent);
    }

    #[test]
    fn what_an_unanswered_claim_left_behind_is_claimed_anew() {
        let mut tenure = Tenure::new(ME);
        let seen = TenureEvent::SeenMine(Generation::new(4));
        assert_eq!(tenure.handle(Millis(0), seen), [TenureAction::Claim]);
        assert!(tenure.handle(Millis(0), seen).is_empty());
        tenure.handle(Millis(1), placed(6));
        assert!(tenure.handle(Millis(2), seen).is_empty(), "an old sight of the same record");
    }

    #[test]
    fn a_record_that_moved_under_the_server_is_a_contradiction() {
        let mut tenure = asked();
        tenure.handle(Millis(1), placed(6));
        let contradicted = [TenureAction::Contradicted { served: Generation::new(6) }];
        assert_eq!(tenure.handle(Millis(2), TenureEvent::SeenNotMine), contradicted);
        assert_eq!(tenure.handle(Millis(2), TenureEvent::SeenMine(Generation::new(7))), contradicted);
    }

    fn event() -> impl Strategy<Value = TenureEvent> {
        let outcome = prop_oneof![
            (1_u64..20).prop_map(|generation| ClaimOutcome::Placed(Generation::new(generation))),
            Just(ClaimOutcome::Taken(OTHER)),
            Just(ClaimOutcome::Unanswered),
            Just(ClaimOutcome::SessionLost),
        ];
        prop_oneof![
            Just(TenureEvent::Asked),
            (outcome, 0_u64..2_000)
                .prop_map(|(outcome, until)| TenureEvent::Claimed { outcome, serve_until: Millis(until) }),
            Just(TenureEvent::WokeUp),
            (1_u64..20).prop_map(|generation| TenureEvent::SeenMine(Generation::new(generation))),
        ]
    }

    proptest! {
        /// Whatever happens, a shard is served only by the answer to a claim of its own, in time, and never is a second
        /// claim under way.
        #[test]
        fn only_a_granted_claim_serves(events in prop::collection::vec((event(), 0_u64..200), 0..60)) {
            let (mut tenure, mut now, mut in_flight) = (Tenure::new(ME), Millis(0), 0);
            for (event, later) in events {
                now = now + Millis(later);
                if let TenureEvent::Claimed { .. } = event {
                    if in_flight == 0 { continue; }
                    in_flight -= 1;
                }
                let before = tenure.state();
                let actions = tenure.handle(now, event);
                in_flight += actions.iter().filter(|action| **action == TenureAction::Claim).count();
                prop_assert!(in_flight <= 1);
                if let (TenureState::Serving(generation), false) = (tenure.state(), matches!(before, TenureState::Serving(_))) {
                    let TenureEvent::Claimed { outcome, serve_until } = event else { panic!("{event:?}") };
                    prop_assert_eq!(outcome, ClaimOutcome::Placed(generation));
                    prop_assert!(now < serve_until);
                }
            }
        }
    }
}
