//! Those who wait until the datacenter's own record has a certain state.
//!
//! [`Waiting`] decides who is told, and that they are few: whoever has gone makes room. How long each of them waits it leaves to the
//! [controller](super::controller).

use archipelago_protocol::datacenter::DataCenterState;
use tokio::sync::oneshot;

/// What a datacenter may be asked to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Asked for by anybody: only the node with the duty can do it.
    Draining,
    /// Asked for by the last node that stops.
    Inactive,
}

/// Those who wait for a state of the own record.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<(Wanted, oneshot::Sender<bool>)>);

impl Waiting {
    /// Tells true once the record is as wanted; none if too many wait already.
    pub(super) fn wait_for(&mut self, wanted: Wanted) -> Option<oneshot::Receiver<bool>> {
        self.0.retain(|(_, waiter)| !waiter.is_closed());
        if self.0.len() >= MOST {
            return None;
        }
        let (waiter, done) = oneshot::channel();
        self.0.push((wanted, waiter));
        Some(done)
    }

    /// The record has this state now.
    pub(super) fn reached(&mut self, state: DataCenterState) {
        for (wanted, waiter) in std::mem::take(&mut self.0) {
            if wanted.is_met_by(state) {
                // Whoever asked may have gone.
                let _ = waiter.send(true);
            } else {
                self.0.push((wanted, waiter));
            }
        }
    }

    /// Another node speaks for the datacenter: nobody is told any more.
    pub(super) fn give_up(&mut self) {
        self.0.clear();
    }
}

impl Wanted {
    pub(super) const fn is_met_by(self, state: DataCenterState) -> bool {
        match self {
            Self::Draining => matches!(state, DataCenterState::Draining | DataCenterState::Inactive),
            Self::Inactive => matches!(state, DataCenterState::Inactive),
        }
    }
}

/// How many may wait: people, and nodes that stop.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_gone_makes_room_and_the_others_are_bounded() {
        let mut waiting = Waiting::default();
        for _ in 0..10 * MOST {
            assert!(waiting.wait_for(Wanted::Draining).is_some(), "nobody waited for long");
        }
        assert_eq!(waiting.0.len(), 1);
        let stay: Vec<_> = std::iter::from_fn(|| waiting.wait_for(Wanted::Draining)).take(2 * MOST).collect();
        assert_eq!((stay.len(), waiting.0.len()), (MOST, MOST));
    }

    #[test]
    fn whoever_waits_is_told_when_the_record_is_as_wanted_and_not_before() {
        let mut waiting = Waiting::default();
        let mut drained = waiting.wait_for(Wanted::Draining).expect("there is room");
        let mut ended = waiting.wait_for(Wanted::Inactive).expect("there is room");
        waiting.reached(DataCenterState::Active);
        assert!(drained.try_recv().is_err());
        waiting.reached(DataCenterState::Draining);
        assert_eq!((drained.try_recv(), ended.try_recv().ok()), (Ok(true), None));
        waiting.give_up();
        assert!(ended.try_recv().is_err(), "nobody tells it");
    }
}
