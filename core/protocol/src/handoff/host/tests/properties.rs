//! Whatever happens: no job appears twice or disappears, only an own write serves, no lane is overtaken.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn any_event() -> impl Strategy<Value = HostEvent<u32>> {
    let lane = || (7_u64..9).prop_map(LaneId);
    let id = || 1_u64..4;
    let owner = prop_oneof![Just(ME), Just(OTHER)];
    let record = (owner, 1_u64..12, 1_u64..12)
        .prop_map(|(owner, number, since)| owned(owner, number.max(since), since));
    prop_oneof![
        6 => (lane(), 1_u64..12, any::<bool>()).prop_map(|(lane, under, inner)| {
            HostEvent::Data(Job { inner, ..job(lane, under, 0) })
        }),
        2 => (lane(), 1_u64..12)
            .prop_map(|(lane, under)| HostEvent::Settle { lane, generation: generation(under) }),
        1 => lane().prop_map(HostEvent::LaneLost),
        1 => (0_u64..12, 0_u64..9_000).prop_map(|(under, expires)| {
            HostEvent::GaveBack { generation: generation(under), expires: Millis(expires) }
        }),
        2 => Just(HostEvent::Asked),
        2 => (1_u64..12).prop_map(|under| HostEvent::Claimed(ClaimOutcome::Placed(generation(under)))),
        1 => Just(HostEvent::Claimed(ClaimOutcome::Unanswered)),
        4 => record.clone().prop_map(HostEvent::Seen),
        2 => proptest::option::of(record).prop_map(HostEvent::LookedUp),
        1 => (1_u64..12).prop_map(|under| HostEvent::SeenGone(generation(under))),
        2 => (1_u64..12, id()).prop_map(|(under, move_id)| {
            HostEvent::HandOff { generation: generation(under), to: OTHER, move_id, busy: Millis(0) }
        }),
        1 => id().prop_map(|move_id| HostEvent::Release { move_id }),
        3 => id().prop_map(|move_id| HostEvent::OfferOk { move_id, session: TARGET }),
        3 => (id(), any::<Option<u8>>()).prop_map(|(move_id, state)| {
            HostEvent::Stopped { move_id, state: state.map(u64::from) }
        }),
        2 => id().prop_map(|move_id| HostEvent::ParcelsAcked { move_id }),
        1 => id().prop_map(|move_id| HostEvent::TransferUnapplied { move_id }),
        1 => id().prop_map(|move_id| HostEvent::TransferUnknown { move_id }),
        1 => Just(HostEvent::Cancel),
        1 => Just(HostEvent::Fence),
        1 => Just(HostEvent::Rejoined(ME)),
        3 => Just(HostEvent::WokeUp),
    ]
}

/// The inboxes, as the simplest shell would keep them: nothing ever starts.
#[derive(Default)]
struct Shell {
    inbox: Vec<Job<u32>>,
    /// How often each job ended: returned, dropped.
    ended: BTreeMap<u32, u32>,
    /// The lanes that something was returned to since they settled.
    refused: Vec<LaneId>,
}

impl Shell {
    fn feed(&mut self, host: &mut Host, now: u64, event: HostEvent<u32>) {
        let lost = if let HostEvent::LaneLost(lane) = event { Some(lane) } else { None };
        for job in self.inbox.iter_mut().filter(|job| lost == Some(job.lane)) {
            job.orphan = true;
        }
        self.refused.retain(|lane| lost != Some(*lane));
        for action in host.handle(at(now), event) {
            match action {
                HostAction::Deliver(job) => {
                    let overtakes = self.refused.contains(&job.lane) && !job.orphan && !job.inner;
                    assert!(!overtakes, "{job:?} overtakes one that was returned");
                    self.inbox.push(job);
                }
                HostAction::Return { job, .. } => {
                    assert!(!job.orphan, "{job:?} cannot go back");
                    self.refused.push(job.lane);
                    self.end(&job);
                }
                HostAction::Drop { job, .. } => self.end(&job),
                HostAction::ReturnQueued { lane, .. } => self.take(|job| job.lane == lane && !job.orphan),
                HostAction::Abort => self.take(|_| true),
                HostAction::SendSettled { lane, .. } => self.refused.retain(|other| *other != lane),
                HostAction::Seal => {
                    let outer = self.inbox.extract_if(.., |job| !job.inner).collect();
                    self.feed(host, now, HostEvent::Sealed(outer));
                }
                _ => {}
            }
        }
    }

    fn take(&mut self, which: impl Fn(&Job<u32>) -> bool) {
        let taken: Vec<_> = self.inbox.extract_if(.., |job| which(job)).collect();
        for job in taken {
            // What belongs to running work has no order among the others of its lane, neither coming nor going.
            if !job.orphan && !job.inner {
                self.refused.push(job.lane);
            }
            self.end(&job);
        }
    }

    fn end(&mut self, job: &Job<u32>) {
        *self.ended.entry(job.body).or_default() += 1;
    }
}

proptest! {
    #[test]
    fn no_job_is_lost_or_doubled_or_overtakes_and_only_a_newer_record_serves(
        events in prop::collection::vec((any_event(), 0_u64..300), 0..80)
    ) {
        let (mut host, mut shell, mut now, mut jobs) = (new(), Shell::default(), 0, 0_u32);
        for (mut event, later) in events {
            now += later;
            if let HostEvent::Data(job) = &mut event {
                job.body = jobs;
                jobs += 1;
            }
            let before = host.clone();
            let grants = matches!(event, HostEvent::Claimed(ClaimOutcome::Placed(_)) | HostEvent::Seen(_) | HostEvent::LookedUp(_));
            shell.feed(&mut host, now, event);
            prop_assert!(host.let_go_of() >= before.let_go_of());
            prop_assert!(host.held().0 == 0 || host.serving().is_none());
            let stays = matches!(before.state(), HostState::Serving { .. } | HostState::Draining(_) | HostState::Transferring(_));
            prop_assert!(host.serving().is_none() || stays || grants, "served after {before:?}");
        }
        let waits = host.held().0 + shell.inbox.len();
        prop_assert!(shell.ended.values().all(|times| *times == 1), "{:?}", shell.ended);
        prop_assert_eq!(shell.ended.len() + waits, jobs as usize);
    }
}
