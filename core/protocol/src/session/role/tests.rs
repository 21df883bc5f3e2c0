use super::*;
use crate::identity::{OwnedKey, Placement};

const TTL: Millis = Millis(6_000);
const NOW: Millis = Millis(10_000);
const ME: NodeId = NodeId::new(1);

fn generation(number: u64) -> Generation {
    Generation::new(number)
}

fn holder() -> RoleHolder {
    RoleHolder::new(TTL)
}

fn record(node: NodeId, number: u64) -> OwnerRecord {
    let generation = generation(number);
    let placement = Placement { key: OwnedKey::role("k").unwrap(), node, generation };
    OwnerRecord { placement, since: generation, ttl: TTL, moved: None }
}

/// A node whose claim was not answered and that does not lead any more.
fn strayed() -> RoleHolder {
    let mut holder = holder();
    assert_eq!(holder.handle(NOW, RoleEvent::Wanted), [RoleAction::Claim]);
    let passed = holder.handle(NOW, RoleEvent::Claimed(RoleClaim::Unanswered));
    assert_eq!(passed, [RoleAction::PassedOver]);
    assert_eq!(holder.handle(NOW, RoleEvent::Unwanted), [], "its write may be on its way");
    holder
}

/// The times of the next looks, each of which shows nothing.
fn looks(holder: &mut RoleHolder, from: Millis, until: Millis) -> Vec<Millis> {
    let mut looks = Vec::new();
    for now in (from.0..until.0).step_by(100).map(Millis) {
        if holder.handle(now, RoleEvent::Unwanted) == [RoleAction::LookUp] {
            assert_eq!(holder.handle(now, RoleEvent::LookedUp(RoleSight::NotOurs)), []);
            looks.push(now);
        }
    }
    looks
}

#[test]
fn a_node_that_is_wanted_claims_and_holds_at_the_generation_of_the_answer() {
    let mut holder = holder();
    assert_eq!(holder.handle(NOW, RoleEvent::Wanted), [RoleAction::Claim]);
    assert_eq!(holder.handle(NOW, RoleEvent::Wanted), [], "one request at a time");
    let taken = holder.handle(NOW, RoleEvent::Claimed(RoleClaim::Placed(generation(4))));
    assert_eq!(taken, [RoleAction::TakeOffice(generation(4))]);
    assert_eq!(holder.held(), Some(generation(4)));
    assert_eq!(holder.handle(NOW, RoleEvent::Wanted), []);
    assert_eq!(holder.handle(NOW, RoleEvent::Unwanted), [], "whoever has it keeps it");
}

#[test]
fn a_claim_that_was_refused_leaves_nothing_behind() {
    let mut holder = holder();
    holder.handle(NOW, RoleEvent::Wanted);
    let passed = holder.handle(NOW, RoleEvent::Claimed(RoleClaim::Refused));
    assert_eq!(passed, [RoleAction::PassedOver]);
    assert_eq!(looks(&mut holder, NOW, NOW + Millis(60_000)), []);
}

#[test]
fn a_claim_without_an_answer_whose_node_leads_no_more_is_taken_back() {
    let mut holder = strayed();
    let later = NOW + FIRST_PAUSE;
    assert_eq!(holder.handle(later, RoleEvent::Unwanted), [RoleAction::LookUp]);
    let found = holder.handle(later, RoleEvent::LookedUp(RoleSight::Ours(generation(7))));
    assert_eq!(found, [RoleAction::Release(generation(7))], "never adopted by reading");
    assert_eq!(holder.handle(later, RoleEvent::Released(true)), []);
    assert_eq!(holder.held(), None);
}

/// The write may land when the record is free again, however late.
#[test]
fn one_look_is_not_enough_and_looks_are_never_further_apart_than_the_session_lives() {
    let mut holder = strayed();
    let until = NOW + Millis(600_000);
    let seen = looks(&mut holder, NOW, until);
    assert!(seen.windows(2).all(|two| two[1].since(two[0]) <= TTL), "{seen:?}");
    assert!(until.since(*seen.last().unwrap()) <= TTL, "it never stops");
    let found = {
        let at = until + TTL;
        assert_eq!(holder.handle(at, RoleEvent::Unwanted), [RoleAction::LookUp]);
        holder.handle(at, RoleEvent::LookedUp(RoleSight::Ours(generation(9))))
    };
    assert_eq!(found, [RoleAction::Release(generation(9))]);
}

#[test]
fn whoever_leads_again_claims_instead_of_giving_back() {
    let mut holder = strayed();
    assert_eq!(holder.handle(NOW, RoleEvent::Wanted), [RoleAction::Claim]);
    holder.handle(NOW, RoleEvent::Claimed(RoleClaim::Placed(generation(8))));
    assert_eq!(holder.held(), Some(generation(8)));

    let mut holder = strayed();
    let later = NOW + FIRST_PAUSE;
    assert_eq!(holder.handle(later, RoleEvent::Unwanted), [RoleAction::LookUp]);
    assert_eq!(holder.handle(later, RoleEvent::Wanted), [], "the look is under way");
    let found = holder.handle(later, RoleEvent::LookedUp(RoleSight::Ours(generation(7))));
    assert_eq!(found, [RoleAction::Claim]);
}

#[test]
fn a_wish_that_is_taken_back_before_it_began_is_answered() {
    let mut holder = strayed();
    let later = NOW + FIRST_PAUSE;
    holder.handle(later, RoleEvent::Unwanted);
    holder.handle(later, RoleEvent::Wanted);
    assert_eq!(holder.handle(later, RoleEvent::Unwanted), [RoleAction::PassedOver]);
    let found = holder.handle(later, RoleEvent::LookedUp(RoleSight::Ours(generation(7))));
    assert_eq!(found, [RoleAction::Release(generation(7))]);
}

#[test]
fn a_release_is_repeated_until_it_is_answered() {
    let mut holder = holder();
    holder.handle(NOW, RoleEvent::Wanted);
    holder.handle(NOW, RoleEvent::Claimed(RoleClaim::Placed(generation(4))));
    let release = [RoleAction::Release(generation(4))];
    assert_eq!(holder.handle(NOW, RoleEvent::GivenUp), release);
    assert_eq!(holder.handle(NOW, RoleEvent::Released(false)), []);
    assert!(holder.is_in_doubt());
    let later = NOW + FIRST_PAUSE;
    assert_eq!(holder.handle(later, RoleEvent::Unwanted), release);
    assert_eq!(holder.handle(later, RoleEvent::Released(true)), []);
    assert!(!holder.is_in_doubt(), "no claim of it is on its way");
}

#[test]
fn only_an_answer_that_rules_a_later_write_out_counts_as_one() {
    let claim = |answer| RoleClaim::of(ME, Some(&answer));
    let other = NodeId::new(2);
    assert_eq!(
        claim(Ok(PlacementDecision::Placed(record(ME, 3).placement))),
        RoleClaim::Placed(generation(3))
    );
    assert_eq!(claim(Ok(PlacementDecision::AlreadyPlaced(record(other, 3)))), RoleClaim::Refused);
    assert_eq!(claim(Ok(PlacementDecision::Raced { winner: record(other, 3) })), RoleClaim::Refused);
    assert_eq!(claim(Err(DirectoryError::SessionLost { id: ME })), RoleClaim::Refused);
    assert_eq!(claim(Ok(PlacementDecision::Raced { winner: record(ME, 3) })), RoleClaim::Unanswered);
    let source = || "nobody answers".into();
    let unavailable = DirectoryError::Unavailable { backend: "test", source: source() };
    assert_eq!(claim(Err(unavailable)), RoleClaim::Refused);
    let unknown = DirectoryError::Unknown { backend: "test", source: source() };
    assert_eq!(claim(Err(unknown)), RoleClaim::Unanswered);
    assert_eq!(RoleClaim::of(ME, None), RoleClaim::Unanswered);
}

#[test]
fn a_look_tells_only_whose_the_record_is() {
    let sight = |found| RoleSight::of(ME, Some(&Ok(found)));
    assert_eq!(sight(Some(record(ME, 3))), RoleSight::Ours(generation(3)));
    assert_eq!(sight(Some(record(NodeId::new(2), 3))), RoleSight::NotOurs);
    assert_eq!(sight(None), RoleSight::NotOurs);
    assert_eq!(RoleSight::of(ME, None), RoleSight::Unanswered);
}
