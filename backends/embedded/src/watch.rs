//! Watching the embedded store: a cursor into its history.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use archipelago_directory::{Change, Position, Space, StoreError};
use futures_core::Stream;

use crate::store::Shared;

/// The changes of one space after a position. Buffers nothing: a watcher that falls behind the history is told so.
pub(crate) struct EmbeddedWatch {
    shared: Arc<Shared>,
    space: Space,
    after: Position,
    slot: Option<u64>,
    broken: bool,
}

impl EmbeddedWatch {
    pub(crate) fn new(shared: Arc<Shared>, space: Space, after: Position) -> Self {
        Self { shared, space, after, slot: None, broken: false }
    }

    /// Up to here every change of the space has been delivered.
    pub(crate) const fn searched_to(&self) -> Position {
        self.after
    }
}

impl Stream for EmbeddedWatch {
    type Item = Result<Change, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.broken {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        let mut log = this.shared.lock();
        if log.is_compacted(this.after) {
            this.broken = true;
            return Poll::Ready(Some(Err(StoreError::Compacted)));
        }
        match log.next_change(this.space, this.after) {
            Ok(change) => {
                this.after = change.position();
                Poll::Ready(Some(Ok(change)))
            }
            Err(searched_to) => {
                this.after = searched_to;
                log.sleep(&mut this.slot, context.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for EmbeddedWatch {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.shared.lock().forget(slot);
        }
    }
}
