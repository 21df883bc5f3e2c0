//! Endpoints that trust each other, and the polling ends of a connection as futures.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use archipelago_protocol::contract::{
    Connection, Endpoint, RecvStream, SendStream, Transport, TransportError,
};
use archipelago_protocol::identity::NodeAddress;
use archipelago_quic::{QuicSettings, QuicTransport};
use archipelago_tls::{Credentials, DevelopmentAuthority};
use bytes::{Bytes, BytesMut};
use tokio::net::UdpSocket;

pub(crate) const NAME: &str = "cluster.test";

pub(crate) type BoxEndpoint = Box<dyn Endpoint>;

/// Ends a test that hangs.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test hangs")
}

pub(crate) fn credentials() -> Credentials {
    DevelopmentAuthority::in_memory()
        .and_then(|ca| ca.credentials(NAME))
        .expect("a development authority works")
}

pub(crate) async fn open(settings: QuicSettings, credentials: &Credentials) -> BoxEndpoint {
    let at = "127.0.0.1:0".parse().expect("it is an address");
    QuicTransport::new(settings, credentials.clone()).open(&at).await.expect("loopback can be listened at")
}

/// Two endpoints with a connection between them; the first one dialled.
pub(crate) struct Pair {
    pub(crate) a: BoxEndpoint,
    pub(crate) b: BoxEndpoint,
    pub(crate) ab: Connection,
    pub(crate) ba: Connection,
}

pub(crate) async fn pair() -> Pair {
    // What the tests send before anybody reads it has room.
    pair_with(QuicSettings { stream_window: 1 << 20, ..QuicSettings::default() }).await
}

pub(crate) async fn pair_with(settings: QuicSettings) -> Pair {
    let credentials = credentials();
    let (a, b) = (open(settings.clone(), &credentials).await, open(settings, &credentials).await);
    let (ab, ba) = connect(&a, &b, b.address()).await;
    Pair { a, b, ab, ba }
}

/// Dials `b` from `a`, at the address `at`.
pub(crate) async fn connect(a: &BoxEndpoint, b: &BoxEndpoint, at: &NodeAddress) -> (Connection, Connection) {
    let (ab, ba) = tokio::join!(a.dial(at), b.accept());
    (ab.expect("dialled"), ba.expect("accepted"))
}

pub(crate) async fn send(to: &mut dyn SendStream, mut data: Bytes) -> Result<(), TransportError> {
    poll_fn(|cx| to.poll_send(cx, &mut data)).await
}

pub(crate) async fn finish(stream: &mut dyn SendStream) -> Result<(), TransportError> {
    poll_fn(|cx| stream.poll_finish(cx)).await
}

pub(crate) async fn recv(from: &mut dyn RecvStream, into: &mut BytesMut) -> Result<usize, TransportError> {
    poll_fn(|cx| from.poll_recv(cx, into)).await
}

/// Reads exactly `count` bytes.
pub(crate) async fn recv_exact(from: &mut dyn RecvStream, count: usize) -> BytesMut {
    let mut got = BytesMut::new();
    while got.len() < count {
        assert_ne!(recv(from, &mut got).await.expect("still open"), 0, "ended after {} bytes", got.len());
    }
    assert_eq!(got.len(), count);
    got
}

/// Reads until the other side has finished, or until an error.
pub(crate) async fn recv_all(from: &mut dyn RecvStream) -> (BytesMut, Result<(), TransportError>) {
    let mut got = BytesMut::new();
    loop {
        match recv(from, &mut got).await {
            Ok(0) => return (got, Ok(())),
            Ok(_) => {}
            Err(error) => return (got, Err(error)),
        }
    }
}

/// Sends until the stream takes nothing for a while; how many bytes it took.
pub(crate) async fn fill(stream: &mut dyn SendStream) -> usize {
    let mut taken = 0;
    loop {
        let mut data = Bytes::from(vec![7; 16 << 10]);
        let before = data.len();
        let sent = poll_fn(|cx| stream.poll_send(cx, &mut data));
        match tokio::time::timeout(Duration::from_millis(300), sent).await {
            Ok(sent) => sent.expect("still open"),
            Err(_) => return taken + before - data.len(),
        }
        taken += before;
        assert!(taken < 256 << 20, "it takes without end");
    }
}

/// Bytes in which every position can be told from its neighbours, also over packet borders.
pub(crate) fn pattern(from: usize, len: usize) -> Bytes {
    (from..from + len).map(|at| (at % 251) as u8 ^ (at / 251) as u8).collect()
}

/// Forwards datagrams between whoever sends to it and one target, as long as it may.
pub(crate) struct Proxy {
    pub(crate) address: NodeAddress,
    to_server: Arc<AtomicUsize>,
    to_client: Arc<AtomicUsize>,
}

impl Proxy {
    /// A proxy in front of `target` that forwards everything.
    pub(crate) async fn start(target: &NodeAddress) -> Self {
        let target: SocketAddr = target.to_string().parse().expect("an IP address");
        let front = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
        let back = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
        let address = front.local_addr().expect("it is bound").into();
        let (to_server, to_client) =
            (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicUsize::new(usize::MAX)));
        tokio::spawn(forward(front, back, target, to_server.clone(), to_client.clone()));
        Self { address, to_server, to_client }
    }

    /// Forwards only so many more datagrams in each direction.
    pub(crate) fn allow(&self, to_server: usize, to_client: usize) {
        self.to_server.store(to_server, Ordering::SeqCst);
        self.to_client.store(to_client, Ordering::SeqCst);
    }
}

async fn forward(
    front: UdpSocket,
    back: UdpSocket,
    target: SocketAddr,
    to_server: Arc<AtomicUsize>,
    to_client: Arc<AtomicUsize>,
) {
    let (mut there, mut here) = (vec![0; 65_536], vec![0; 65_536]);
    let mut client = None;
    loop {
        tokio::select! {
            Ok((len, from)) = front.recv_from(&mut there) => {
                client = Some(from);
                if may(&to_server) {
                    let _ = back.send_to(&there[..len], target).await;
                }
            }
            Ok((len, _)) = back.recv_from(&mut here) => {
                if let Some(client) = client.filter(|_| may(&to_client)) {
                    let _ = front.send_to(&here[..len], client).await;
                }
            }
        }
    }
}

fn may(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// Whether `future` is ready within a short time.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> Poll<T> {
    match tokio::time::timeout(Duration::from_millis(300), future).await {
        Ok(done) => Poll::Ready(done),
        Err(_) => Poll::Pending,
    }
}
