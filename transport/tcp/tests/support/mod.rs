//! What the tests of the TCP transport share.
#![allow(dead_code, reason = "every test file uses some of it")]

use std::future::poll_fn;
use std::time::Duration;

use archipelago_protocol::contract::{
    Connection, Endpoint, RecvStream, SendStream, Transport, TransportError,
};
use archipelago_protocol::identity::NodeAddress;
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use bytes::{Bytes, BytesMut};

/// The name in every certificate.
pub(crate) const NAME: &str = "cluster.test";

/// Settings that make waiting short.
pub(crate) fn quick() -> TcpSettings {
    TcpSettings {
        handshake_limit: Duration::from_millis(500),
        dial_limit: Duration::from_secs(2),
        silence_limit: Duration::from_millis(600),
        ..TcpSettings::default()
    }
}

pub(crate) async fn endpoint(settings: TcpSettings, security: Security) -> Box<dyn Endpoint> {
    let at = NodeAddress::new("127.0.0.1", 0).unwrap();
    TcpTransport::new(settings, security).open(&at).await.unwrap()
}

/// Two plain endpoints that are connected. The endpoints stay open as long as the pair is kept.
pub(crate) async fn pair(settings: TcpSettings) -> Pair {
    let near = endpoint(settings.clone(), Security::Insecure).await;
    let far = endpoint(settings, Security::Insecure).await;
    let (dialled, accepted) = tokio::join!(near.dial(far.address()), far.accept());
    Pair { dialled: dialled.unwrap(), accepted: accepted.unwrap(), near, far }
}

pub(crate) struct Pair {
    pub(crate) dialled: Connection,
    pub(crate) accepted: Connection,
    pub(crate) near: Box<dyn Endpoint>,
    pub(crate) far: Box<dyn Endpoint>,
}

pub(crate) async fn send(out: &mut dyn SendStream, mut data: Bytes) -> Result<(), TransportError> {
    poll_fn(|cx| out.poll_send(cx, &mut data)).await
}

pub(crate) async fn recv(from: &mut dyn RecvStream, into: &mut BytesMut) -> Result<usize, TransportError> {
    poll_fn(|cx| from.poll_recv(cx, into)).await
}

/// Fails if it takes too long: a test that hangs must not hang the suite.
pub(crate) async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("took longer than {limit:?}: {what}"))
}

/// Runs a test on one thread, as an arbiter does, within a minute.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(within(Duration::from_secs(60), "the test", test));
}

/// Runs a test on several threads.
pub(crate) fn run_threaded(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(within(Duration::from_secs(60), "the test", test));
}
