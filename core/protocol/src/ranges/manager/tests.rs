use alloc::boxed::Box;
use alloc::string::{String, ToString};

use proptest::prelude::*;

use super::super::table::tests::{at, name};
use super::*;
use crate::contract::{RecordVersion, TableVersion};
use crate::identity::NodeAddress;
use crate::ranges::{OwnerStatus, RangeTable};

/// The record of one kind, as the contract of the routing table has it.
#[derive(Clone, Debug, Default)]
struct Store {
    saved: Option<SavedTable>,
    retired: BTreeSet<PartitionName>,
    /// Every table that ever stood there.
    history: Vec<SavedTable>,
}

impl Store {
    fn seal(&mut self, epoch: Epoch) -> Result<SavedTable, SaveFailure> {
        let table = self.saved.as_ref().and_then(|saved| saved.table.clone());
        self.check_epoch(epoch)?;
        Ok(self.put(table, epoch))
    }

    fn save(
        &mut self,
        table: &RangeTable,
        expected: &SavedTable,
        epoch: Epoch,
    ) -> Result<SavedTable, SaveFailure> {
        let Ok(successor) = table.succeed(expected.table.as_ref()) else { return Err(SaveFailure::Invalid) };
        if let Some(partition) = successor.must_be_retired.into_iter().find(|one| !self.retired.contains(one))
        {
            return Err(SaveFailure::NotRetired { partition });
        }
        self.check_epoch(epoch)?;
        if self.saved.as_ref().map(|saved| saved.record) != Some(expected.record) {
            return Err(SaveFailure::Conflict { current: self.saved.clone().map(Box::new) });
        }
        Ok(self.put(Some(table.clone()), epoch))
    }

    fn check_epoch(&self, epoch: Epoch) -> Result<(), SaveFailure> {
        match &self.saved {
            Some(saved) if !epoch.may_replace(saved.epoch) => {
                Err(SaveFailure::Superseded { by: saved.epoch })
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, table: Option<RangeTable>, epoch: Epoch) -> SavedTable {
        let version = self.saved.as_ref().map_or(0, |saved| saved.version.0) + 1;
        let saved =
            SavedTable { version: TableVersion(version), record: RecordVersion(version), epoch, table };
        self.history.push(saved.clone());
        self.saved = Some(saved.clone());
        saved
    }

    fn table(&self) -> &RangeTable {
        self.saved.as_ref().and_then(|saved| saved.table.as_ref()).unwrap()
    }
}

/// A manager with its store, whose answers come at once.
struct Office {
    manager: RangeManager,
    store: Store,
    now: Millis,
    /// What was asked of others.
    asked: Vec<ManagerAction>,
    answers: Vec<(RequestId, ChangeOutcome)>,
}

impl Office {
    fn new(epoch: u64, store: Store) -> Self {
        let (manager, actions) = RangeManager::take_office(Epoch(epoch), ManagerLimits::DEFAULT);
        let mut office = Self { manager, store, now: Millis(1_000), asked: Vec::new(), answers: Vec::new() };
        office.carry_out(actions);
        office
    }

    fn with_hosts(nodes: &[u64]) -> Self {
        let mut office = Self::new(1, Store::default());
        office.hosts(nodes);
        office
    }

    fn handle(&mut self, event: ManagerEvent) {
        let actions = self.manager.handle(self.now, event);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<ManagerAction>) {
        for action in actions {
            match action {
                ManagerAction::Seal => {
                    let sealed = self.store.seal(self.manager.epoch);
                    self.handle(ManagerEvent::Sealed(sealed));
                }
                ManagerAction::Save { table, expected } => {
                    let saved = self.store.save(&table, &expected, self.manager.epoch);
                    self.handle(ManagerEvent::Saved(saved));
                }
                ManagerAction::Load => {
                    let found = self.store.saved.clone();
                    self.handle(ManagerEvent::Loaded(Ok(found)));
                }
                ManagerAction::Answer { id, outcome } => self.answers.push((id, outcome)),
                ManagerAction::WakeAt(_) => {}
                other => self.asked.push(other),
            }
        }
    }

    fn hosts(&mut self, nodes: &[u64]) {
        self.handle(ManagerEvent::Hosts(hosts(nodes)));
    }

    fn ask(&mut self, id: u64, change: RangeChange) {
        let until = self.now + Millis(10_000);
        self.handle(ManagerEvent::Asked { id: RequestId(id), change, until });
    }

    fn wake_after(&mut self, millis: u64) {
        self.now = self.now + Millis(millis);
        self.handle(ManagerEvent::WokeUp);
    }

    /// The owners of everything that was asked for do it.
    fn retire_all(&mut self) {
        for action in core::mem::take(&mut self.asked) {
            if let ManagerAction::Retire { partition, .. } = action {
                self.store.retired.insert(partition.clone());
                self.handle(ManagerEvent::Retired(partition));
            }
        }
    }

    fn owners(&self) -> Vec<u64> {
        self.store.table().entries().iter().map(|entry| entry.owner.node.as_u64()).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.store.table().entries().iter().map(|entry| entry.partition.as_str()).collect()
    }

    fn last_answer(&self) -> Option<&ChangeOutcome> {
        self.answers.last().map(|(_, outcome)| outcome)
    }
}

fn host(status: OwnerStatus) -> RangeHost {
    RangeHost { address: NodeAddress::new("10.0.0.1", 4_710).unwrap(), status }
}

fn hosts(nodes: &[u64]) -> BTreeMap<NodeId, RangeHost> {
    nodes.iter().map(|node| (NodeId::new(*node), host(OwnerStatus::Up))).collect()
}

fn split(partition: &str, key: &str) -> RangeChange {
    RangeChange::Split { partition: name(partition), at: at(key) }
}

fn merge(partition: &str) -> RangeChange {
    RangeChange::Merge { partition: name(partition) }
}

#[test]
fn nothing_is_written_before_the_seal_is_answered() {
    let (mut manager, first) = RangeManager::take_office(Epoch(3), ManagerLimits::DEFAULT);
    assert_eq!(first, [ManagerAction::Seal]);
    assert_eq!(manager.handle(Millis(1), ManagerEvent::Hosts(hosts(&[1]))), []);
    let until = Millis(500);
    let asked = ManagerEvent::Asked { id: RequestId(1), change: split("x", "m"), until };
    assert_eq!(manager.handle(Millis(2), asked), [ManagerAction::WakeAt(until)]);
    let refused = manager.handle(Millis(3), ManagerEvent::Sealed(Err(SaveFailure::Unavailable)));
    assert_eq!(refused, [ManagerAction::WakeAt(until)]);
}

#[test]
fn a_new_manager_takes_nobody_for_gone_before_it_was_told_who_is_there() {
    let first = Office::with_hosts(&[1, 2]);
    let tables = first.store.history.len();
    let mut second = Office::new(2, first.store);
    second.wake_after(10_000);
    assert_eq!(second.store.history.len(), tables + 1, "sealed, and nothing else");
    assert_eq!(second.store.table().entries()[0].owner.status, OwnerStatus::Up);
    second.hosts(&[1, 2]);
    assert_eq!(second.store.history.len(), tables + 1, "all is well");
    second.hosts(&[2]);
    assert_eq!(second.owners(), [2]);
}

/// Proves: R330
#[test]
fn a_kind_without_a_table_gets_one_as_soon_as_somebody_hosts_it() {
    let mut office = Office::new(7, Store::default());
    assert_eq!(office.store.saved.as_ref().unwrap().table, None, "sealed, and nobody to give anything to");
    office.hosts(&[4, 2, 3]);
    assert_eq!((office.owners(), office.names()), (vec![2], vec!["7-1"]));
}

/// Proves: R336
#[test]
fn what_a_node_leaves_behind_goes_to_whoever_has_the_fewest() {
    let mut office = Office::with_hosts(&[1]);
    for (id, (partition, key)) in [("1-1", "d"), ("1-3", "h"), ("1-5", "p")].into_iter().enumerate() {
        office.ask(id as u64, split(partition, key));
        office.retire_all();
    }
    assert_eq!(office.owners(), [1, 1, 1, 1]);
    office.hosts(&[1, 2]);
    assert_eq!(office.owners(), [1, 1, 2, 2], "a node that joins gets its share");
    office.hosts(&[1, 2, 3]);
    assert_eq!(office.owners(), [1, 3, 2, 2]);
    office.hosts(&[2, 3]);
    assert_eq!(office.owners(), [3, 3, 2, 2], "a node that is gone loses everything");
    office.hosts(&[]);
    let statuses: Vec<_> = office.store.table().entries().iter().map(|entry| entry.owner.status).collect();
    assert_eq!(statuses, [OwnerStatus::Down; 4], "nobody is left, and the table says so");
    office.hosts(&[9]);
    assert_eq!(office.owners(), [9; 4]);
}

#[test]
fn a_node_that_leaves_is_asked_to_hand_over_and_one_that_is_gone_is_not() {
    let mut office = Office::with_hosts(&[1]);
    let mut leaving = hosts(&[2]);
    leaving.insert(NodeId::new(1), host(OwnerStatus::Leaving));
    office.handle(ManagerEvent::Hosts(leaving));
    let (partition, from, to) = (name("1-1"), NodeId::new(1), NodeId::new(2));
    assert_eq!(office.asked, [ManagerAction::HandOver { partition, from, to }]);
    office.asked.clear();
    office.hosts(&[3]);
    assert_eq!((office.owners(), office.asked.len()), (vec![3], 0));
}

#[test]
fn a_split_takes_two_tables_and_the_second_waits_for_the_parent() {
    let mut office = Office::with_hosts(&[1]);
    office.ask(1, split("1-1", "m"));
    assert_eq!(office.last_answer(), Some(&ChangeOutcome::Done(TableVersion(3))));
    assert_eq!(office.names(), ["1-2", "1-3"]);
    assert_eq!(office.store.table().entries()[0].parents, [name("1-1")]);
    let parent = ManagerAction::Retire { partition: name("1-1"), owner: Some(NodeId::new(1)) };
    assert_eq!(office.asked, [parent]);
    office.ask(2, split("1-2", "f"));
    assert_eq!(office.names(), ["1-2", "1-3"], "the next split waits");
    office.retire_all();
    assert_eq!(office.names(), ["1-4", "1-5", "1-3"]);
    assert!(office.store.table().entries()[2].parents.is_empty(), "the parent is forgotten");
    assert!(matches!(office.last_answer(), Some(ChangeOutcome::Done(_))));
}

#[test]
fn a_merge_takes_two_tables_too() {
    let mut office = Office::with_hosts(&[1]);
    office.ask(1, split("1-1", "m"));
    office.ask(2, merge("1-2"));
    assert_eq!(office.answers.len(), 1, "the merge waits for the split");
    office.retire_all();
    assert_eq!(office.names(), ["1-4"]);
    assert_eq!(office.store.table().entries()[0].parents, [name("1-2"), name("1-3")]);
    office.retire_all();
    assert!(office.store.table().entries()[0].parents.is_empty());
}

#[test]
fn an_owner_that_does_not_retire_is_asked_again() {
    let mut office = Office::with_hosts(&[1]);
    office.ask(1, split("1-1", "m"));
    office.asked.clear();
    office.wake_after(1_000);
    let again = ManagerAction::Retire { partition: name("1-1"), owner: None };
    assert_eq!(office.asked, core::slice::from_ref(&again));
    // Somebody believes so, and is wrong: the store has the last word.
    office.handle(ManagerEvent::Retired(name("1-1")));
    assert_eq!(office.store.table().entries()[0].parents, [name("1-1")]);
    assert_eq!(office.asked, [again.clone(), again]);
    office.retire_all();
    office.wake_after(1_000);
    assert!(office.store.table().entries()[0].parents.is_empty());
}

/// The parent of what the dead node was to own has no owner any more, and nobody but a new owner retires it.
#[test]
fn who_inherits_from_the_gone_is_decided_before_parents_are_dropped() {
    let mut office = Office::with_hosts(&[1]);
    office.ask(1, split("1-1", "m"));
    office.handle(ManagerEvent::Retired(name("1-1")));
    assert_eq!(office.owners(), [1, 1], "the store has refused to drop the parent");
    office.hosts(&[2]);
    office.handle(ManagerEvent::Retired(name("1-1")));
    office.wake_after(1_000);
    assert_eq!(office.owners(), [2, 2]);
    office.retire_all();
    office.wake_after(1_000);
    assert!(office.store.table().entries()[0].parents.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut office = Office::with_hosts(&[1]);
    let before = office.store.saved.clone();
    for (change, why) in [
        (split("nowhere", "m"), ChangeRefusal::UnknownPartition),
        (merge("1-1"), ChangeRefusal::NotInside),
        (RangeChange::Assign { partition: name("1-1"), to: NodeId::new(5) }, ChangeRefusal::UnknownNode),
        (
            RangeChange::Assign { partition: name("none"), to: NodeId::new(1) },
            ChangeRefusal::UnknownPartition,
        ),
    ] {
        office.ask(1, change);
        assert_eq!(office.last_answer(), Some(&ChangeOutcome::Refused(why)));
    }
    assert_eq!(office.store.saved, before);
}

#[test]
fn only_so_many_changes_wait_and_none_longer_than_it_wants() {
    let mut office = Office::with_hosts(&[1]);
    office.ask(1, split("1-1", "m"));
    office.asked.clear();
    for id in 0..=256 {
        office.ask(100 + id, split("1-2", "f"));
    }
    assert_eq!(
        office.answers.last(),
        Some(&(RequestId(356), ChangeOutcome::Refused(ChangeRefusal::TooMany)))
    );
    office.wake_after(10_000);
    assert_eq!(office.answers.iter().filter(|(_, outcome)| *outcome == ChangeOutcome::NotYet).count(), 256);
}

/// A manager whose next save is not answered.
fn unanswered(applied: bool) -> (Office, ManagerEvent) {
    let mut office = Office::with_hosts(&[1]);
    let until = Millis(60_000);
    let asked = ManagerEvent::Asked { id: RequestId(1), change: split("1-1", "m"), until };
    let actions = office.manager.handle(office.now, asked);
    let [ManagerAction::Save { table, expected }, _] = &actions[..] else { panic!("{actions:?}") };
    if applied {
        office.store.save(table, expected, Epoch(1)).unwrap();
    }
    (office, ManagerEvent::Saved(Err(SaveFailure::Unknown)))
}

#[test]
fn a_save_whose_answer_was_lost_is_looked_up_before_anybody_is_told() {
    for applied in [true, false] {
        let (mut office, unknown) = unanswered(applied);
        let actions = office.manager.handle(office.now, unknown);
        assert_eq!(actions[0], ManagerAction::Load);
        assert!(!actions.iter().any(|action| matches!(action, ManagerAction::Answer { .. })));
        office.carry_out(actions);
        assert_eq!(office.last_answer(), Some(&ChangeOutcome::Done(TableVersion(3))), "applied: {applied}");
        assert_eq!(office.names(), ["1-2", "1-3"], "tried again, it brings the same partitions");
    }
}

#[test]
fn a_late_write_of_our_own_is_no_conflict() {
    let (mut office, unknown) = unanswered(false);
    let late = office.manager.stage.clone();
    let Stage::Saving(late) = late else { panic!("{late:?}") };
    let before = office.store.saved.clone().unwrap();
    let actions = office.manager.handle(office.now, unknown);
    assert_eq!(actions[0], ManagerAction::Load);
    // The look-up finds nothing new, and then the write arrives after all.
    let actions = office.manager.handle(office.now, ManagerEvent::Loaded(Ok(Some(before.clone()))));
    office.store.save(&late.table, &before, Epoch(1)).unwrap();
    office.carry_out(actions);
    assert_eq!(office.last_answer(), Some(&ChangeOutcome::Done(TableVersion(3))));
}

/// Proves: R502
#[test]
fn a_manager_that_was_superseded_says_so_and_writes_nothing_more() {
    let mut first = Office::with_hosts(&[1]);
    let mut second = Office::new(2, first.store.clone());
    second.hosts(&[1, 2]);
    first.store = second.store.clone();
    first.ask(1, split("1-1", "m"));
    assert_eq!(first.answers, [(RequestId(1), ChangeOutcome::SteppedDown { by: Epoch(2) })]);
    assert_eq!(first.asked, [ManagerAction::StepDown { by: Epoch(2) }]);
    assert_eq!(first.manager.is_over(), Some(Epoch(2)));
    let before = first.store.saved.clone();
    first.hosts(&[2]);
    first.wake_after(60_000);
    first.ask(2, split("1-1", "m"));
    assert_eq!(first.answers.last(), Some(&(RequestId(2), ChangeOutcome::SteppedDown { by: Epoch(2) })));
    assert_eq!(first.store.saved, before);
}

#[test]
fn a_new_manager_finishes_what_the_one_before_it_began() {
    let mut first = Office::with_hosts(&[1]);
    first.ask(1, split("1-1", "m"));
    let mut second = Office::new(2, first.store.clone());
    let parent = ManagerAction::Retire { partition: name("1-1"), owner: None };
    assert_eq!(second.asked, [parent]);
    second.hosts(&[1, 2]);
    second.retire_all();
    assert!(second.store.table().entries().iter().all(|entry| entry.parents.is_empty()));
    assert_eq!(second.owners(), [1, 2]);
}

/// What happens to a request to the store.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Fine,
    Unavailable,
    AnswerLost,
    RequestLost,
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        4 => Just(Luck::Fine),
        1 => Just(Luck::Unavailable),
        1 => Just(Luck::AnswerLost),
        1 => Just(Luck::RequestLost),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Hosts(Vec<u64>),
    Split(usize, String),
    Merge(usize),
    Assign(usize, u64),
    Retire,
    Wake,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::collection::btree_set(1..5_u64, 0..4)
            .prop_map(|nodes| Step::Hosts(nodes.into_iter().collect())),
        (0..8_usize, "[a-z]{1,2}").prop_map(|(place, key)| Step::Split(place, key)),
        (0..8_usize).prop_map(Step::Merge),
        (0..8_usize, 1..5_u64).prop_map(|(place, node)| Step::Assign(place, node)),
        Just(Step::Retire),
        Just(Step::Wake),
    ]
}

/// Runs a manager on a store that answers by luck.
struct Unlucky {
    office: Office,
    lucks: Vec<Luck>,
}

impl Unlucky {
    fn handle(&mut self, event: ManagerEvent) -> Result<(), TestCaseError> {
        let mut actions: VecDeque<_> = self.office.manager.handle(self.office.now, event).into();
        while let Some(action) = actions.pop_front() {
            let Some(answer) = self.attempt(action)? else { continue };
            actions.extend(self.office.manager.handle(self.office.now, answer));
        }
        Ok(())
    }

    fn attempt(&mut self, action: ManagerAction) -> Result<Option<ManagerEvent>, TestCaseError> {
        let luck = self.lucks.pop().unwrap_or(Luck::Fine);
        let epoch = self.office.manager.epoch;
        let store = &mut self.office.store;
        let unlucky = |luck| match luck {
            Luck::Unavailable => SaveFailure::Unavailable,
            _ => SaveFailure::Unknown,
        };
        let event = match (action, luck) {
            (ManagerAction::Seal, Luck::Fine) => ManagerEvent::Sealed(store.seal(epoch)),
            (ManagerAction::Seal, luck) => ManagerEvent::Sealed(Err(unlucky(luck))),
            (ManagerAction::Load, Luck::Fine) => ManagerEvent::Loaded(Ok(store.saved.clone())),
            (ManagerAction::Load, luck) => ManagerEvent::Loaded(Err(unlucky(luck))),
            (ManagerAction::Save { table, expected }, luck) => {
                prop_assert_eq!(expected.epoch, epoch, "decided from what it sealed or wrote itself");
                prop_assert!(
                    table.succeed(expected.table.as_ref()).is_ok(),
                    "every table may follow the last"
                );
                match luck {
                    Luck::Fine => ManagerEvent::Saved(store.save(&table, &expected, epoch)),
                    Luck::AnswerLost => {
                        drop(store.save(&table, &expected, epoch));
                        ManagerEvent::Saved(Err(SaveFailure::Unknown))
                    }
                    luck => ManagerEvent::Saved(Err(unlucky(luck))),
                }
            }
            (ManagerAction::Answer { id, outcome }, _) => {
                self.office.answers.push((id, outcome));
                return Ok(None);
            }
            (other, _) => {
                self.office.asked.push(other);
                return Ok(None);
            }
        };
        Ok(Some(event))
    }

    fn step(&mut self, id: u64, step: Step) -> Result<(), TestCaseError> {
        let entries = self.office.store.saved.as_ref().and_then(|saved| saved.table.clone());
        let partition = |place: usize| {
            let entries = entries.as_ref().map(|table| table.entries().to_vec()).unwrap_or_default();
            entries
                .get(place % entries.len().max(1))
                .map_or_else(|| name("none"), |entry| entry.partition.clone())
        };
        let until = self.office.now + Millis(5_000);
        let change = match step {
            Step::Hosts(nodes) => return self.handle(ManagerEvent::Hosts(hosts(&nodes))),
            Step::Wake => {
                self.office.now = self.office.now + Millis(1_000);
                return self.handle(ManagerEvent::WokeUp);
            }
            Step::Retire => return self.retire(),
            Step::Split(place, key) => RangeChange::Split { partition: partition(place), at: at(&key) },
            Step::Merge(place) => RangeChange::Merge { partition: partition(place) },
            Step::Assign(place, to) => {
                RangeChange::Assign { partition: partition(place), to: NodeId::new(to) }
            }
        };
        self.handle(ManagerEvent::Asked { id: RequestId(id), change, until })
    }

    fn retire(&mut self) -> Result<(), TestCaseError> {
        for action in core::mem::take(&mut self.office.asked) {
            if let ManagerAction::Retire { partition, .. } = action {
                self.office.store.retired.insert(partition.clone());
                self.handle(ManagerEvent::Retired(partition))?;
            }
        }
        Ok(())
    }
}

proptest! {
    /// Whatever the store does, every table may follow the one before it, every request is answered once, and when the luck
    /// returns the partitions are spread evenly and no parents are left.
    #[test]
    fn every_request_is_answered_once_and_in_the_end_all_is_even(
        steps in proptest::collection::vec(step(), 1..30), lucks in proptest::collection::vec(luck(), 0..60),
    ) {
        let (manager, first) = RangeManager::take_office(Epoch(4), ManagerLimits::DEFAULT);
        let office = Office { manager, store: Store::default(), now: Millis(1), asked: Vec::new(), answers: Vec::new() };
        let mut unlucky = Unlucky { office, lucks };
        for action in first {
            if let Some(answer) = unlucky.attempt(action)? {
                unlucky.handle(answer)?;
            }
        }
        let asked = steps.iter().filter(|step| matches!(step, Step::Split(..) | Step::Merge(_) | Step::Assign(..)));
        let asked = asked.count();
        for (id, step) in (1..).zip(steps) {
            unlucky.step(id, step)?;
        }
        unlucky.lucks.clear();
        unlucky.handle(ManagerEvent::Hosts(hosts(&[1, 2, 3])))?;
        for _ in 0..20 {
            unlucky.step(0, Step::Wake)?;
            unlucky.retire()?;
        }
        let answered: BTreeSet<_> = unlucky.office.answers.iter().map(|(id, _)| *id).collect();
        prop_assert_eq!((unlucky.office.answers.len(), answered.len()), (asked, asked));
        let table = unlucky.office.store.table();
        prop_assert!(table.entries().iter().all(|entry| entry.parents.is_empty()), "{table:?}");
        let count = |node: u64| table.entries().iter().filter(|entry| entry.owner.node == NodeId::new(node)).count();
        let counts = [count(1), count(2), count(3)];
        prop_assert_eq!(counts.iter().sum::<usize>(), table.entries().len());
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    }
}

#[test]
fn a_first_table_is_cut_where_it_was_asked_for_and_spread() {
    let (manager, first) = RangeManager::take_office(Epoch(1), ManagerLimits::DEFAULT);
    let cuts = ["q", "h", "q"].map(|cut| crate::identity::ActorKey::new(cut).unwrap());
    let (manager, store) = (manager.first_cut_at(cuts), Store::default());
    let (now, asked, answers) = (Millis(1_000), Vec::new(), Vec::new());
    let mut office = Office { manager, store, now, asked, answers };
    office.carry_out(first);
    office.hosts(&[1, 2, 3]);
    let entries = office.store.table().entries();
    let ranges: Vec<String> = entries.iter().map(|entry| entry.range.to_string()).collect();
    assert_eq!(ranges, ["[..h)", "[h..q)", "[q..)"]);
    let owners: BTreeSet<NodeId> = entries.iter().map(|entry| entry.owner.node).collect();
    assert_eq!(owners.len(), 3);
}
