//! The states of a datacenter, and which may follow which.

use core::fmt;

use serde::{Deserialize, Serialize};

/// What a datacenter is ready for, as its record says. Whether its lease still runs is a matter of its own: see
/// [`DataCenterLiveness`](super::DataCenterLiveness).
///
/// | | register | heartbeat | drain | disable | expire |
/// |---|---|---|---|---|---|
/// | registered | registered | active | | inactive | inactive |
/// | active | active | active | draining | inactive | inactive |
/// | draining | draining | draining | draining | inactive | inactive |
/// | inactive | registered | | | inactive | inactive |
///
/// Empty = refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataCenterState {
    /// Its metadata was accepted; no heartbeat has come yet.
    Registered,
    /// Its heartbeats are current: it takes part in routing and placement.
    Active,
    /// It is shutting down: no new placements, work under way is finished.
    Draining,
    /// It is shut down, disabled, or its lease has ended: left out of routing.
    Inactive,
}

impl DataCenterState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Registered, Self::Active, Self::Draining, Self::Inactive];

    /// The state after `event`.
    ///
    /// # Errors
    ///
    /// The event cannot happen in this state.
    pub const fn after(self, event: LifeEvent) -> Result<Self, IllegalTransition> {
        use LifeEvent::{Disable, Drain, Expire, Heartbeat, Register};
        match (self, event) {
            (Self::Inactive, Register) => Ok(Self::Registered),
            // Another leader of a living datacenter takes its record over as it stands.
            (living, Register) => Ok(living),
            (Self::Registered, Heartbeat) => Ok(Self::Active),
            (Self::Active | Self::Draining, Heartbeat) => Ok(self),
            (Self::Active | Self::Draining, Drain) => Ok(Self::Draining),
            (_, Disable | Expire) => Ok(Self::Inactive),
            (Self::Inactive, Heartbeat | Drain) | (Self::Registered, Drain) => {
                Err(IllegalTransition { from: self, event })
            }
        }
    }

    /// The event by which a leader asks for `target`; `None` if that state comes by itself.
    pub const fn asked_by(target: Self) -> Option<LifeEvent> {
        match target {
            Self::Draining => Some(LifeEvent::Drain),
            Self::Inactive => Some(LifeEvent::Disable),
            Self::Registered | Self::Active => None,
        }
    }
}

impl fmt::Display for DataCenterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registered => "registered",
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Inactive => "inactive",
        })
    }
}

/// What changes the state of a datacenter: its own life, or the end of its lease. Never an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifeEvent {
    /// A leader puts the record up, or takes it over.
    Register,
    /// A heartbeat of the leader.
    Heartbeat,
    /// The datacenter begins to shut down.
    Drain,
    /// It has shut down, or is disabled.
    Disable,
    /// Its lease has ended.
    Expire,
}

impl LifeEvent {
    /// All events.
    pub const ALL: [Self; 5] = [Self::Register, Self::Heartbeat, Self::Drain, Self::Disable, Self::Expire];
}

/// The event cannot happen in that state; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("no {event:?} while a datacenter is {from}")]
pub struct IllegalTransition {
    /// The state.
    pub from: DataCenterState,
    /// The event.
    pub event: LifeEvent,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: R358, R359, R360, R361, R362, R363, R364, R365, C30
    #[test]
    fn every_pair_of_state_and_event_is_legal_or_refused_as_documented() {
        use DataCenterState::{Active, Draining, Inactive, Registered};
        let expected = [
            (Registered, [Some(Registered), Some(Active), None, Some(Inactive), Some(Inactive)]),
            (Active, [Some(Active), Some(Active), Some(Draining), Some(Inactive), Some(Inactive)]),
            (Draining, [Some(Draining), Some(Draining), Some(Draining), Some(Inactive), Some(Inactive)]),
            (Inactive, [Some(Registered), None, None, Some(Inactive), Some(Inactive)]),
        ];
        assert_eq!(expected.map(|(state, _)| state), DataCenterState::ALL);
        for (from, row) in expected {
            for (event, to) in LifeEvent::ALL.into_iter().zip(row) {
                assert_eq!(
                    from.after(event),
                    to.ok_or(IllegalTransition { from, event }),
                    "{from} {event:?}"
                );
            }
        }
    }

    /// Proves: R366
    #[test]
    fn only_shutting_down_can_be_asked_for() {
        let asked = DataCenterState::ALL.map(DataCenterState::asked_by);
        assert_eq!(asked, [None, None, Some(LifeEvent::Drain), Some(LifeEvent::Disable)]);
    }

    /// Whatever is asked for is what comes of it, and asking again changes nothing.
    ///
    /// Proves: R380
    #[test]
    fn state_changes_are_idempotent() {
        for from in DataCenterState::ALL {
            for event in [LifeEvent::Drain, LifeEvent::Disable, LifeEvent::Expire] {
                if let Ok(to) = from.after(event) {
                    assert_eq!(to.after(event), Ok(to));
                }
            }
        }
    }
}
