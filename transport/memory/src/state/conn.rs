//! One connection: two sides, and what flows between them.

use std::collections::BTreeMap;
use std::task::Waker;

use archipelago_protocol::contract::{CloseReason, PeerIdentity, TransportError};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;

use super::Host;
use crate::channel::{Channel, HELD};
use crate::wait::Waiters;

/// A connection. Side 0 has dialled, side 1 is the endpoint that was dialled.
pub(crate) struct Conn {
    pub(crate) sides: [Side; 2],
    /// `flows[n]` is what side n sends.
    pub(crate) flows: [Flow; 2],
    /// The cable it was dialled over.
    pub(crate) via: Option<NodeAddress>,
    pub(crate) accepted: bool,
}

/// One end of a connection.
pub(crate) struct Side {
    pub(crate) host: Host,
    /// The endpoint it belongs to.
    pub(crate) endpoint: u64,
    /// Who this side is, as it proves to the other.
    pub(crate) identity: PeerIdentity,
    pub(crate) ended: Option<Ending>,
    /// Since when nothing is heard.
    pub(crate) quiet: Option<Millis>,
    /// When it finds out that the connection is broken.
    pub(crate) breaks: Option<Millis>,
    /// Nobody holds it any more.
    pub(crate) released: bool,
    pub(crate) last_stream: u64,
    pub(crate) waiters: BTreeMap<WaitKey, Waiters>,
}

/// What one side sends to the other.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) lane: Channel,
    pub(crate) streams: BTreeMap<u64, Channel>,
    /// When the last of it arrives.
    pub(crate) last: Millis,
    pub(crate) close: Option<(CloseReason, Millis)>,
    /// Nothing passes at present.
    pub(crate) held: bool,
    /// After how many more bytes the connection breaks.
    pub(crate) kill_after: Option<u64>,
}

/// Why a side has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Closed(CloseReason),
    Lost(String),
}

/// A lane or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Lane,
    Stream(u64),
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitKey {
    Send(Key),
    Recv(Key),
    Open,
    Next,
}

impl Side {
    pub(crate) fn new(host: Host, endpoint: u64, identity: PeerIdentity) -> Self {
        Self {
            host,
            endpoint,
            identity,
            ended: None,
            quiet: None,
            breaks: None,
            released: false,
            last_stream: 0,
            waiters: BTreeMap::new(),
        }
    }

    pub(crate) fn wait(&mut self, key: WaitKey, waker: &Waker) {
        self.waiters.entry(key).or_default().add(waker);
    }

    pub(crate) fn wake(&mut self, key: WaitKey, to_wake: &mut Vec<Waker>) {
        if let Some(mut waiters) = self.waiters.remove(&key) {
            waiters.wake(to_wake);
        }
    }

    pub(crate) fn wake_all(&mut self, to_wake: &mut Vec<Waker>) {
        for (_, mut waiters) in std::mem::take(&mut self.waiters) {
            waiters.wake(to_wake);
        }
    }
}

impl Flow {
    pub(crate) fn channel(&mut self, key: Key) -> Option<&mut Channel> {
        match key {
            Key::Lane => Some(&mut self.lane),
            Key::Stream(n) => self.streams.get_mut(&n),
        }
    }

    pub(crate) fn each(&mut self, mut act: impl FnMut(&mut Channel)) {
        act(&mut self.lane);
        self.streams.values_mut().for_each(act);
    }

    /// Holds up what has not arrived by `now`.
    pub(crate) fn hold(&mut self, now: Millis) {
        self.each(|channel| channel.hold(now));
        let close = self.close.as_mut().map(|(_, at)| at);
        for at in [Some(&mut self.last), close].into_iter().flatten() {
            if *at > now {
                *at = HELD;
            }
        }
    }

    /// Sends again what was held up, to arrive at `at`; says so if a close is among it.
    pub(crate) fn resend(&mut self, at: Millis) -> Option<Millis> {
        self.each(|channel| channel.resend(at));
        if self.last == HELD {
            self.last = at;
        }
        let close = self.close.as_mut().map(|(_, at)| at).filter(|at| **at == HELD)?;
        *close = at;
        Some(at)
    }

    /// Forgets a stream that both sides are done with.
    pub(crate) fn collect(&mut self, stream: u64) -> bool {
        let done = self.streams.get(&stream).is_some_and(|stream| stream.reader_gone && stream.writer_gone);
        if done {
            self.streams.remove(&stream);
        }
        done
    }

    /// All bytes under way or unread.
    pub(crate) fn buffered(&self) -> usize {
        self.lane.buffered() + self.streams.values().map(Channel::buffered).sum::<usize>()
    }
}

impl Conn {
    pub(crate) fn new(sides: [Side; 2], via: Option<NodeAddress>) -> Self {
        Self { sides, flows: Default::default(), via, accepted: false }
    }

    /// When something may happen to this side, after `now`.
    pub(crate) fn deadline(&self, side: usize, silence_limit: Millis, now: Millis) -> Millis {
        let me = &self.sides[side];
        let quiet = me.quiet.map(|since| since + silence_limit);
        let close = self.flows[1 - side].close.as_ref().map(|(_, at)| *at);
        let times = [quiet, close, me.breaks].into_iter().flatten();
        times.filter(|at| *at > now).min().unwrap_or(HELD)
    }
}

impl Ending {
    pub(crate) fn lost(reason: &str) -> Self {
        Self::Lost(reason.to_owned())
    }

    pub(crate) fn error(&self) -> TransportError {
        match self {
            Self::Closed(reason) => TransportError::Closed(reason.clone()),
            Self::Lost(reason) => TransportError::Lost { reason: reason.clone() },
        }
    }
}
