//! The leader's side: the newest table of each kind, and who waits for a newer one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::contract::TableVersion;
use archipelago_protocol::identity::Kind;
use archipelago_protocol::ranges::TableSource;
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use metrics::{counter, gauge};

use super::words::News;
use crate::arbiter::not_serving;
use crate::env::{Follower, Shown, within};
use crate::node::NodeShared;

/// The newest tables that this node knows as the leader.
pub(crate) struct TableBoard {
    /// What the store tells; none on a node without one.
    source: Option<Arc<dyn TableSource>>,
    posts: Mutex<BTreeMap<Kind, Shown<Posted>>>,
    listeners: AtomicUsize,
}

/// A table on the board, in the form in which it travels.
#[derive(Clone, Debug, Default)]
struct Posted {
    version: Option<TableVersion>,
    bytes: Arc<Vec<u8>>,
}

impl TableBoard {
    pub(crate) fn new(source: Option<Arc<dyn TableSource>>) -> Self {
        Self { source, posts: Mutex::default(), listeners: AtomicUsize::new(0) }
    }

    /// What the store tells, if this node may read it.
    pub(crate) fn source(&self) -> Option<Arc<dyn TableSource>> {
        self.source.clone()
    }

    /// Waits for a table of `kind` that is newer than `than`, for a while.
    ///
    /// # Errors
    ///
    /// This node has no tables, or too many listen already.
    pub(super) async fn newer(
        &self,
        node: &Arc<NodeShared>,
        kind: &Kind,
        than: TableVersion,
    ) -> Result<News, CallError> {
        let _listener = self.listen()?;
        let mut posts = self.follow(node, kind)?;
        let newer = |posted: &Posted| {
            let is_newer = posted.version.is_some_and(|version| version > than);
            is_newer.then(|| Arc::clone(&posted.bytes))
        };
        match within(node.env(), HOLD, posts.find(newer)).await {
            Some(Some(bytes)) => {
                counter!("archipelago_tables_pushed_total").increment(1);
                Ok(News::Table(bytes.to_vec()))
            }
            // Nobody follows the store any more: this node leads no longer.
            Some(None) => Ok(News::Elsewhere(None)),
            None => Ok(News::NoneYet),
        }
    }

    /// The post of a kind; the first one who asks for it has the store watched.
    fn follow(&self, node: &Arc<NodeShared>, kind: &Kind) -> Result<Follower<Posted>, CallError> {
        let source = self.source.as_ref().ok_or_else(|| not_serving("it has no tables"))?;
        let mut posts = self.lock();
        if let Some(post) = posts.get(kind) {
            return Ok(post.follow());
        }
        if posts.len() >= MOST_KINDS {
            return Err(too_many(MOST_KINDS));
        }
        let post = Shown::new(Posted::default());
        let seen = post.follow();
        posts.insert(kind.clone(), post);
        drop(posts);
        node.env().spawn(Box::pin(keep_posted(Arc::clone(node), Arc::clone(source), kind.clone())));
        Ok(seen)
    }

    fn post(&self, kind: &Kind, posted: Posted) {
        if let Some(post) = self.lock().get(kind) {
            post.set(posted);
        }
    }

    fn take_down(&self, kind: &Kind) {
        self.lock().remove(kind);
    }

    fn listen(&self) -> Result<Listening<'_>, CallError> {
        let listening = Listening(&self.listeners);
        let listeners = self.listeners.fetch_add(1, Ordering::Relaxed) + 1;
        gauge!("archipelago_table_listeners").set(listeners as f64);
        if listeners > MOST_LISTENERS { Err(too_many(MOST_LISTENERS)) } else { Ok(listening) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Kind, Shown<Posted>>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one who waits.
struct Listening<'a>(&'a AtomicUsize);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let left = self.0.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
        gauge!("archipelago_table_listeners").set(left as f64);
    }
}

/// Watches the store for a kind for as long as this node leads.
async fn keep_posted(node: Arc<NodeShared>, source: Arc<dyn TableSource>, kind: Kind) {
    while leads(&node) {
        match source.watch_tables(&kind).await {
            Ok(mut news) => {
                while leads(&node) {
                    match within(node.env(), LOOK_EVERY, news.next()).await {
                        Some(Some(Ok(known))) => match known.encode() {
                            Ok(bytes) => {
                                let version = Some(known.version);
                                node.tables().post(&kind, Posted { version, bytes: Arc::new(bytes) });
                            }
                            Err(error) => tracing::error!(%kind, %error, "a table cannot be passed on"),
                        },
                        Some(Some(Err(error))) => tracing::debug!(%kind, %error, "a watch of a table broke"),
                        Some(None) => break,
                        None => {}
                    }
                }
            }
            Err(error) => tracing::debug!(%kind, %error, "a table cannot be watched yet"),
        }
        node.env().sleep(LOOK_EVERY).await;
    }
    node.tables().take_down(&kind);
}

fn leads(node: &NodeShared) -> bool {
    node.members().view().leader == Some(node.id()) && !node.is_stopping()
}

fn too_many(bound: usize) -> CallError {
    CallError::Overloaded { queue: Queue::Watches, bound: u32::try_from(bound).unwrap_or(u32::MAX) }
}

/// How long a listener waits for an answer.
pub(super) const HOLD: Millis = Millis(10_000);

/// How often the node looks whether it still leads.
const LOOK_EVERY: Millis = Millis(1_000);

/// How many may listen at the same time.
const MOST_LISTENERS: usize = 8_192;

/// Of how many kinds tables are passed on.
const MOST_KINDS: usize = 1_024;
