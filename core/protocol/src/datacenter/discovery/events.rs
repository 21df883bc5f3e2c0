//! What a search is told, and what it has done.

use alloc::vec::Vec;

use super::super::{DataCenterId, DataCenterMap};
use crate::identity::NodeAddress;
use crate::time::Millis;

/// Somebody who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeekerId(pub u64);

/// One question to one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// What happens to a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DiscoveryEvent<'a, K, P> {
    /// Somebody wants to know where `key` is.
    Seek {
        /// Who; a number that is used once.
        seeker: SeekerId,
        /// What is looked for.
        key: K,
        /// When an answer is of no use any more.
        deadline: Millis,
        /// The datacenters there are.
        map: &'a DataCenterMap,
        /// Chance, for the choice of endpoints.
        random: u64,
    },
    /// A seeker waits no longer.
    GaveUp(SeekerId),
    /// An endpoint has answered, or could not be asked.
    Answered {
        /// Which question.
        ask: AskId,
        /// The answer.
        answer: FarAnswer<P>,
    },
    /// A time that was asked for has come.
    WokeUp,
}

/// What came of one question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FarAnswer<P> {
    /// It is there.
    Yes(P),
    /// It is not there.
    No,
    /// The datacenter cannot say at present, because what is looked for may be on its way from one of its nodes to another. Ask
    /// again.
    Unsettled,
    /// The endpoint has answered that it cannot find out at present: its store is out of reach, it stops, it is another node's to
    /// know. Another endpoint may; ask both.
    Refused,
    /// The endpoint could not be asked, or did not answer.
    Failed,
}

/// What is to be done for a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DiscoveryAction<K, P> {
    /// Ask this endpoint, until then at the latest.
    Ask {
        /// The number of the question.
        ask: AskId,
        /// What is looked for.
        key: K,
        /// The datacenter that is asked.
        datacenter: DataCenterId,
        /// Its endpoint.
        endpoint: NodeAddress,
        /// When the answer is of no use any more.
        until: Millis,
    },
    /// The answer to a question is not wanted any more: say so on the wire.
    Cancel(AskId),
    /// Tell a seeker.
    Tell(SeekerId, Discovered<P>),
    /// Say [`WokeUp`](DiscoveryEvent::WokeUp) at this time.
    WakeAt(Millis),
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Discovered<P> {
    /// It is there.
    Found {
        /// The datacenter.
        datacenter: DataCenterId,
        /// The place in it.
        place: P,
    },
    /// Every datacenter has answered that it does not have it.
    NotFound,
    /// Those that said do not have it; others have not said.
    Unreachable {
        /// The datacenters that have not answered, or were not even asked.
        silent: Vec<DataCenterId>,
        /// The datacenters that have answered, and could not say.
        undecided: Vec<DataCenterId>,
    },
    /// The map is old, and old maps are not to be used.
    Stale,
    /// Too many searches are under way.
    Full,
}

/// The numbers of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DiscoverySettings {
    /// How long a search may take. Default 5 s.
    pub timeout: Millis,
    /// When a datacenter that could not say is asked again; twice as long after each time, at most [`ask_again_most`]. Default
    /// 20 ms.
    ///
    /// [`ask_again_most`]: Self::ask_again_most
    pub ask_again: Millis,
    /// The longest pause before it is asked again. Default 320 ms.
    pub ask_again_most: Millis,
    /// When a second endpoint is asked, as long as it is not known how fast a datacenter answers. Default 100 ms.
    pub hedge_after: Millis,
    /// How long it is remembered where something is. Default 10 s.
    pub positive_life: Millis,
    /// How long it is remembered that nobody has something. Default 1 s.
    pub negative_life: Millis,
    /// How long a datacenter that did not answer is left alone. Default 5 s.
    pub breaker: Millis,
    /// Who has not answered for this long when the time of a seeker runs out counts as one that does not answer. Default 1 s.
    pub silence: Millis,
    /// How many answers are remembered; the oldest are forgotten first. Default 10,000.
    pub remembered: usize,
    /// How many searches may be under way; more are refused. Default 10,000.
    pub searches: usize,
    /// What to do while the control plane does not answer. Default: go on with what was known.
    pub on_stale: OnStale,
    /// What to do about an actor that is found nowhere while some datacenter says nothing at all. Default: it comes to life at home.
    pub on_silence: OnSilence,
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        Self {
            timeout: Millis(5_000),
            ask_again: Millis(20),
            ask_again_most: Millis(320),
            hedge_after: Millis(100),
            positive_life: Millis(10_000),
            negative_life: Millis(1_000),
            breaker: Millis(5_000),
            silence: Millis(1_000),
            remembered: 10_000,
            searches: 10_000,
            on_stale: OnStale::Proceed,
            on_silence: OnSilence::Proceed,
        }
    }
}

/// What to do with a map that may be out of date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnStale {
    /// Use it.
    #[default]
    Proceed,
    /// Refuse.
    Fail,
}

/// What to do about an actor that nobody has, as far as anybody has answered, while a datacenter says nothing at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnSilence {
    /// It comes to life at home. If it lives in the silent datacenter, it lives in two.
    #[default]
    Proceed,
    /// The call fails.
    Fail,
}
