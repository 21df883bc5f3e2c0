//! Deliberate bugs of the network, to see that the sweep finds them.

use std::cell::Cell;

use archipelago_memory::Mutant;

thread_local! {
    static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Breaks one rule of the network, or none, in every simulation that begins on this thread from now on.
pub fn set_network_mutant(mutant: Option<Mutant>) {
    ACTIVE.set(mutant);
}

pub(crate) fn network_mutant() -> Option<Mutant> {
    ACTIVE.get()
}
