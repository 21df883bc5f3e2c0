//! Where a message to a virtual actor goes that may live in any datacenter, given what its own datacenter and the others have
//! said about the actor.
//!
//! [`verdict`] decides when an actor may come to life at home because it lives nowhere else. Asking is the shell's.
//!
//! Invariant: an actor comes to life at home only if its own datacenter knows that it was placed nowhere else, and no other
//! datacenter has answered that it cannot say. Silence is no answer at all: what follows from it is configured.

use alloc::vec::Vec;

use super::{DataCenterId, Discovered, OnSilence};

/// Whether an actor was placed in some datacenter, as the own one says about an actor that is not known to be active in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HomeRecord {
    /// It was placed nowhere. Whether it is active, its shard being on its way to another node, need not be known: if nobody else
    /// has it, it belongs here in both cases.
    Absent,
    /// That could not be found out.
    Unknown,
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict<P> {
    /// To the actor in this datacenter, where it comes to life if it is not active.
    Home,
    /// To the actor in another one.
    Abroad {
        /// Which one.
        datacenter: DataCenterId,
        /// Where in it.
        place: P,
    },
    /// Nowhere: the actor may live, or belong, where nobody can say at present.
    CannotSay {
        /// The datacenters that have not said; none if it was the own one.
        by: Vec<DataCenterId>,
    },
    /// Nowhere: the map of the datacenters is out of date, and may not be used.
    Stale,
    /// Nowhere: too many actors are looked for already.
    Full,
}

/// Where a message goes to an actor that is not known to be active at home, after the others were asked.
pub fn verdict<P>(record: HomeRecord, abroad: Discovered<P>, on_silence: OnSilence) -> Verdict<P> {
    match (abroad, record) {
        (Discovered::Found { datacenter, place }, _) => Verdict::Abroad { datacenter, place },
        (Discovered::Stale, _) => Verdict::Stale,
        (Discovered::Full, _) => Verdict::Full,
        (_, HomeRecord::Unknown) => Verdict::CannotSay { by: Vec::new() },
        (Discovered::NotFound, HomeRecord::Absent) => Verdict::Home,
        (Discovered::Unreachable { silent, undecided }, HomeRecord::Absent) => {
            if undecided.is_empty() && on_silence == OnSilence::Proceed {
                return Verdict::Home;
            }
            Verdict::CannotSay { by: undecided.into_iter().chain(silent).collect() }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn id(name: &str) -> DataCenterId {
        DataCenterId::new(name).unwrap()
    }

    fn unreachable(silent: &[&str], undecided: &[&str]) -> Discovered<u8> {
        let ids = |names: &[&str]| names.iter().map(|name| id(name)).collect();
        Discovered::Unreachable { silent: ids(silent), undecided: ids(undecided) }
    }

    #[test]
    fn an_actor_that_everybody_denies_comes_to_life_at_home() {
        for on_silence in [OnSilence::Proceed, OnSilence::Fail] {
            assert_eq!(verdict::<u8>(HomeRecord::Absent, Discovered::NotFound, on_silence), Verdict::Home);
        }
    }

    #[test]
    fn whoever_cannot_say_is_never_taken_for_a_no() {
        for on_silence in [OnSilence::Proceed, OnSilence::Fail] {
            let both = verdict(HomeRecord::Absent, unreachable(&["a"], &["b"]), on_silence);
            assert_eq!(both, Verdict::CannotSay { by: vec![id("b"), id("a")] });
        }
    }

    #[test]
    fn what_follows_from_silence_is_configured() {
        let silent = || unreachable(&["a"], &[]);
        assert_eq!(verdict(HomeRecord::Absent, silent(), OnSilence::Proceed), Verdict::Home);
        let strict = verdict(HomeRecord::Absent, silent(), OnSilence::Fail);
        assert_eq!(strict, Verdict::CannotSay { by: vec![id("a")] });
    }

    #[test]
    fn an_actor_that_may_have_a_home_elsewhere_comes_to_life_nowhere() {
        for abroad in [Discovered::NotFound, unreachable(&["a"], &[])] {
            let told = verdict(HomeRecord::Unknown, abroad, OnSilence::Proceed);
            assert_eq!(told, Verdict::CannotSay { by: vec![] });
        }
        let found = Discovered::Found { datacenter: id("a"), place: 7 };
        let told = verdict(HomeRecord::Unknown, found, OnSilence::Proceed);
        assert_eq!(
            told,
            Verdict::Abroad { datacenter: id("a"), place: 7 },
            "who is alive is found all the same"
        );
    }

    fn discovered() -> impl Strategy<Value = Discovered<u8>> {
        let some = || proptest::collection::vec("[a-c]".prop_map(|name| id(&name)), 0..3);
        prop_oneof![
            Just(Discovered::NotFound),
            Just(Discovered::Stale),
            Just(Discovered::Full),
            Just(Discovered::Found { datacenter: id("a"), place: 1 }),
            (some(), some()).prop_map(|(silent, undecided)| Discovered::Unreachable { silent, undecided }),
        ]
    }

    proptest! {
        #[test]
        fn home_is_the_answer_only_if_nobody_may_know_better(
            unknown: bool,
            strict: bool,
            abroad in discovered(),
        ) {
            let record = if unknown { HomeRecord::Unknown } else { HomeRecord::Absent };
            let on_silence = if strict { OnSilence::Fail } else { OnSilence::Proceed };
            if verdict(record, abroad.clone(), on_silence) == Verdict::Home {
                prop_assert!(!unknown);
                match abroad {
                    Discovered::NotFound => {}
                    Discovered::Unreachable { silent, undecided } => {
                        prop_assert!(undecided.is_empty() && (silent.is_empty() || !strict));
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
    }
}
