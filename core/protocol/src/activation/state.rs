//! The five states of an activation and the only steps between them.

use core::fmt;

/// Where an activation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationState {
    /// The instance is about to be made.
    Creating,
    /// The instance exists; `on_activate` runs.
    Activating,
    /// `on_activate` succeeded: messages are handled.
    Valid,
    /// No further message starts; `on_deactivate` runs, or activation failed.
    Deactivating,
    /// Gone. Terminal.
    Invalid,
}

/// A step that the life of an activation does not have. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an activation cannot go from {from} to {to}")]
pub struct IllegalTransition {
    /// The state it is in.
    pub from: ActivationState,
    /// The state it was asked to enter.
    pub to: ActivationState,
}

impl ActivationState {
    /// All states, in the order of life.
    pub const ALL: [Self; 5] =
        [Self::Creating, Self::Activating, Self::Valid, Self::Deactivating, Self::Invalid];

    /// True for the six legal steps.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Creating, Self::Activating | Self::Deactivating)
                | (Self::Activating, Self::Valid | Self::Deactivating)
                | (Self::Valid, Self::Deactivating)
                | (Self::Deactivating, Self::Invalid)
        )
    }
}

impl fmt::Display for ActivationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creating => "creating",
            Self::Activating => "activating",
            Self::Valid => "valid",
            Self::Deactivating => "deactivating",
            Self::Invalid => "invalid",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ActivationState::{Activating, Creating, Deactivating, Invalid, Valid};

    /// Proves: R243-R249, R252, R254, C19
    #[test]
    fn exactly_six_steps_are_legal() {
        let legal = [
            (Creating, Activating),
            (Creating, Deactivating),
            (Activating, Valid),
            (Activating, Deactivating),
            (Valid, Deactivating),
            (Deactivating, Invalid),
        ];
        for from in ActivationState::ALL {
            for to in ActivationState::ALL {
                assert_eq!(from.may_become(to), legal.contains(&(from, to)), "{from} to {to}");
            }
        }
    }
}
