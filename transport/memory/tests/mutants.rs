//! The rules can fail: each deliberate bug of the memory network is caught by the rule that it breaks.

#[allow(dead_code)]
mod testbed;

use archipelago_memory::Mutant;
use archipelago_transport_conformance::{Clock, RULES, outcome};
use testbed::MemoryTestbed;

fn try_rule(rule: &'static str, mutant: Option<Mutant>, secured: bool) -> Result<(), String> {
    outcome(Clock::Virtual, rule, move || {
        let bed = MemoryTestbed::new(secured);
        bed.network.set_mutant(mutant);
        bed
    })
}

#[test]
fn every_mutant_is_caught() {
    let mut missed = Vec::new();
    for (mutant, secured, rule) in mutants() {
        match try_rule(rule, Some(mutant), secured) {
            Ok(()) => missed.push(format!("{rule} did not object to {mutant:?}")),
            Err(why) => eprintln!("{mutant:?} caught by {rule}: {why}"),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn every_rule_catches_a_mutant() {
    for (rule, _) in RULES {
        assert!(
            mutants().iter().any(|(_, _, catcher)| catcher == rule),
            "nothing shows that {rule} can fail"
        );
    }
}

#[test]
fn without_a_mutant_nothing_is_caught() {
    for (rule, _) in RULES {
        for secured in [false, true] {
            assert_eq!(try_rule(rule, None, secured), Ok(()), "{rule}");
        }
    }
}

/// Each mutant, whether it needs a secured network, and the rule that must object.
fn mutants() -> Vec<(Mutant, bool, &'static str)> {
    use Mutant::*;
    vec![
        (SwapsBatches, false, "lane_keeps_order"),
        (LosesBatches, false, "lane_keeps_order"),
        (LosesWhatWasHeldUp, false, "lane_keeps_order"),
        (RepeatsBatches, false, "at_most_once"),
        (AcceptsDuplicates, false, "at_most_once"),
        (CarriesOver, false, "at_most_once"),
        (TrustsStrangers, true, "peer_is_proven"),
        (RefusesSilently, true, "peer_is_proven"),
        (MixesIdentitiesUp, true, "peer_is_proven"),
        (InventsIdentities, false, "peer_is_proven"),
        (DialsOnce, false, "dials_again"),
        (DropIsSilent, false, "dials_again"),
        (ForgetsReason, false, "close_says_why"),
        (CloseOvertakes, false, "close_says_why"),
        (CloserGoesOn, false, "close_says_why"),
        (EndpointLeavesConnections, false, "close_says_why"),
        (TakesEverything, false, "full_means_wait"),
        (ForgetsWriters, false, "full_means_wait"),
        (TakesSlowForDead, false, "full_means_wait"),
        (IgnoresSilence, false, "silence_is_noticed"),
        (AcceptorIgnoresSilence, false, "silence_is_noticed"),
        (StreamsIgnoreSilence, false, "silence_is_noticed"),
        (NoKeepAlive, false, "silence_is_noticed"),
        (StreamStopsLane, false, "streams_stand_beside"),
        (LaneStopsStreams, false, "streams_stand_beside"),
        (GivenUpSeemsWhole, false, "streams_stand_beside"),
        (LosesLastByte, false, "streams_stand_beside"),
        (GarbageEndsEndpoint, false, "garbage_is_refused"),
        (DeliversGarbage, false, "garbage_is_refused"),
        (HidesGarbage, false, "garbage_is_refused"),
        (MuteHoldsUp, false, "slow_dialers_block_nobody"),
        (MuteStays, false, "slow_dialers_block_nobody"),
        (AcceptLosesConnections, false, "cancel_safe"),
        (NextLosesStreams, false, "cancel_safe"),
        (DialBlocks, false, "cancel_safe"),
        (CutsLargeBatches, false, "messages_of_every_size"),
        (StreamEndsEarly, false, "large_stream"),
    ]
}
