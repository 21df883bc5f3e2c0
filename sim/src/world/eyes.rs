//! What a network's user can see from outside: dials that cross, and readers that stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use archipelago_protocol::contract::{
    CloseReason, Connection, Endpoint, SendStream, Transport, TransportError,
};
use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;
use bytes::Bytes;

use crate::clock::TrueClock;
use crate::sometimes;

/// What has been seen in one network.
pub(crate) struct Eyes {
    truth: TrueClock,
    /// The dials under way between arbiters, and whether one in the other direction was under way at the same time.
    dials: Mutex<BTreeMap<(NodeAddress, NodeAddress), bool>>,
    /// Something was done to the ways or to a host: from then on a full way may have other reasons than a slow reader.
    disturbed: AtomicBool,
}

impl Eyes {
    pub(crate) fn new(truth: TrueClock) -> Self {
        Self { truth, dials: Mutex::default(), disturbed: AtomicBool::new(false) }
    }

    pub(crate) fn disturb(&self) {
        self.disturbed.store(true, Ordering::Relaxed);
    }

    fn dials(&self) -> MutexGuard<'_, BTreeMap<(NodeAddress, NodeAddress), bool>> {
        self.dials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stalled(&self, since: Duration) {
        if self.truth.elapsed() - since >= LONG_STALL && !self.disturbed.load(Ordering::Relaxed) {
            sometimes!("window full");
        }
    }
}

/// A dial under way.
struct Dialling<'a> {
    eyes: &'a Eyes,
    way: (NodeAddress, NodeAddress),
}

impl<'a> Dialling<'a> {
    fn begin(eyes: &'a Eyes, from: &NodeAddress, to: &NodeAddress) -> Self {
        let (way, back) = ((from.clone(), to.clone()), (to.clone(), from.clone()));
        let mut dials = eyes.dials();
        let crossed = dials.get_mut(&back).map(|crossed| *crossed = true).is_some();
        dials.insert(way.clone(), crossed);
        drop(dials);
        Self { eyes, way }
    }

    fn crossed(&self) -> bool {
        self.eyes.dials().get(&self.way).is_some_and(|crossed| *crossed)
    }
}

impl Drop for Dialling<'_> {
    fn drop(&mut self) {
        self.eyes.dials().remove(&self.way);
    }
}

/// A host's transport under observation.
pub(crate) struct Watched {
    inner: Arc<dyn Transport>,
    eyes: Arc<Eyes>,
    opened: AtomicUsize,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Transport>, eyes: Arc<Eyes>) -> Self {
        Self { inner, eyes, opened: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Transport for Watched {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn open(&self, at: &NodeAddress) -> Result<Box<dyn Endpoint>, TransportError> {
        let inner = self.inner.open(at).await?;
        // The first endpoint also asks who is where; its dials need not be for good.
        let between_arbiters = self.opened.fetch_add(1, Ordering::Relaxed) > 0;
        Ok(Box::new(WatchedEndpoint { inner, eyes: Arc::clone(&self.eyes), between_arbiters }))
    }
}

struct WatchedEndpoint {
    inner: Box<dyn Endpoint>,
    eyes: Arc<Eyes>,
    between_arbiters: bool,
}

impl WatchedEndpoint {
    fn watch(&self, connection: Connection) -> Connection {
        let Connection { peer, outgoing, incoming, streams } = connection;
        let outgoing =
            Box::new(WatchedSend { inner: outgoing, eyes: Arc::clone(&self.eyes), stalled_at: None });
        Connection { peer, outgoing, incoming, streams }
    }
}

#[async_trait]
impl Endpoint for WatchedEndpoint {
    fn address(&self) -> &NodeAddress {
        self.inner.address()
    }

    async fn accept(&self) -> Result<Connection, TransportError> {
        self.inner.accept().await.map(|connection| self.watch(connection))
    }

    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError> {
        let dialling = self.between_arbiters.then(|| Dialling::begin(&self.eyes, self.inner.address(), to));
        let connection = self.inner.dial(to).await?;
        if dialling.is_some_and(|dialling| dialling.crossed()) {
            sometimes!("dial race resolved");
        }
        Ok(self.watch(connection))
    }

    async fn close(&self, reason: CloseReason) {
        self.inner.close(reason).await;
    }
}

struct WatchedSend {
    inner: Box<dyn SendStream>,
    eyes: Arc<Eyes>,
    stalled_at: Option<Duration>,
}

impl SendStream for WatchedSend {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        let sent = self.inner.poll_send(cx, data);
        match &sent {
            Poll::Pending => {
                self.stalled_at.get_or_insert(self.eyes.truth.elapsed());
            }
            Poll::Ready(Ok(())) => {
                if let Some(since) = self.stalled_at.take() {
                    self.eyes.stalled(since);
                }
            }
            Poll::Ready(Err(_)) => {}
        }
        sent
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_finish(cx)
    }
}

/// How long a writer waits at least if the reader has stopped, and not only the bytes are on their way.
const LONG_STALL: Duration = Duration::from_millis(50);
