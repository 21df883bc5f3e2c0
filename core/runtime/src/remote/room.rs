//! The room of one arbiter for messages that wait until it is known where they go. Every decision is [`WaitingRoom`]'s.
//!
//! Invariant: a message takes its room along, and gives it back wherever it ends.

use std::cell::RefCell;
use std::rc::Rc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::route::{RoomFull, WaitingRoom};

use super::outbound::Parked;
use super::routes::Shard;
use super::settings::RemoteSettings;
use crate::arbiter::ArbiterLocal;

/// The room of one arbiter.
#[derive(Clone)]
pub(crate) struct Room(Rc<RefCell<WaitingRoom<Shard>>>);

/// The place that one message takes in it.
pub(crate) struct Stay {
    room: Room,
    shard: Shard,
    bytes: usize,
}

impl Room {
    /// The share of one of so many arbiters.
    pub(crate) fn of_one(settings: &RemoteSettings, arbiters: usize) -> Self {
        let share = settings.room().share(arbiters, settings.parked);
        Self(Rc::new(RefCell::new(WaitingRoom::new(share))))
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        self.0.borrow().bytes()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.room.0.borrow_mut().leave(self.shard, self.bytes);
    }
}

impl ArbiterLocal {
    /// Gives a message that is to wait its place.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn take_room(&self, parcel: &mut Parked) -> Result<(), CallError> {
        if parcel.stay.is_some() {
            return Ok(());
        }
        let (room, shard, bytes) = (self.routes().room().clone(), parcel.shard, parcel.body.weight());
        let entered = room.0.borrow_mut().enter(shard, bytes);
        match entered {
            Ok(()) => parcel.stay = Some(Stay { room, shard, bytes }),
            Err(RoomFull { bound }) => {
                metrics::counter!("archipelago_parked_refused_total").increment(1);
                let bound = u32::try_from(bound).unwrap_or(u32::MAX);
                return Err(CallError::Overloaded { queue: Queue::Route, bound });
            }
        }
        Ok(())
    }

    /// Counts a message that was under way and has to wait.
    pub(super) fn count_waiting(&self, parcel: &mut Parked) {
        if parcel.stay.is_none() {
            let (room, shard, bytes) = (self.routes().room().clone(), parcel.shard, parcel.body.weight());
            room.0.borrow_mut().enter_anyway(shard, bytes);
            parcel.stay = Some(Stay { room, shard, bytes });
        }
    }
}
