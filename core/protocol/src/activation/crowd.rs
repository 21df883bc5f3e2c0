//! How many actors may be active on a node, and who goes when there are more.
//!
//! Each arbiter of a node has a [`Crowd`]; they share the bound, not their books. An arbiter acts only when the whole node is
//! over the bound, and only down to its own share: so one busy arbiter may hold more than its share while the others hold
//! less, and together they come down to the bound.
//!
//! Who goes is found without walking through all: the least recently used come first out of a
//! [`TimeQueue`](super::TimeQueue) whose entries may be older than the truth. An actor that was used since its entry was made
//! goes back with its true time ([`Life::look_for_room`](super::Life::look_for_room)), so a look costs one entry, and each use
//! of an actor is paid for at most once.

/// The bound on the actors of a node, as one arbiter keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Crowd {
    bound: usize,
    share: usize,
    /// Those that were asked to go and have not gone.
    leaving: usize,
    overflowing: bool,
}

impl Crowd {
    /// The share of one of `arbiters` of a node on which `bound` actors may be active.
    pub fn new(bound: usize, arbiters: usize) -> Self {
        let share = bound.div_ceil(arbiters.max(1));
        Self { bound, share, leaving: 0, overflowing: false }
    }

    /// How many more actors of this arbiter are to go, if `on_node` actors are active, `here` of them on this arbiter.
    pub fn surplus(&self, on_node: usize, here: usize) -> usize {
        let of_node = on_node.saturating_sub(self.bound);
        let of_arbiter = here.saturating_sub(self.share);
        of_node.min(of_arbiter).saturating_sub(self.leaving)
    }

    /// Notes that an actor was asked to go.
    pub const fn asked(&mut self) {
        self.leaving += 1;
    }

    /// Notes that one that was asked has gone.
    pub const fn gone(&mut self) {
        self.leaving = self.leaving.saturating_sub(1);
    }

    /// Notes how many of the surplus a look found nobody for; true if that is new. Those are served all the same: a busy
    /// actor must not be stopped, and to refuse a new one would make it unreachable for a bound that only spares memory.
    pub const fn looked(&mut self, unasked: usize) -> bool {
        let begins = unasked > 0 && !self.overflowing;
        self.overflowing = unasked > 0;
        begins
    }

    /// Whether the last look found too few that could go: look again soon.
    pub const fn is_overflowing(&self) -> bool {
        self.overflowing
    }

    /// How many actors may be active on the whole node.
    pub const fn bound(&self) -> usize {
        self.bound
    }
}

#[cfg(test)]
mod tests;
