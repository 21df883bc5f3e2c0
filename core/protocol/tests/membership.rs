//! Membership of many nodes under delays, losses, splits, deaths and leaves, in simulated time.

mod cluster;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::{
    LeaderProvider, LeaderRule, Member, MemberEvent, MemberStatus, MembershipEvent, NodeLoad, Sides,
    SplitBrain, SplitStrategy,
};
use archipelago_protocol::time::Millis;
use cluster::Cluster;

/// Proves: R139, R140, R142, R148, R149, R154, R469
#[test]
fn nodes_that_the_directory_shows_to_each_other_come_up() {
    for count in [1, 2, 5, 20] {
        let mut cluster = Cluster::new(count);
        (0..count).for_each(|_| _ = cluster.start());
        assert!(cluster.run_until(20_000, Cluster::agrees), "{count} nodes");
        assert!(cluster.all_told(|event| matches!(event, MemberEvent::MemberUp(_))));
        assert!(cluster.all_told(|event| *event == MemberEvent::Converged));
        let leaders: BTreeSet<_> = cluster.running().map(|node| node.membership.leader()).collect();
        assert_eq!(leaders, BTreeSet::from([Some(cluster.id(0))]), "the lowest address leads");
    }
}

/// Proves: R145, R146, R147, R432
#[test]
fn a_node_joins_through_the_first_seed_that_answers() {
    let mut cluster = Cluster::new(7);
    cluster.discovery = false;
    let (first, second) = (cluster.start(), cluster.start());
    let seeds = vec!["nobody:1".parse().unwrap(), cluster.nodes[first].info.address.clone()];
    cluster.tell(second, MembershipEvent::JoinThrough(seeds));
    let third = cluster.start();
    let seeds = vec![cluster.nodes[second].info.address.clone()];
    cluster.tell(third, MembershipEvent::JoinThrough(seeds));
    assert!(cluster.run_until(20_000, Cluster::agrees));
}

/// Proves: R165, R196, R197, R200, R202, R203, R443, R444, R453, R461, C2, C22
#[test]
fn a_killed_node_is_suspected_soon_and_removed_everywhere_once_its_session_has_ended() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 5);
        let victim = cluster.id(2);
        let died_at = cluster.now;
        cluster.kill(2);
        let suspected = |cluster: &Cluster| {
            cluster
                .all_told(|event| matches!(event, MemberEvent::Unreachable(member) if member.id() == victim))
        };
        assert!(cluster.run_until(6_000, suspected), "seed {seed}");
        assert!(cluster.now.since(died_at) <= Millis(6_000));
        let is_down = |cluster: &Cluster| {
            cluster
                .any_told(|event| matches!(event, MemberEvent::MemberDowned(member) if member.id() == victim))
        };
        assert!(!is_down(&cluster), "suspicion downs nobody (seed {seed})");
        assert!(cluster.run_until(20_000, Cluster::agrees), "seed {seed}");
        assert!(is_down(&cluster));
        assert!(cluster.all_told(|event| {
            matches!(event, MemberEvent::MemberRemoved(member) if member.id() == victim)
        }));
        assert!(cluster.nodes.iter().all(|node| node.revoked.is_empty()), "the lease was faster");
    }
}

/// Proves: R143, R155, R161, R162
#[test]
fn several_nodes_leave_at_once_and_nobody_is_called_down() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 6);
        // The leader is one of them.
        [0, 2, 5].iter().for_each(|place| cluster.leave(*place));
        assert!(cluster.run_until(30_000, Cluster::agrees), "seed {seed}");
        assert!([0, 2, 5].iter().all(|place| cluster.nodes[*place].has_left), "seed {seed}");
        assert!(!cluster.any_told(|event| matches!(event, MemberEvent::MemberDowned(_))), "seed {seed}");
        assert_eq!(cluster.running().count(), 3);
        assert!(cluster.all_told(|event| *event == MemberEvent::LeaderChanged(Some(cluster.id(1)))));
    }
}

#[test]
fn all_nodes_leave_at_once() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 4);
        (0..4).for_each(|place| cluster.leave(place));
        assert!(cluster.run_until(30_000, |cluster| cluster.running().count() == 0), "seed {seed}");
        assert!(cluster.nodes.iter().all(|node| node.has_left && !node.is_down), "seed {seed}");
    }
}

#[test]
fn a_leaving_node_stays_until_it_has_handed_over() {
    let mut cluster = Cluster::formed(3, 3);
    cluster.tell(1, MembershipEvent::LeaveRequested);
    cluster.run(20_000);
    assert!(
        cluster
            .running()
            .all(|node| { node.membership.members().any(|member| member.status == MemberStatus::Leaving) })
    );
    cluster.tell(1, MembershipEvent::HandedOff);
    assert!(cluster.run_until(20_000, Cluster::agrees));
    assert!(cluster.nodes[1].has_left);
}

/// Proves: R156, R157, R163, R194, R199, R464, C5
#[test]
fn false_suspicion_heals() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 5);
        let cut_off = cluster.id(4);
        cluster.split(&[4]);
        cluster.run(8_000);
        assert!(cluster.nodes[0].membership.is_suspect(cut_off), "seed {seed}");
        cluster.heal();
        assert!(cluster.run_until(20_000, Cluster::agrees), "seed {seed}");
        assert!(cluster.any_told(|event| {
            matches!(event, MemberEvent::ReachableAgain(member) if member.id() == cut_off)
        }));
        assert!(cluster.nodes.iter().all(|node| node.revoked.is_empty() && !node.is_down));
    }
}

/// Proves: C50
#[test]
fn a_broken_way_between_two_nodes_is_not_reported() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 5);
        cluster.cut_one_way(1, 3);
        cluster.run(60_000);
        assert!(!cluster.any_told(|event| matches!(event, MemberEvent::Unreachable(_))), "seed {seed}");
        cluster.cut_one_way(3, 1);
        cluster.run(60_000);
        assert!(
            !cluster.any_told(|event| matches!(event, MemberEvent::Unreachable(_))),
            "seed {seed}, both ways"
        );
    }
}

/// Proves: R150, R151, R448, C54
#[test]
fn only_the_minority_is_revoked_and_only_by_the_majority() {
    for seed in 0..6 {
        for minority in [vec![0], vec![0, 1], vec![1, 4]] {
            let mut cluster = Cluster::formed(seed, 5);
            let lost: BTreeSet<NodeId> = minority.iter().map(|place| cluster.id(*place)).collect();
            cluster.split(&minority);
            cluster.run(19_000);
            assert!(
                cluster.nodes.iter().all(|node| node.revoked.is_empty()),
                "not before the picture stood still"
            );
            cluster.run(31_000);
            for (place, node) in cluster.nodes.iter().enumerate() {
                if minority.contains(&place) {
                    assert_eq!(
                        node.revoked,
                        BTreeSet::new(),
                        "seed {seed}: the losing side does so to nobody"
                    );
                    assert!(node.is_down, "seed {seed}: its session has ended");
                } else {
                    assert!(node.revoked.is_subset(&lost) && !node.is_down, "seed {seed}");
                }
            }
            let revoked: BTreeSet<NodeId> =
                cluster.nodes.iter().flat_map(|node| node.revoked.clone()).collect();
            assert_eq!(revoked, lost, "seed {seed}");
            assert!(cluster.run_until(20_000, Cluster::agrees), "seed {seed}");
        }
    }
}

/// Proves: R152
#[test]
fn of_two_halves_the_one_with_the_lowest_address_stays() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 4);
        cluster.split(&[0, 3]);
        cluster.run(60_000);
        let down: Vec<bool> = cluster.nodes.iter().map(|node| node.is_down).collect();
        assert_eq!(down, [false, true, true, false], "seed {seed}");
    }
}

/// With three of five dead, counting heads would stop the survivors. Proves: C54
#[test]
fn survivors_of_a_majority_go_on() {
    let mut cluster = Cluster::formed(1, 5);
    (0..3).for_each(|place| cluster.kill(place));
    assert!(cluster.run_until(60_000, Cluster::agrees));
    assert_eq!(cluster.running().count(), 2);
    assert!(cluster.nodes.iter().all(|node| node.revoked.is_empty()));
}

/// Proves: R153, R496
#[test]
fn other_strategies_decide_otherwise() {
    let mut cluster = Cluster::new(5);
    cluster.settings.strategy = SplitStrategy::KeepOldest;
    cluster.settings.leader = LeaderRule::Oldest;
    let oldest = cluster.start_at("z:1");
    assert!(cluster.run_until(20_000, Cluster::agrees));
    (0..4).for_each(|_| _ = cluster.start());
    assert!(cluster.run_until(20_000, Cluster::agrees));
    assert_eq!(cluster.nodes[3].membership.leader(), Some(cluster.id(oldest)));
    cluster.split(&[oldest]);
    cluster.run(60_000);
    assert!(!cluster.nodes[oldest].is_down && (1..=4).all(|place| cluster.nodes[place].is_down));
}

/// The side with the node of this name wins; its name says who leads, too.
#[derive(Clone, Debug)]
struct Around(&'static str);

impl SplitBrain for Around {
    fn ours_wins(&self, sides: &Sides<'_>) -> bool {
        sides.ours.iter().any(|member| member.info.name == self.0)
    }
}

impl LeaderProvider for Around {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        candidates.min_by_key(|member| (member.info.name != self.0, member.id())).map(Member::id)
    }
}

/// Proves: R153, R496
#[test]
fn a_strategy_and_a_leader_of_ones_own_can_be_plugged_in() {
    let mut cluster = Cluster::new(6);
    cluster.settings.strategy = SplitStrategy::own(Around("node-3"));
    cluster.settings.leader = LeaderRule::own(Around("node-3"));
    (0..5).for_each(|_| _ = cluster.start());
    assert!(cluster.run_until(60_000, Cluster::agrees));
    assert!(cluster.nodes.iter().all(|node| node.membership.leader() == Some(cluster.id(3))));
    cluster.split(&[3, 4]);
    cluster.run(60_000);
    let down = |place: usize| cluster.nodes[place].is_down;
    assert!((0..3).all(down) && !down(3) && !down(4), "the smaller side has won");
}

/// Proves: C39
#[test]
fn a_process_that_comes_back_at_its_address_replaces_what_it_was() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 4);
        let old = cluster.id(1);
        cluster.nodes[1].is_running = false;
        let address = cluster.nodes[1].info.address.to_string();
        cluster.start_at(&address);
        // The old session is not known to have ended; the new process is proof enough for the view.
        assert!(cluster.run_until(20_000, Cluster::agrees), "seed {seed}");
        assert!(cluster.running().all(|node| node.membership.view().member(old).is_none()));
    }
}

#[test]
fn a_node_that_stood_still_suspects_nobody_and_is_welcome_again() {
    for seed in 0..10 {
        let mut cluster = Cluster::formed(seed, 5);
        cluster.pause(2, 5_000);
        cluster.run(5_500);
        let (paused, id) = (&cluster.nodes[2], cluster.id(2));
        assert!(
            !paused.events.iter().any(|(_, event)| matches!(event, MemberEvent::Unreachable(_))),
            "seed {seed}"
        );
        assert!(cluster.run_until(20_000, Cluster::agrees), "seed {seed}");
        let by_itself =
            |event: &MemberEvent| matches!(event, MemberEvent::Unreachable(member) if member.id() != id);
        assert!(!cluster.any_told(by_itself), "seed {seed}");
    }
}

/// Proves: R239
#[test]
fn everybody_hears_of_everybodys_load() {
    let mut cluster = Cluster::formed(2, 30);
    for place in 0..30 {
        let load = NodeLoad { waiting: place as u32, ..NodeLoad::default() };
        cluster.tell(place, MembershipEvent::LoadMeasured(load));
    }
    let known = |cluster: &Cluster| {
        let heard = |place| {
            cluster.running().all(|node| {
                node.membership.load(cluster.id(place)).is_some_and(|load| load.waiting == place as u32)
            })
        };
        (0..30).all(heard)
    };
    assert!(cluster.run_until(20_000, known));
}

/// In a great cluster each watches ten others only. Proves: C50
#[test]
fn a_great_cluster_finds_its_dead_and_its_splits() {
    let mut cluster = Cluster::formed(4, 80);
    cluster.session_end = Millis(20_000);
    let victim = cluster.id(17);
    cluster.kill(17);
    let suspected = |cluster: &Cluster| cluster.running().all(|node| node.membership.is_suspect(victim));
    assert!(cluster.run_until(15_000, suspected));
    assert!(cluster.run_until(60_000, Cluster::agrees));
    let ours: Vec<usize> = (0..80).filter(|place| place % 3 == 0).collect();
    cluster.split(&ours);
    cluster.run(100_000);
    let down: Vec<usize> = (0..80).filter(|place| cluster.nodes[*place].is_down).collect();
    assert_eq!(down, ours, "the smaller side, and nobody else");
    assert!(cluster.run_until(60_000, Cluster::agrees));
}

/// Deaths, leaves, joins, losses and splits at random; then the faults stop. Proves: R448, R462, R475, C57
#[test]
fn views_agree_once_the_faults_stop() {
    for seed in 0..40 {
        let mut cluster = Cluster::formed(seed, 5);
        cluster.loss_permille = 200;
        cluster.max_delay = 300;
        for _ in 0..12 {
            fault(&mut cluster);
            cluster.run(3_000);
        }
        (cluster.loss_permille, cluster.max_delay) = (0, 20);
        cluster.heal();
        assert!(cluster.run_until(120_000, Cluster::agrees), "seed {seed}");
    }
}

fn fault(cluster: &mut Cluster) {
    let running: Vec<usize> =
        (0..cluster.nodes.len()).filter(|place| cluster.nodes[*place].is_running).collect();
    if running.is_empty() {
        cluster.start();
        return;
    }
    let draw = cluster.draw();
    let any = running[(draw >> 8) as usize % running.len()];
    match draw % 8 {
        0 if running.len() > 2 => cluster.kill(any),
        1 if running.len() > 2 => cluster.leave(any),
        2 | 3 => {
            _ = cluster.start();
        }
        4 => cluster.split(&[any]),
        5 => cluster.pause(any, 4_000),
        6 => cluster.cut_one_way(any, running[0]),
        _ => cluster.heal(),
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = |seed| {
        let mut cluster = Cluster::formed(seed, 5);
        cluster.loss_permille = 100;
        (0..8).for_each(|_| {
            fault(&mut cluster);
            cluster.run(3_000);
        });
        let mut hasher = DefaultHasher::new();
        for node in &cluster.nodes {
            (&node.events, &node.membership).hash(&mut hasher);
        }
        hasher.finish()
    };
    assert_eq!(trace(9), trace(9));
    assert_ne!(trace(9), trace(10));
}
