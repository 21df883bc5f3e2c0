//! Watching a space: one stream of etcd from a revision on, that notices when it has gone silent.
//!
//! A stream can stall without an error. So whenever nothing has come for a while the server is asked for a sign of life,
//! and a stream on which none comes in time has broken. A broken watch ends; the directory takes it up again after the last
//! change that it was told of. The revision in a sign of life is not believed: servers before 3.5.8 may name one that the
//! watch has not reached yet.
//!
//! Invariant: whoever watches again after the position of any change misses nothing. One transaction may change several
//! records at one revision, so all but the last of them bear the position before it.

use std::collections::VecDeque;
use std::sync::Arc;

use archipelago_directory::{Change, Position, Space, StoreError, StoreWatch};
use archipelago_protocol::time::Millis;
use etcd_client::{Event, EventType, GetOptions, WatchOptions, WatchResponse, WatchStream};
use futures_util::future::{Either, select};
use futures_util::{StreamExt, pin_mut, stream};

use crate::endpoint::Connection;
use crate::failure::{Failure, unavailable};
use crate::keys::{Keys, end_of};
use crate::store::EtcdStore;
use crate::txn::{record, unsigned};
use crate::wires::Wires;

/// Opens a watch, and waits until the server has taken it up.
pub(crate) async fn open(
    store: &EtcdStore,
    space: Space,
    after: Position,
    idle: Millis,
) -> Result<StoreWatch, StoreError> {
    let start = store.keys.space(space, None);
    let options = WatchOptions::new()
        .with_range(end_of(&start))
        .with_start_revision(i64::try_from(after.0.saturating_add(1)).unwrap_or(i64::MAX));
    let request = |mut connection: Connection| {
        let (start, options) = (start.clone(), options.clone());
        async move {
            let mut stream = connection.watch.watch(start, Some(options)).await?;
            let first = stream.message().await?;
            Ok((stream, first))
        }
    };
    let (stream, first) = store.wires.call(request).await.map_err(Failure::of_read)?;
    let Some(first) = first else { return Err(unavailable("the watch ended before it began")) };
    if revision_of(&first) < after.0 {
        check_history(store, after).await?;
    }
    let wires = Arc::clone(&store.wires);
    let mut watching = Watching { stream, wires, space, start, idle, asked: false, ready: VecDeque::new() };
    watching.take_in(&first)?;
    Ok(watching.into_stream())
}

/// A member may lag behind. But if all of etcd has not come so far, `after` is of another history, and a watch would be
/// silent until this one has caught up.
async fn check_history(store: &EtcdStore, after: Position) -> Result<(), StoreError> {
    let newest = store.read(store.keys.prefix().as_bytes(), GetOptions::new().with_count_only()).await;
    let newest = match newest {
        // Whoever may not read this is not told; then the watch is all there is.
        Err(Failure::Fatal { denied: true, .. }) => return Ok(()),
        result => result.map_err(Failure::of_read)?,
    };
    let revision = newest.header().map_or(0, |header| unsigned(header.revision()));
    if revision < after.0 { Err(StoreError::Compacted) } else { Ok(()) }
}

struct Watching {
    stream: WatchStream,
    wires: Arc<Wires>,
    space: Space,
    /// What the keys of the space begin with.
    start: String,
    idle: Millis,
    /// Whether a sign of life is awaited.
    asked: bool,
    ready: VecDeque<Change>,
}

impl Watching {
    fn into_stream(self) -> StoreWatch {
        let steps = stream::unfold(Some(self), |watching| async {
            let mut watching = watching?;
            match watching.next().await {
                Ok(change) => Some((Ok(change), Some(watching))),
                Err(error) => Some((Err(error), None)),
            }
        });
        steps.boxed()
    }

    async fn next(&mut self) -> Result<Change, StoreError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            match self.message().await? {
                Some(response) => {
                    self.asked = false;
                    self.take_in(&response)?;
                }
                None if self.asked => return Err(unavailable("the watch has gone silent")),
                None => self.ask_for_a_sign().await?,
            }
        }
    }

    /// The next message, or `None` if none comes for too long.
    async fn message(&mut self) -> Result<Option<WatchResponse>, StoreError> {
        let patience = if self.asked { self.wires.request_timeout } else { self.idle };
        let silence = self.wires.timer.sleep(patience);
        let message = self.stream.message();
        pin_mut!(message);
        match select(message, silence).await {
            Either::Left((Ok(Some(response)), _)) => Ok(Some(response)),
            Either::Left((Ok(None), _)) => Err(unavailable("the watch ended")),
            Either::Left((Err(error), _)) => Err(Failure::sort("the watched member", &error).of_read()),
            Either::Right(((), _)) => Ok(None),
        }
    }

    /// There is room for the request: at most one is under way.
    async fn ask_for_a_sign(&mut self) -> Result<(), StoreError> {
        self.asked = true;
        self.stream.request_progress().await.map_err(unavailable)
    }

    fn take_in(&mut self, response: &WatchResponse) -> Result<(), StoreError> {
        if response.compact_revision() > 0 {
            return Err(StoreError::Compacted);
        }
        if response.canceled() {
            return Err(cancelled(response.cancel_reason()));
        }
        let events = response.events();
        for (event, next) in events.iter().zip(events.iter().skip(1).map(Some).chain([None])) {
            let last_of_its_revision = next.is_none_or(|next| revision(next) != revision(event));
            let position = revision(event).saturating_sub(u64::from(!last_of_its_revision));
            self.ready.extend(self.change(event, Position(position)));
        }
        Ok(())
    }

    fn change(&self, event: &Event, position: Position) -> Option<Change> {
        let pair = event.kv()?;
        let id = Keys::id(self.space, &self.start, pair.key())?;
        Some(match event.event_type() {
            EventType::Put => Change::Put { position, record: record(id, pair) },
            EventType::Delete => Change::Deleted { position, id },
        })
    }
}

fn cancelled(why: &str) -> StoreError {
    let source = format!("etcd ended the watch: {why}").into();
    if why.contains("permission denied") {
        StoreError::Fatal { source }
    } else {
        StoreError::Unavailable { source }
    }
}

fn revision(event: &Event) -> u64 {
    event.kv().map_or(0, |pair| unsigned(pair.mod_revision()))
}

fn revision_of(response: &WatchResponse) -> u64 {
    response.header().map_or(0, |header| unsigned(header.revision()))
}
