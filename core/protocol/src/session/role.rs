//! A role of the cluster at one node: when it is claimed, held and given back.
//!
//! Whoever leads claims the role, and keeps it while its session lives. A claim without an answer may be applied now, or much
//! later; if the node has stopped leading by then, the record names a live session that does not serve it, and nobody could
//! ever claim it. So a node that has sent such a claim looks at the record from time to time, for as long as it lives, and
//! gives back what names it (MY-RECORDS), unless it wants the role again: then it claims (RECAS). No other node has to know.
//!
//! [`RoleHolder`] decides all of that and does no I/O; its shell claims, looks up and releases, each with a time limit.
//!
//! Invariants: a node is in office only at a generation that the answer to its own claim gave it; one request is under way at a
//! time (ONE-FLIGHT); if the record names this node, or may come to, then the node holds the role, or looks until it does not.

use alloc::vec;
use alloc::vec::Vec;

use crate::contract::{DirectoryError, OwnerRecord, PlacementDecision};
use crate::identity::{Generation, NodeId};
use crate::time::Millis;

/// The machine of one role at one node, for one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoleHolder {
    /// The longest pause between two looks.
    longest: Millis,
    /// A claim is asked for and has not begun.
    wanted: bool,
    held: Option<Generation>,
    under_way: bool,
    /// To be released until that is answered.
    owed: Option<Generation>,
    /// A claim was not answered: it may still be applied while the session lives.
    strays: bool,
    pause: Millis,
    look_at: Millis,
}

/// What reaches the machine. The first two come again and again: nothing else makes it look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleEvent {
    /// This node should have the role.
    Wanted,
    /// This node need not have it, but keeps it if it does.
    Unwanted,
    /// The answer to [`RoleAction::Claim`].
    Claimed(RoleClaim),
    /// The answer to [`RoleAction::LookUp`].
    LookedUp(RoleSight),
    /// The answer to [`RoleAction::Release`]; true if the record is not at that generation any more.
    Released(bool),
    /// Whoever held the role here has stopped (STOP-FIRST), because another one has it.
    GivenUp,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleClaim {
    /// The role is this node's.
    Placed(Generation),
    /// Nothing was written, nor will be.
    Refused,
    /// May be applied now or later.
    Unanswered,
}

/// What a look at the record shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleSight {
    /// It names this node.
    Ours(Generation),
    /// It names another one, or nobody.
    NotOurs,
    /// There was no answer.
    Unanswered,
}

/// What the shell does about it, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleAction {
    /// Claim the role once.
    Claim,
    /// Look whom the record names.
    LookUp,
    /// Delete the record if it is this node's at this generation.
    Release(Generation),
    /// The role is held here from now on.
    TakeOffice(Generation),
    /// A claim that was asked for came to nothing.
    PassedOver,
}

type Actions = Vec<RoleAction>;

impl RoleHolder {
    /// Nothing is held. `ttl` is that of the session: within this time what must not be here is noticed.
    pub const fn new(ttl: Millis) -> Self {
        Self {
            longest: ttl,
            wanted: false,
            held: None,
            under_way: false,
            owed: None,
            strays: false,
            pause: FIRST_PAUSE,
            look_at: Millis::ZERO,
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: RoleEvent) -> Actions {
        let mut actions = match event {
            RoleEvent::Wanted => self.on_wanted(),
            RoleEvent::Unwanted => self.on_unwanted(),
            RoleEvent::Claimed(claim) => self.on_claimed(now, claim),
            RoleEvent::LookedUp(sight) => self.on_looked_up(now, sight),
            RoleEvent::Released(done) => self.on_released(now, done),
            RoleEvent::GivenUp => self.on_given_up(now),
        };
        actions.extend(self.next(now));
        actions
    }

    /// The generation at which the role is held.
    pub const fn held(&self) -> Option<Generation> {
        self.held
    }

    /// Whether the record may name this node although it does not hold the role, now or later.
    pub const fn is_in_doubt(&self) -> bool {
        self.strays || self.owed.is_some()
    }

    // ---- events ----

    fn on_wanted(&mut self) -> Actions {
        self.wanted = self.held.is_none();
        Vec::new()
    }

    fn on_unwanted(&mut self) -> Actions {
        let cancelled = core::mem::take(&mut self.wanted);
        cancelled.then_some(RoleAction::PassedOver).into_iter().collect()
    }

    fn on_claimed(&mut self, now: Millis, claim: RoleClaim) -> Actions {
        self.under_way = false;
        match claim {
            RoleClaim::Placed(generation) => {
                // Whatever was to be released is older.
                (self.held, self.owed, self.wanted) = (Some(generation), None, false);
                return vec![RoleAction::TakeOffice(generation)];
            }
            RoleClaim::Refused => {}
            RoleClaim::Unanswered => {
                self.strays = true;
                self.look_soon(now);
            }
        }
        vec![RoleAction::PassedOver]
    }

    fn on_looked_up(&mut self, now: Millis, sight: RoleSight) -> Actions {
        self.under_way = false;
        match sight {
            RoleSight::Ours(generation) => {
                self.owed = Some(generation);
                self.look_at = now;
            }
            RoleSight::NotOurs | RoleSight::Unanswered => self.look_later(now),
        }
        Vec::new()
    }

    fn on_released(&mut self, now: Millis, done: bool) -> Actions {
        self.under_way = false;
        if done {
            self.owed = None;
        }
        self.look_soon(now);
        Vec::new()
    }

    fn on_given_up(&mut self, now: Millis) -> Actions {
        if let Some(generation) = self.held.take() {
            (self.owed, self.look_at) = (Some(generation), now);
        }
        Vec::new()
    }

    // ---- what is next ----

    fn next(&mut self, now: Millis) -> Option<RoleAction> {
        if self.under_way || self.held.is_some() {
            return None;
        }
        let action = if core::mem::take(&mut self.wanted) {
            RoleAction::Claim
        } else if now < self.look_at {
            return None;
        } else if let Some(generation) = self.owed {
            RoleAction::Release(generation)
        } else if self.strays {
            RoleAction::LookUp
        } else {
            return None;
        };
        self.under_way = true;
        Some(action)
    }

    fn look_soon(&mut self, now: Millis) {
        self.pause = FIRST_PAUSE;
        self.look_at = now + FIRST_PAUSE;
    }

    fn look_later(&mut self, now: Millis) {
        self.look_at = now + self.pause;
        self.pause = Millis(self.pause.0.saturating_mul(2)).min(self.longest);
    }
}

impl RoleClaim {
    /// What the answer to a claim by node `me` says; `None` if there was none in time.
    pub fn of(me: NodeId, answer: Option<&Result<PlacementDecision, DirectoryError>>) -> Self {
        match answer {
            Some(Ok(PlacementDecision::Placed(placement))) => Self::Placed(placement.generation),
            Some(Ok(PlacementDecision::AlreadyPlaced(held) | PlacementDecision::Raced { winner: held }))
                if held.placement.node != me =>
            {
                Self::Refused
            }
            Some(Err(
                DirectoryError::SessionLost { .. }
                | DirectoryError::Unavailable { .. }
                | DirectoryError::Invalid { .. },
            )) => Self::Refused,
            _ => Self::Unanswered,
        }
    }
}

impl RoleSight {
    /// What a look-up by node `me` shows; `None` if there was no answer in time.
    pub fn of(me: NodeId, answer: Option<&Result<Option<OwnerRecord>, DirectoryError>>) -> Self {
        match answer {
            Some(Ok(Some(record))) if record.placement.node == me => Self::Ours(record.placement.generation),
            Some(Ok(_)) => Self::NotOurs,
            Some(Err(_)) | None => Self::Unanswered,
        }
    }
}

/// Before the first look after something that was not answered.
const FIRST_PAUSE: Millis = Millis(500);

#[cfg(test)]
mod tests;
