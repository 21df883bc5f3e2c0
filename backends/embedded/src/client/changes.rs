//! A watch by long polls: asks for the changes after a position, and again after what came.
//!
//! An answer may come late or not at all; the next poll asks after the same position, so nothing is missed. The position
//! also moves past the changes of other spaces, or a watch of a silent space would be compacted.

use std::collections::VecDeque;
use std::sync::Arc;

use archipelago_directory::{Change, Position, Space, StoreError, StoreWatch};
use archipelago_protocol::time::Millis;
use futures_util::stream;

use super::{ANSWER_TIMEOUT, Failed, Remote, UNASKED};
use crate::wire::{Event, Op, Outcome, WireError};

pub(super) struct Changes {
    remote: Arc<Remote>,
    space: Space,
    after: Position,
    ready: VecDeque<Change>,
    failures: u32,
}

impl Changes {
    /// Takes what there is, and tells right away if the history does not reach back so far.
    pub(super) async fn start(
        remote: Arc<Remote>,
        space: Space,
        after: Position,
    ) -> Result<Self, StoreError> {
        let polled = remote.changes(space, after, Millis::ZERO).await.map_err(Failed::of_read)?;
        Ok(Self { remote, space, after: polled.searched_to, ready: polled.changes.into(), failures: 0 })
    }

    pub(super) fn into_stream(self) -> StoreWatch {
        Box::pin(stream::unfold(Some(self), |changes| async {
            let mut changes = changes?;
            match changes.next().await {
                Ok(change) => Some((Ok(change), Some(changes))),
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn next(&mut self) -> Result<Change, StoreError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            let asked_at = self.remote.timer.now();
            match self.remote.changes(self.space, self.after, LONG_POLL).await.map_err(Failed::of_read) {
                Ok(polled) => {
                    self.failures = 0;
                    (self.after, self.ready) = (polled.searched_to, polled.changes.into());
                    // A server that does not wait must not make this side spin.
                    if self.ready.is_empty() && self.remote.timer.now() - asked_at < FIRST_PAUSE {
                        self.remote.timer.sleep(FIRST_PAUSE).await;
                    }
                }
                Err(StoreError::Unavailable { source }) => {
                    tracing::debug!(space = %self.space, error = %source, "poll for changes failed");
                    self.pause().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn pause(&mut self) {
        let length = Millis(FIRST_PAUSE.0 << self.failures);
        self.failures = (self.failures + 1).min(MAX_DOUBLINGS);
        self.remote.timer.sleep(length).await;
    }
}

/// The answer to one poll.
pub(super) struct Polled {
    pub(super) changes: Vec<Change>,
    /// Up to here there are no other changes.
    pub(super) searched_to: Position,
}

impl Remote {
    /// The changes of a space after a position; if there are none, those that come within `wait`.
    pub(super) async fn changes(
        &self,
        space: Space,
        after: Position,
        wait: Millis,
    ) -> Result<Polled, Failed> {
        let op = Op::Watch { space: space.as_str(), after: after.0, wait, max: MAX_CHANGES };
        let read = |outcome: Outcome<'_>| match outcome {
            Outcome::Changes { changes, searched_to } => {
                let changes = changes.into_iter().map(Event::read).collect::<Result<Vec<_>, _>>()?;
                let polled = Polled { changes, searched_to: Position(searched_to) };
                polled.follows(space, after).then_some(polled).ok_or(OUT_OF_ORDER)
            }
            _ => Err(UNASKED),
        };
        self.ask(op, wait + ANSWER_TIMEOUT, read).await
    }
}

impl Polled {
    fn follows(&self, space: Space, after: Position) -> bool {
        let mut last = after;
        for change in &self.changes {
            if change.position() <= last || change.id().space != space {
                return false;
            }
            last = change.position();
        }
        last <= self.searched_to
    }
}

const OUT_OF_ORDER: WireError = WireError::Nonsense("the changes are not those that were asked for");
/// How long one poll waits at the server.
const LONG_POLL: Millis = Millis(2_000);
const MAX_CHANGES: u32 = 512;
/// Doubled with every failure in a row, up to 1.6 s.
const FIRST_PAUSE: Millis = Millis(50);
const MAX_DOUBLINGS: u32 = 5;
