//! What the admin API of a node is told.

use std::num::NonZeroU32;

use archipelago_runtime::Node;

use crate::state::AdminState;
use crate::token::Token;

/// How the admin API behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdminSettings {
    /// What a request must know to change something; without one nothing can be changed.
    pub token: Option<Token>,
    /// Whether a request must know it to see anything, too.
    pub guard_reads: bool,
    /// How many requests a second are answered; what comes above that is told to wait. Default 200.
    pub rate: NonZeroU32,
    /// How many may follow the events at the same time. Default 16.
    pub event_streams: NonZeroU32,
}

impl Default for AdminSettings {
    fn default() -> Self {
        let count = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        Self { token: None, guard_reads: false, rate: count(200), event_streams: count(16) }
    }
}

/// Tells the admin API of a node how to behave, before it is used: what was told first holds. False if it was told before, or was
/// in use already.
pub fn install(node: &Node, settings: AdminSettings) -> bool {
    if node.attachment::<AdminState>().is_some() {
        return false;
    }
    let mut installed = false;
    let state = node.attached(|| {
        installed = true;
        AdminState::new(settings)
    });
    drop(state);
    installed
}
