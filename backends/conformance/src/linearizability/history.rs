//! What clients asked and were answered, in the order in which it happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use archipelago_protocol::identity::OwnedKey;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

use super::key_spec::{KeySpec, Op, Ret};

/// What clients asked and were answered, and in which order.
#[derive(Default)]
pub struct History {
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    keys: BTreeMap<OwnedKey, Vec<Event>>,
    answered: usize,
}

/// Something that happened to a client, which is one thread for the checker.
#[derive(Clone, Debug)]
enum Event {
    Sent { thread: u64, op: Op },
    Answered { thread: u64, ret: Ret },
}

/// No order of the requests explains the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLinearizable {
    /// The key.
    pub key: OwnedKey,
    /// What was recorded about it, for people.
    pub history: String,
}

impl fmt::Display for NotLinearizable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no order explains what was answered about {}: {}", self.key, self.history)
    }
}

impl std::error::Error for NotLinearizable {}

impl History {
    /// Looks for an order that explains everything, key by key; answers how many requests were answered.
    ///
    /// # Errors
    ///
    /// There is none for a key.
    pub fn check(&self) -> Result<usize, NotLinearizable> {
        let recorded = self.lock();
        for (key, events) in &recorded.keys {
            let effective = without_refusals(events);
            if tester(&effective).serialized_history().is_none() {
                return Err(NotLinearizable { key: key.clone(), history: format!("{effective:#?}") });
            }
        }
        Ok(recorded.answered)
    }

    /// Every key that somebody asked about.
    pub(super) fn keys(&self) -> Vec<OwnedKey> {
        self.lock().keys.keys().cloned().collect()
    }

    pub(super) fn invoke(&self, thread: u64, key: &OwnedKey, op: Op) {
        self.lock().keys.entry(key.clone()).or_default().push(Event::Sent { thread, op });
    }

    pub(super) fn answer(&self, thread: u64, key: &OwnedKey, ret: Ret) {
        let mut recorded = self.lock();
        recorded.answered += 1;
        recorded.keys.entry(key.clone()).or_default().push(Event::Answered { thread, ret });
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that certainly did nothing fits anywhere, so it only makes the search longer.
fn without_refusals(events: &[Event]) -> Vec<Event> {
    let mut refused = BTreeSet::new();
    let mut sent_at: BTreeMap<u64, usize> = BTreeMap::new();
    for (n, event) in events.iter().enumerate() {
        match event {
            Event::Sent { thread, .. } => drop(sent_at.insert(*thread, n)),
            Event::Answered { thread, ret: Ret::Nothing } => {
                refused.extend([sent_at.get(thread).copied(), Some(n)])
            }
            Event::Answered { .. } => {}
        }
    }
    let effective = events.iter().enumerate().filter(|(n, _)| !refused.contains(&Some(*n)));
    effective.map(|(_, event)| event.clone()).collect()
}

fn tester(events: &[Event]) -> LinearizabilityTester<u64, KeySpec> {
    let mut tester = LinearizabilityTester::new(KeySpec::default());
    for event in events {
        match event.clone() {
            Event::Sent { thread, op } => {
                tester.on_invoke(thread, op).expect("one request at a time");
            }
            Event::Answered { thread, ret } => {
                tester.on_return(thread, ret).expect("it was sent");
            }
        }
    }
    tester
}

#[cfg(test)]
mod tests {
    use super::super::key_spec::Owned;
    use super::*;
    use crate::directory_rules::shard;

    fn checked(steps: &[(u64, Op, Option<Ret>)]) -> bool {
        let (history, key) = (History::default(), shard("History", 0));
        for (thread, op, ret) in steps {
            history.invoke(*thread, &key, op.clone());
            if let Some(ret) = ret {
                history.answer(*thread, &key, ret.clone());
            }
        }
        history.check().is_ok()
    }

    #[test]
    fn a_lost_request_may_happen_after_others_were_answered() {
        let found = |node, generation| Some(Ret::Found(Some(Owned { node, generation })));
        let lost = (1, Op::Claim { by: 1 }, None);
        let empty = (2, Op::Lookup, Some(Ret::Found(None)));
        assert!(checked(&[lost.clone(), empty.clone(), (2, Op::Lookup, found(1, 5))]), "it came late");
        assert!(checked(&[lost.clone(), empty.clone(), empty.clone()]), "it never came");
        let twice = [lost, (2, Op::Lookup, found(1, 5)), empty, (2, Op::Lookup, found(1, 6))];
        assert!(!checked(&twice), "it comes once");
    }

    #[test]
    fn a_refused_request_leaves_no_trace() {
        let refused = (1, Op::Claim { by: 1 }, Some(Ret::Nothing));
        let owner = Some(Owned { node: 1, generation: 5 });
        assert!(checked(&[refused.clone(), (2, Op::Lookup, Some(Ret::Found(None)))]));
        assert!(
            !checked(&[refused, (2, Op::Lookup, Some(Ret::Found(owner)))]),
            "it was said to have done nothing"
        );
    }
}
