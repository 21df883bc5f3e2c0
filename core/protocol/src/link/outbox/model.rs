//! A slow outbox that is obviously right, and a test that compares the real one with it.
//!
//! Every frame carries a serial number, so that each one can be followed from the moment it was written.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use proptest::collection::vec as vec_of;
use proptest::prelude::*;

use self::item::{Item, Kind};
use super::super::{FramePart, LEN_BYTES, next_frame};
use super::waiting::NOTE;
use super::*;

mod item;

#[derive(Clone, Debug)]
enum Step {
    Ask { wait: u64, len: usize, is_service: bool, fetch: bool },
    Tell { ttl: Option<u64>, len: usize, age: u64 },
    Answer { len: usize },
    FailToWrite,
    Take,
    End(usize),
    Cancel(usize),
    Sweep(u64),
    Lost,
    Opened,
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    let len = || prop_oneof![4_usize..30, 1_500_usize..2_050];
    prop_oneof![
        8 => (0_u64..60, len(), any::<bool>(), any::<bool>())
            .prop_map(|(wait, len, is_service, fetch)| Step::Ask { wait, len, is_service, fetch }),
        5 => (prop::option::of(0_u64..40), len(), 0_u64..4).prop_map(|(ttl, len, age)| Step::Tell { ttl, len, age }),
        3 => (4_usize..30).prop_map(|len| Step::Answer { len }),
        1 => Just(Step::FailToWrite),
        4 => Just(Step::Take),
        3 => (0_usize..40).prop_map(Step::End),
        3 => (0_usize..40).prop_map(Step::Cancel),
        3 => prop_oneof![0_u64..12, 0_u64..12, 90_u64..110].prop_map(Step::Sweep),
        1 => Just(Step::Lost),
        3 => Just(Step::Opened),
        1 => Just(Step::Drain),
    ]
}

/// The real outbox beside the slow one.
struct Pair {
    real: Outbox<u32>,
    settings: OutboxSettings,
    now: Millis,
    is_up: bool,
    /// Bytes of messages in the last batch.
    taken: usize,
    changed: Millis,
    /// When the last batch was taken, or the lane went up.
    emptied: Millis,
    items: Vec<Item>,
    /// Asks that wait for room.
    line: Vec<Item>,
    /// Calls given and not ended: serial and deadline.
    given: BTreeMap<CorrelationId, (u32, Millis)>,
    /// Thrown out by asks and not fetched.
    dropped: Vec<Item>,
    ids: Vec<CorrelationId>,
    serials: u32,
    /// Whose waiters have come out.
    out: BTreeSet<u32>,
    /// What was reported as never sent.
    never: BTreeSet<u32>,
}

type Checked = Result<(), TestCaseError>;

impl Pair {
    fn new(overflow: Overflow) -> Self {
        let settings = OutboxSettings {
            bytes: 6_000,
            calls: 6,
            waiting: 2,
            frame: 2_048,
            tell_ttl: Millis(15),
            overflow,
        };
        Self {
            real: Outbox::new(7, settings),
            settings,
            now: Millis(100),
            is_up: false,
            taken: 0,
            changed: Millis::ZERO,
            emptied: Millis::ZERO,
            items: vec![],
            line: vec![],
            given: BTreeMap::new(),
            dropped: vec![],
            ids: vec![],
            serials: 0,
            out: BTreeSet::new(),
            never: BTreeSet::new(),
        }
    }

    fn apply(&mut self, step: Step) -> Checked {
        match step {
            Step::Ask { wait, len, is_service, fetch } => self.ask(wait, len, is_service, fetch),
            Step::Tell { ttl, len, age } => self.tell(ttl, len, age),
            Step::Answer { len } => self.answer(len),
            Step::FailToWrite => self.fail_to_write(),
            Step::Take => self.take(),
            Step::End(n) => self.end(n),
            Step::Cancel(n) => self.cancel(n),
            Step::Sweep(after) => self.sweep(after),
            Step::Lost => self.lost(),
            Step::Opened => self.opened(),
            Step::Drain => self.drain(),
        }?;
        self.check_gauges()
    }

    fn ask(&mut self, wait: u64, len: usize, is_service: bool, fetch: bool) -> Checked {
        let deadline = self.now + Millis(wait);
        let kind = Kind::Ask { id: CorrelationId::from_u64(0), is_service };
        let mut item = self.item(kind, len, Some(deadline));
        let reasons = self.reasons(&item);
        let before = self.real.clone();
        let written = item.clone();
        let result = self.real.ask(deadline, item.serial, |out, id| {
            Item { kind: Kind::Ask { id, is_service }, ..written }.encode(out);
            Ok::<_, Refused>(())
        });
        match result {
            Ok(id) => {
                prop_assert!(reasons.is_empty(), "{:?}", reasons);
                item.kind = Kind::Ask { id, is_service };
                if self.must_wait(&item) {
                    self.line.push(item);
                } else {
                    let thrown_out = self.make_room(&item);
                    self.dropped.extend(thrown_out);
                    self.items.push(item);
                }
                prop_assert!(!self.ids.contains(&id), "an id comes once");
                self.ids.push(id);
            }
            Err((waiter, refused)) => {
                prop_assert!(reasons.contains(&refused), "{:?} is not one of {:?}", refused, reasons);
                prop_assert_eq!(waiter, item.serial);
                prop_assert!(self.real == before, "a refusal changes nothing");
            }
        }
        if fetch { self.fetch_dropped() } else { Ok(()) }
    }

    fn tell(&mut self, ttl: Option<u64>, len: usize, age: u64) -> Checked {
        let until = ttl.map(|ttl| self.now + Millis(ttl));
        let told = self.now - Millis(age);
        let item = self.item(Kind::Tell { told }, len, until);
        let reasons = self.reasons(&item);
        let before = self.real.clone();
        let result = self.real.tell_again(self.now, told, |out| {
            item.encode(out);
            Ok::<_, Refused>(())
        });
        match result {
            Ok(dropped) => {
                prop_assert!(reasons.is_empty(), "{:?}", reasons);
                let thrown_out = self.make_room(&item);
                self.dropped.extend(thrown_out);
                self.items.push(item);
                self.check_dropped(&dropped)
            }
            Err(refused) => {
                prop_assert!(reasons.contains(&refused), "{:?} is not one of {:?}", refused, reasons);
                prop_assert!(self.real == before, "a refusal changes nothing");
                Ok(())
            }
        }
    }

    fn answer(&mut self, len: usize) -> Checked {
        let item = self.item(Kind::Answer, len, None);
        let result = self.real.answer(|out| {
            item.encode(out);
            Ok::<_, Refused>(())
        });
        prop_assert_eq!(result, Ok(()), "an answer is never refused for lack of room");
        if self.is_up {
            self.items.push(item);
        }
        Ok(())
    }

    fn fail_to_write(&mut self) -> Checked {
        let fail = |out: &mut BytesMut| {
            out.extend_from_slice(b"half a frame");
            Err(Refused::Frame(FrameError::UnknownTag { tag: 99 }))
        };
        let before = self.real.clone();
        prop_assert!(
            self.real
                .ask(self.now, u32::MAX, |out, _| fail(out))
                .is_err_and(|(waiter, _)| waiter == u32::MAX)
        );
        prop_assert!(self.real.tell(self.now, fail).is_err());
        prop_assert!(self.real.answer(fail).is_err() == self.is_up);
        prop_assert!(self.real == before, "who cannot write leaves nothing behind");
        Ok(())
    }

    fn take(&mut self) -> Checked {
        let batch = self.real.take(self.now);
        if !self.is_up {
            prop_assert_eq!(batch, None);
            return Ok(());
        }
        self.taken = 0;
        if self.now.since(self.emptied) > Millis(100) && !self.items.is_empty() {
            self.set_ttls();
        }
        self.emptied = self.now;
        self.let_in();
        self.taken = self.live();
        let items = core::mem::take(&mut self.items);
        prop_assert_eq!(batch.is_none(), items.is_empty());
        self.check_batch(&batch.unwrap_or_default(), &items)?;
        for item in items {
            if let Kind::Ask { id, .. } = item.kind {
                self.given.insert(id, (item.serial, item.until.unwrap()));
            }
        }
        Ok(())
    }

    /// What is not void in `batch` is `items`, byte for byte and in order, and nothing of it was reported as never sent.
    fn check_batch(&self, batch: &[u8], items: &[Item]) -> Checked {
        let (mut from, mut frames) = (0, vec![]);
        while let Some((frame, next)) = next_frame(&batch[from..], self.settings.frame).unwrap() {
            if Frame::decode(frame) != Ok(Frame::Void) {
                frames.push(frame);
            }
            from += next;
        }
        prop_assert_eq!(from, batch.len());
        let expected: Vec<_> = items.iter().map(Item::bytes).collect();
        prop_assert_eq!(frames, expected);
        prop_assert!(items.iter().all(|item| !self.never.contains(&item.serial)));
        Ok(())
    }

    fn end(&mut self, n: usize) -> Checked {
        let Some(&id) = self.ids.get(n) else { return Ok(()) };
        let expected = self.given.remove(&id).map(|(serial, _)| serial);
        prop_assert_eq!(self.real.end(id), expected);
        expected.map_or(Ok(()), |serial| self.came_out(serial))
    }

    fn cancel(&mut self, n: usize) -> Checked {
        let Some(&id) = self.ids.get(n) else { return Ok(()) };
        let expected = self.give_up(id);
        prop_assert_eq!(self.real.cancel(id), expected.map(|(serial, _)| serial));
        expected.map_or(Ok(()), |(serial, _)| self.came_out(serial))
    }

    fn sweep(&mut self, after: u64) -> Checked {
        self.now = self.now + Millis(after);
        let now = self.now;
        let expired = self.real.sweep(now);
        let is_due = |id: &CorrelationId| self.deadline(*id).is_some_and(|deadline| deadline <= now);
        let mut due: Vec<_> = self.ids.iter().copied().filter(is_due).collect();
        due.sort_by_key(|id| id.slot());
        let mut expected = vec![];
        for id in due {
            let (serial, given) = self.give_up(id).unwrap();
            self.came_out(serial)?;
            expected.push(EndedCall { id, waiter: serial, given });
        }
        prop_assert_eq!(expired.calls, expected);
        let tells = self.remove(|item, pair| pair.has_waited(item));
        prop_assert_eq!(expired.tells, tells.iter().map(|item| item.bytes().freeze()).collect::<Vec<_>>());
        self.never.extend(tells.iter().map(|item| item.serial));
        self.let_in();
        self.check_dropped(&expired.dropped)?;
        prop_assert!(self.real.next_sweep().is_none_or(|at| at > now), "a sweep is not needed again at once");
        Ok(())
    }

    fn lost(&mut self) -> Checked {
        self.taken = 0;
        let mut waiters = self.real.lost(self.now);
        if self.is_up {
            self.is_up = false;
            self.changed = self.now;
        }
        self.items.retain(Item::is_message);
        waiters.sort_unstable();
        self.check_given(&waiters)
    }

    fn opened(&mut self) -> Checked {
        self.real.opened(self.now);
        self.is_up = true;
        (self.changed, self.emptied) = (self.now, self.now);
        self.set_ttls();
        Ok(())
    }

    fn set_ttls(&mut self) {
        let now = self.now;
        for item in self.items.iter_mut().chain(&mut self.line).filter(|item| item.is_message()) {
            item.ttl = item.until.map(|until| until - now);
        }
    }

    fn drain(&mut self) -> Checked {
        self.taken = 0;
        let drained = self.real.drain(self.now);
        self.set_ttls();
        let mut given = drained.given;
        given.sort_unstable();
        self.check_given(&given)?;
        let items = self.remove(|item, _| item.is_message());
        self.items.clear();
        prop_assert!(self.line.is_empty(), "what stood in line comes out behind the others");
        prop_assert_eq!(drained.unsent.len(), items.len());
        for (unsent, item) in drained.unsent.into_iter().zip(items) {
            self.never.insert(item.serial);
            let frame = item.bytes().freeze();
            let expected = match item.kind {
                Kind::Ask { id, .. } => {
                    self.came_out(item.serial)?;
                    Unsent::Ask { id, waiter: item.serial, deadline: item.until.unwrap(), frame }
                }
                Kind::Tell { told } => Unsent::Tell { told, frame },
                _ => unreachable!("only messages are kept"),
            };
            prop_assert_eq!(unsent, expected);
        }
        self.is_up = false;
        self.check_dropped(&drained.dropped)
    }

    fn check_gauges(&mut self) -> Checked {
        let memory = self.real.waiting.buffer().len();
        let weight = |wanted: bool| {
            self.items.iter().filter(|item| item.is_message() == wanted).map(Item::weight).sum::<usize>()
        };
        prop_assert_eq!(self.real.waiting_bytes(), weight(true) + self.in_line());
        prop_assert_eq!(self.real.asks_in_line(), self.line.len());
        prop_assert_eq!(self.real.answer_bytes(), weight(false));
        prop_assert_eq!(self.real.is_empty(), self.items.is_empty() && self.line.is_empty());
        prop_assert_eq!(self.real.pending_calls(), self.sent_calls() + self.line.len());
        prop_assert!(self.real.pending_calls() <= self.settings.calls);
        prop_assert_eq!(self.real.is_up(), self.is_up);
        let pending = self.ids.iter().filter(|id| self.deadline(**id).is_some());
        prop_assert!(pending.clone().all(|id| self.real.is_pending(*id)));
        let bytes = self.settings.bytes;
        prop_assert!(self.with_notes() + self.taken <= bytes, "the last batch and what waits are too much");
        prop_assert!(self.in_line() <= bytes && self.line.len() <= self.settings.waiting);
        prop_assert!(memory <= 2 * (weight(true) + weight(false)) + 8_192, "void frames fill the memory");
        let ends = pending
            .filter_map(|id| self.deadline(*id))
            .chain(self.items.iter().filter_map(|i| self.expires(i)));
        let next = ends.min();
        prop_assert!(next.is_none_or(|next| self.real.next_sweep().is_some_and(|sweep| sweep <= next)));
        Ok(())
    }

    fn fetch_dropped(&mut self) -> Checked {
        let dropped = self.real.dropped();
        self.check_dropped(&dropped)
    }

    fn check_dropped(&mut self, dropped: &Dropped<u32>) -> Checked {
        let (asks, tells): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.dropped).into_iter().partition(Item::is_ask);
        let waiters: Vec<_> = dropped.calls.iter().map(|call| call.waiter).collect();
        prop_assert_eq!(&waiters, &asks.iter().map(|item| item.serial).collect::<Vec<_>>());
        prop_assert!(dropped.calls.iter().all(|call| !call.given));
        let frames: Vec<Bytes> = tells.iter().map(|item| item.bytes().freeze()).collect();
        prop_assert_eq!(&dropped.tells, &frames);
        self.never.extend(asks.iter().chain(&tells).map(|item| item.serial));
        waiters.into_iter().try_for_each(|serial| self.came_out(serial))
    }

    fn check_given(&mut self, waiters: &[u32]) -> Checked {
        let mut expected: Vec<_> = self.given.values().map(|(serial, _)| *serial).collect();
        self.given.clear();
        expected.sort_unstable();
        prop_assert_eq!(waiters, &expected[..]);
        expected.into_iter().try_for_each(|serial| self.came_out(serial))
    }

    fn came_out(&mut self, serial: u32) -> Checked {
        prop_assert!(self.out.insert(serial), "waiter {} came out twice", serial);
        Ok(())
    }

    fn item(&mut self, kind: Kind, len: usize, until: Option<Millis>) -> Item {
        self.serials += 1;
        let ttl = until.map(|until| until - self.now);
        Item { serial: self.serials, kind, len, until, ttl }
    }

    /// Why the message must be refused; nothing if it must be taken.
    fn reasons(&self, item: &Item) -> Vec<Refused> {
        let OutboxSettings { bytes, calls, waiting, frame, overflow, .. } = self.settings;
        let drops = overflow == Overflow::DropOldest;
        let unsent_asks = self.items.iter().filter(|item| item.is_ask()).count();
        let all_calls = self.sent_calls() + self.line.len();
        let full = |of, bound| Refused::Overloaded { of, bound };
        let weight = item.weight() + NOTE;
        let len = (item.weight() - LEN_BYTES) as u64;
        let too_large = FrameError::TooLarge { part: FramePart::Frame, len, max: frame };
        let mut reasons = vec![
            (
                item.is_ask() && all_calls >= calls && !(drops && unsent_asks > 0),
                full(LaneBound::Calls, calls),
            ),
            (len > frame as u64, Refused::Frame(too_large)),
        ];
        if item.is_ask() && self.must_wait(item) {
            reasons.push((self.line.len() >= waiting, full(LaneBound::Waiting, waiting)));
            reasons.push((self.in_line() + weight > bytes, full(LaneBound::Bytes, bytes)));
        } else if !item.is_ask() && !self.line.is_empty() {
            let of_calls = self.sent_calls() >= self.most_sent();
            reasons.push((of_calls, full(LaneBound::Calls, calls)));
            reasons.push((!of_calls, full(LaneBound::Bytes, bytes)));
        } else {
            let too_much = if drops { weight > bytes / 2 } else { !self.has_room(item) };
            reasons.push((too_much, full(LaneBound::Bytes, bytes)));
        }
        reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
    }

    /// Whether an ask cannot be part of the next batch.
    fn must_wait(&self, item: &Item) -> bool {
        let now = self.line.is_empty() && self.sent_calls() < self.most_sent() && self.has_room(item);
        self.settings.overflow == Overflow::Wait && !now
    }

    fn has_room(&self, item: &Item) -> bool {
        self.with_notes() + self.taken + item.weight() + NOTE <= self.settings.bytes
    }

    /// How many calls may be sent: the rest is for those that wait.
    fn most_sent(&self) -> usize {
        let OutboxSettings { calls, waiting, overflow, .. } = self.settings;
        if overflow == Overflow::Wait { calls - waiting } else { calls }
    }

    fn sent_calls(&self) -> usize {
        self.items.iter().filter(|item| item.is_ask()).count() + self.given.len()
    }

    /// Those who wait go on, in order, as far as there is room.
    fn let_in(&mut self) {
        while let Some(first) = self.line.first().cloned() {
            if self.sent_calls() >= self.most_sent() || !self.has_room(&first) {
                return;
            }
            self.line.remove(0);
            self.items.push(Item { ttl: first.until.map(|until| until - self.now), ..first });
        }
    }

    /// What goes for `item`: an ask if there are too many calls, then the oldest while there are too many bytes.
    fn make_room(&mut self, item: &Item) -> Vec<Item> {
        let mut gone = vec![];
        if self.settings.overflow != Overflow::DropOldest {
            return gone;
        }
        if item.is_ask() && self.sent_calls() >= self.settings.calls {
            let oldest = self.items.iter().position(Item::is_ask).unwrap();
            gone.push(self.items.remove(oldest));
        }
        while self.with_notes() + item.weight() + NOTE > self.settings.bytes / 2 {
            let oldest = self.items.iter().position(Item::is_message).unwrap();
            gone.push(self.items.remove(oldest));
        }
        gone
    }

    /// Ends a call that gets no answer; its serial and whether it was given.
    fn give_up(&mut self, id: CorrelationId) -> Option<(u32, bool)> {
        if let Some((serial, _)) = self.given.remove(&id) {
            let cancel = self.item(Kind::Cancel { id }, 0, None);
            self.items.push(cancel);
            return Some((serial, true));
        }
        let gone = self.remove(|item, _| matches!(item.kind, Kind::Ask { id: this, .. } if this == id));
        let serial = gone.first()?.serial;
        self.never.insert(serial);
        Some((serial, false))
    }

    fn remove(&mut self, wanted: impl Fn(&Item, &Self) -> bool) -> Vec<Item> {
        let (items, line) = (core::mem::take(&mut self.items), core::mem::take(&mut self.line));
        let (mut gone, stay): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| wanted(item, self));
        let (left, line): (Vec<_>, Vec<_>) = line.into_iter().partition(|item| wanted(item, self));
        (self.items, self.line) = (stay, line);
        gone.extend(left);
        gone
    }

    /// What those who wait take up.
    fn in_line(&self) -> usize {
        self.line.iter().map(|item| item.weight() + NOTE).sum()
    }

    /// What waits takes up, with what is noted about it.
    fn with_notes(&self) -> usize {
        self.live() + NOTE * self.items.iter().filter(|item| item.is_message()).count()
    }

    fn live(&self) -> usize {
        self.items.iter().filter(|item| item.is_message()).map(Item::weight).sum()
    }

    fn deadline(&self, id: CorrelationId) -> Option<Millis> {
        let unsent = self
            .items
            .iter()
            .chain(&self.line)
            .find(|item| matches!(item.kind, Kind::Ask { id: this, .. } if this == id));
        self.given.get(&id).map(|(_, deadline)| *deadline).or(unsent.and_then(|item| item.until))
    }

    fn expires(&self, item: &Item) -> Option<Millis> {
        match item.kind {
            Kind::Tell { told } if !self.is_up => Some(told.max(self.changed) + self.settings.tell_ttl),
            _ => None,
        }
    }

    fn has_waited(&self, item: &Item) -> bool {
        self.expires(item).is_some_and(|at| at <= self.now)
    }
}

fn compare(overflow: Overflow, steps: Vec<Step>) -> Checked {
    let mut pair = Pair::new(overflow);
    for step in steps {
        pair.apply(step)?;
    }
    pair.drain()?;
    prop_assert_eq!(pair.out.len(), pair.ids.len(), "every waiter has come out");
    prop_assert_eq!(pair.real.pending_calls(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Proves: R34, R82, R87, R88, R90, R93, R96, R101, R433
    #[test]
    fn an_outbox_that_fails_when_full_is_as_the_model(steps in vec_of(step(), 1..120)) {
        compare(Overflow::Fail, steps)?;
    }

    /// Proves: R123, R433
    #[test]
    fn an_outbox_that_waits_when_full_is_as_the_model(steps in vec_of(step(), 1..120)) {
        compare(Overflow::Wait, steps)?;
    }

    /// Proves: R124, R433
    #[test]
    fn an_outbox_that_drops_the_oldest_is_as_the_model(steps in vec_of(step(), 1..120)) {
        compare(Overflow::DropOldest, steps)?;
    }
}
