//! The runs: clean ones of the protocol as it is, and one per broken rule.

use super::*;
use crate::check::{explore, hunt_for};

impl Handoff {
    const fn new(left: Left) -> Self {
        Self { config: Config { left, ..SMALL }, mutant: None }
    }

    const fn with(mut self, config: Config) -> Self {
        self.config = Config { left: self.config.left, ..config };
        self
    }

    /// As nodes have it: nothing waits at a shard, what cannot be taken at once goes back.
    const fn holding_nothing(mut self) -> Self {
        self.config.hold = 0;
        self
    }

    const fn breaking(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }
}

const NOTHING: Left = Left {
    moves: 0,
    cancels: 0,
    unanswered: 0,
    lost_orders: 0,
    breaks: 0,
    crashes: 0,
    fences: 0,
    pauses: 0,
    deadlines: 0,
    passivations: 0,
    leaves: 0,
};
const ONE_MOVE: Left = Left { moves: 1, ..NOTHING };

/// Two nodes, one actor, two and one messages.
const SMALL: Config = Config {
    hosts: 2,
    actors: 1,
    plans: &[&[0, 0], &[0]],
    hold: 1,
    left: NOTHING,
    nested: false,
    migrate: false,
    unsent: false,
};
const ONE: Config = Config { plans: &[&[0]], ..SMALL };
const ALONE: Config = Config { plans: &[&[0, 0]], ..SMALL };

const TWO_MOVES: Left = Left { moves: 2, ..NOTHING };
const MIGRATING: Config = Config { migrate: true, ..ALONE };
const NESTED_CALL: Config = Config { actors: 2, plans: &[&[0]], nested: true, ..SMALL };
/// Three messages of one sender, so that one can be returned, one kept and one on the lane.
const THREE: Config = Config { plans: &[&[0, 0, 0]], ..SMALL };
const UNSENT: Config = Config { unsent: true, ..THREE };

const fn alone(left: Left) -> Handoff {
    Handoff::new(left).with(ALONE)
}

const fn one_message(left: Left) -> Handoff {
    Handoff::new(left).with(ONE)
}

/// Each run visits its whole space: nothing breaks, and everything interesting is reached. The large ones are for
/// `cargo xtask soak`.
macro_rules! clean {
    ($($(#[$attribute:meta])* $name:ident: $run:expr;)*) => {
        $(#[test]
        $(#[$attribute])*
        fn $name() {
            explore($run).assert_clean();
        })*
    };
}

clean! {
    f0_one_move: alone(Left { cancels: 1, ..ONE_MOVE });
    f0_passivation: alone(Left { passivations: 1, ..ONE_MOVE });
    f0_unanswered: one_message(Left { unanswered: 1, ..ONE_MOVE });
    f0_leave: one_message(Left { leaves: 1, ..ONE_MOVE });
    f0_nested: Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(NESTED_CALL);
    f0_migrate: Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(MIGRATING);
    coordinator_lost: one_message(Left { lost_orders: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    owner_crash: one_message(Left { crashes: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    self_fence: one_message(Left { fences: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    pause: one_message(Left { pauses: 1, ..ONE_MOVE });
    lane_break: one_message(Left { breaks: 1, ..ONE_MOVE });
    deadline: one_message(Left { deadlines: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_f0_unanswered: alone(Left { unanswered: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_f0_leave: alone(Left { leaves: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_f0_two_senders: Handoff::new(Left { cancels: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_f0_migrate: Handoff::new(Left { cancels: 1, ..TWO_MOVES }).with(MIGRATING);
    #[ignore = "large: for `cargo xtask soak`"]
    large_coordinator_lost: alone(Left { lost_orders: 1, ..TWO_MOVES });
    #[ignore = "large: for `cargo xtask soak`"]
    large_owner_crash: alone(Left { crashes: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_self_fence: alone(Left { fences: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_pause: alone(Left { pauses: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_lane_break: alone(Left { breaks: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_deadline: alone(Left { deadlines: 1, ..ONE_MOVE });
}

/// Each run visits its whole space with nothing on hold, as it is on real nodes: all that can be reached then is.
macro_rules! clean_without_hold {
    ($($(#[$attribute:meta])* $name:ident: $run:expr;)*) => {
        $(#[test]
        $(#[$attribute])*
        fn $name() {
            explore($run.holding_nothing()).assert_clean_but(&["held_at_new_owner"]);
        })*
    };
}

clean_without_hold! {
    without_hold_f0_one_move: alone(Left { cancels: 1, ..ONE_MOVE });
    without_hold_f0_passivation: alone(Left { passivations: 1, ..ONE_MOVE });
    without_hold_f0_unanswered: one_message(Left { unanswered: 1, ..ONE_MOVE });
    without_hold_f0_leave: one_message(Left { leaves: 1, ..ONE_MOVE });
    without_hold_f0_nested: Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(NESTED_CALL);
    without_hold_f0_migrate: Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(MIGRATING);
    without_hold_coordinator_lost: one_message(Left { lost_orders: 1, ..ONE_MOVE });
    without_hold_lane_break: one_message(Left { breaks: 1, ..ONE_MOVE });
    without_hold_deadline: one_message(Left { deadlines: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    without_hold_owner_crash: one_message(Left { crashes: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    without_hold_self_fence: one_message(Left { fences: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    without_hold_pause: one_message(Left { pauses: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_without_hold_f0_two_senders: Handoff::new(Left { cancels: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_without_hold_f0_unanswered: alone(Left { unanswered: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_without_hold_owner_crash: alone(Left { crashes: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    large_without_hold_lane_break: alone(Left { breaks: 1, ..ONE_MOVE });
}

/// Without a move: what dies, or may not serve any more, is placed elsewhere.
#[test]
fn what_an_owner_leaves_behind_is_placed_anew() {
    for left in [
        Left { crashes: 1, ..NOTHING },
        Left { fences: 1, ..NOTHING },
        Left { pauses: 1, ..NOTHING },
        Left { crashes: 1, breaks: 1, ..NOTHING },
    ] {
        let explored = explore(one_message(left));
        assert!(explored.broken.is_empty(), "{explored:#?}");
        assert!(!explored.never.contains("moved"), "{left:?}");
    }
}

/// Each test breaks one rule; the property named must notice.
macro_rules! mutants {
    ($($(#[$attribute:meta])* $name:ident: $mutant:ident breaks $property:literal in $run:expr;)*) => {
        $(#[test]
        $(#[$attribute])*
        fn $name() {
            hunt_for($run.breaking(Mutant::$mutant), $property).assert_broken($property);
        })*
    };
}

mutants! {
    mutant_switch_at_once: SwitchAtOnce breaks "order_per_sender_and_actor" in alone(ONE_MOVE);
    mutant_not_sticky: NotSticky breaks "order_per_sender_and_actor" in Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(THREE);
    mutant_overflow_newest_only: OverflowNewestOnly breaks "order_per_sender_and_actor" in Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(THREE);
    mutant_hold_before_inbox: HoldBeforeInbox breaks "order_per_sender_and_actor" in alone(Left { cancels: 1, ..ONE_MOVE });
    mutant_flush_buf_first: FlushBufFirst breaks "order_per_sender_and_actor" in Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(THREE);
    #[ignore = "large: for `cargo xtask soak`"]
    mutant_gen_unchecked: GenUnchecked breaks "order_per_sender_and_actor" in alone(Left { breaks: 1, ..TWO_MOVES });
    mutant_gen_and_sticky: GenAndSticky breaks "order_per_sender_and_actor" in Handoff::new(Left { cancels: 1, ..ONE_MOVE }).with(THREE);
    mutant_old_lane_read: OldLaneRead breaks "order_per_sender_and_actor" in alone(Left { breaks: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    mutant_unsent_to_head: UnsentToHead breaks "order_per_sender_and_actor" in Handoff::new(Left { breaks: 1, ..ONE_MOVE }).with(UNSENT);
    mutant_settle_no_flush: SettleNoFlush breaks "no_stray_return" in alone(ONE_MOVE);
    mutant_orphan_returned: OrphanReturned breaks "no_stray_return" in alone(Left { breaks: 1, ..ONE_MOVE });
    mutant_release_before_quiet: ReleaseBeforeQuiet breaks "at_most_one_activation" in alone(ONE_MOVE);
    mutant_passivation_twin: PassivationTwin breaks "at_most_one_activation" in alone(Left { passivations: 1, ..ONE_MOVE });
    mutant_activate_after_fence: ActivateAfterFence breaks "shard_has_one_owner" in one_message(Left { fences: 1, ..ONE_MOVE });
    #[ignore = "large: for `cargo xtask soak`"]
    mutant_activate_after_fence_runs_twice: ActivateAfterFence breaks "at_most_one_activation" in alone(Left { fences: 1, ..ONE_MOVE });
    mutant_coord_forces: CoordForces breaks "shard_has_one_owner" in alone(ONE_MOVE);
    mutant_early_open: EarlyOpen breaks "shard_has_one_owner" in alone(ONE_MOVE);
    mutant_unseal_on_read: UnsealOnRead breaks "shard_has_one_owner" in alone(Left { unanswered: 1, ..ONE_MOVE });
    mutant_transfer_no_expect: TransferNoExpect breaks "shard_has_one_owner" in alone(Left { unanswered: 1, ..ONE_MOVE });
    mutant_no_self_fence: NoSelfFence breaks "shard_has_one_owner" in alone(Left { fences: 1, ..NOTHING });
    mutant_drop_when_not_owner: DropWhenNotOwner breaks "no_message_lost_without_fault" in alone(ONE_MOVE);
    mutant_let_go_drops_inbox: LetGoDropsInbox breaks "no_message_lost_without_fault" in alone(ONE_MOVE);
    mutant_passivation_drops: PassivationDrops breaks "no_message_lost_without_fault" in alone(Left { passivations: 1, ..NOTHING });
    mutant_leave_at_once: LeaveAtOnce breaks "no_message_lost_without_fault" in alone(Left { leaves: 1, ..ONE_MOVE });
    mutant_no_notice: NoNotice breaks "every_move_and_call_ends" in alone(Left { cancels: 1, ..ONE_MOVE });
    mutant_wait_ignores_loss: WaitIgnoresLoss breaks "every_move_and_call_ends" in alone(Left { breaks: 1, cancels: 1, ..ONE_MOVE });
    mutant_inner_held: InnerHeld breaks "every_move_and_call_ends" in Handoff::new(ONE_MOVE).with(NESTED_CALL);
    mutant_parcel_before_quiet: ParcelBeforeQuiet breaks "migrated_state_is_complete" in Handoff::new(ONE_MOVE).with(MIGRATING);
    mutant_parcel_no_ack: ParcelNoAck breaks "migrated_state_is_complete" in Handoff::new(ONE_MOVE).with(MIGRATING);
    mutant_parcel_no_move_id: ParcelNoMoveId breaks "migrated_state_is_complete" in Handoff::new(Left { cancels: 1, ..TWO_MOVES }).with(MIGRATING);
    mutant_parcel_any_move: ParcelAnyMove breaks "migrated_state_is_complete" in Handoff::new(Left { crashes: 1, cancels: 1, ..ONE_MOVE }).with(MIGRATING);
}
