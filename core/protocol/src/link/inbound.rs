//! The calls that came in over one connection and are not answered.
//!
//! [`InboundCalls`] decides whether a call may still start and whether its reply is still wanted. It lives as long as
//! the connection: a reply or return never goes out over another one.
//!
//! Invariant: a call that was cancelled before it started never starts, and no call starts twice.

use alloc::vec::Vec;

use crate::identity::CorrelationId;

/// The unanswered calls of one lane's incarnation, by the slots of the sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InboundCalls {
    bound: usize,
    slots: Vec<Slot>,
    open: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Slot {
    /// The last call that used it.
    last: Option<CorrelationId>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    /// The last call was answered or cancelled.
    #[default]
    Idle,
    /// The last call waits to be started.
    Open,
    /// The last call runs.
    Started,
}

impl InboundCalls {
    /// No calls, from a sender that may have `bound` of them open.
    pub const fn new(bound: usize) -> Self {
        Self { bound, slots: Vec::new(), open: 0 }
    }

    /// A call has come in.
    ///
    /// A slot may be used anew while its last call still runs here: its sender waits for that one no longer.
    ///
    /// # Errors
    ///
    /// The peer breaks the rules of the lane, so the connection is of no use any more. Nothing changed.
    pub fn open(&mut self, id: CorrelationId) -> Result<(), ProtocolFault> {
        let n = id.slot() as usize;
        if n >= self.bound {
            return Err(ProtocolFault::SlotBeyondBound { slot: id.slot(), bound: self.bound });
        }
        if n >= self.slots.len() {
            self.slots.resize(n + 1, Slot::default());
        }
        let slot = &mut self.slots[n];
        if slot.last == Some(id) {
            return Err(ProtocolFault::SameCallTwice { id });
        }
        self.open += usize::from(slot.state == State::Idle);
        *slot = Slot { last: Some(id), state: State::Open };
        Ok(())
    }

    /// Asks whether the call may start now, and marks it as started if so. False: it was cancelled meanwhile.
    pub fn start(&mut self, id: CorrelationId) -> bool {
        match self.unanswered(id) {
            Some(slot) if slot.state == State::Open => {
                slot.state = State::Started;
                true
            }
            _ => false,
        }
    }

    /// The caller waits no longer. A started call goes on; an unknown one is ignored, its answer may be on its way.
    pub fn cancel(&mut self, id: CorrelationId) {
        if let Some(slot) = self.unanswered(id).filter(|slot| slot.state == State::Open) {
            slot.state = State::Idle;
            self.open -= 1;
        }
    }

    /// The call is answered, or its message returned. False: nobody waits for it, so send nothing.
    pub fn close(&mut self, id: CorrelationId) -> bool {
        let Some(slot) = self.unanswered(id) else { return false };
        slot.state = State::Idle;
        self.open -= 1;
        true
    }

    /// Whether nobody waits for the call that once came in under this id, and it has not been answered either.
    pub fn is_cancelled(&self, id: CorrelationId) -> bool {
        self.slots
            .get(id.slot() as usize)
            .is_none_or(|slot| slot.last != Some(id) || slot.state == State::Idle)
    }

    /// How many calls are neither answered nor cancelled.
    pub const fn open_calls(&self) -> usize {
        self.open
    }

    fn unanswered(&mut self, id: CorrelationId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.slot() as usize)?;
        (slot.last == Some(id) && slot.state != State::Idle).then_some(slot)
    }
}

/// How a peer broke the rules of a lane. Its connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolFault {
    /// More calls at once than it was told.
    #[error("a call in slot {slot}, only {bound} calls are allowed")]
    SlotBeyondBound {
        /// The slot.
        slot: u32,
        /// How many calls may be open.
        bound: usize,
    },
    /// The id of a call names the call before it too.
    #[error("call {id} came twice")]
    SameCallTwice {
        /// The id.
        id: CorrelationId,
    },
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn id(slot: u32, turn: u16) -> CorrelationId {
        CorrelationId::new(3, slot, turn)
    }

    #[test]
    fn a_call_cancelled_before_it_started_never_starts_and_gets_no_reply() {
        let mut calls = InboundCalls::new(4);
        calls.open(id(0, 0)).unwrap();
        assert!(!calls.is_cancelled(id(0, 0)));
        calls.cancel(id(0, 0));
        assert!(calls.is_cancelled(id(0, 0)));
        assert!(!calls.start(id(0, 0)));
        assert!(!calls.close(id(0, 0)));
        assert_eq!(calls.open_calls(), 0);
    }

    #[test]
    fn a_started_call_goes_on_when_its_caller_has_gone() {
        let mut calls = InboundCalls::new(4);
        calls.open(id(0, 0)).unwrap();
        assert!(calls.start(id(0, 0)));
        calls.cancel(id(0, 0));
        assert!(!calls.is_cancelled(id(0, 0)));
        assert!(calls.close(id(0, 0)));
        assert!(!calls.close(id(0, 0)), "answered once");
    }

    #[test]
    fn a_call_starts_once() {
        let mut calls = InboundCalls::new(4);
        calls.open(id(0, 0)).unwrap();
        assert!(calls.start(id(0, 0)));
        assert!(!calls.start(id(0, 0)));
    }

    #[test]
    fn a_slot_beyond_the_bound_is_a_fault_and_takes_no_memory() {
        let mut calls = InboundCalls::new(4);
        let fault = ProtocolFault::SlotBeyondBound { slot: u32::MAX, bound: 4 };
        assert_eq!(calls.open(id(u32::MAX, 0)), Err(fault));
        assert_eq!(calls.open(id(4, 0)), Err(ProtocolFault::SlotBeyondBound { slot: 4, bound: 4 }));
        assert_eq!(calls, InboundCalls::new(4));
        assert_eq!(calls.open(id(3, 0)), Ok(()));
    }

    #[test]
    fn the_same_call_twice_is_a_fault_open_or_not() {
        let mut calls = InboundCalls::new(4);
        let fault = Err(ProtocolFault::SameCallTwice { id: id(1, 7) });
        calls.open(id(1, 7)).unwrap();
        assert_eq!(calls.open(id(1, 7)), fault);
        calls.cancel(id(1, 7));
        assert_eq!(calls.open(id(1, 7)), fault);
        assert_eq!(calls.open(id(1, 8)), Ok(()));
    }

    /// Proves: R88
    #[test]
    fn a_call_whose_slot_was_used_anew_gets_no_reply() {
        let mut calls = InboundCalls::new(4);
        calls.open(id(0, 0)).unwrap();
        assert!(calls.start(id(0, 0)));
        calls.open(id(0, 1)).unwrap();
        assert!(!calls.close(id(0, 0)));
        assert!(calls.is_cancelled(id(0, 0)));
        assert!(calls.start(id(0, 1)) && calls.close(id(0, 1)));
        assert_eq!(calls.open_calls(), 0);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Open,
        Start,
        Cancel,
        Close,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![Just(Step::Open), Just(Step::Start), Just(Step::Cancel), Just(Step::Close)]
    }

    proptest! {
        #[test]
        fn calls_are_as_open_as_a_map_says(steps in prop::collection::vec((step(), 0_u32..4, 0_u16..3), 0..200)) {
            let mut calls = InboundCalls::new(3);
            // By slot: the turn of the last call, and whether it started, unless it has ended.
            let mut model = BTreeMap::<u32, (u16, Option<bool>)>::new();
            for (step, slot, turn) in steps {
                let id = id(slot, turn);
                let known = model.get(&slot).copied().filter(|(last, _)| *last == turn);
                let state = known.and_then(|(_, state)| state);
                match step {
                    Step::Open => {
                        let fits = slot < 3 && known.is_none();
                        prop_assert_eq!(calls.open(id).is_ok(), fits);
                        if fits { model.insert(slot, (turn, Some(false))); }
                    }
                    Step::Start => {
                        prop_assert_eq!(calls.start(id), state == Some(false));
                        if state.is_some() { model.insert(slot, (turn, Some(true))); }
                    }
                    Step::Cancel => {
                        calls.cancel(id);
                        if state == Some(false) { model.insert(slot, (turn, None)); }
                    }
                    Step::Close => {
                        prop_assert_eq!(calls.close(id), state.is_some());
                        if state.is_some() { model.insert(slot, (turn, None)); }
                    }
                }
                let open: Vec<_> = model.values().filter(|(_, state)| state.is_some()).collect();
                prop_assert_eq!(calls.open_calls(), open.len());
            }
        }
    }
}
