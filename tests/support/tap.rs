//! A transport that remembers what a node sends.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use archipelago::identity::NodeAddress;
use archipelago::transport::{
    CloseReason, Connection, Endpoint, RecvStream, SendStream, Streams, Transport, TransportError,
};
use async_trait::async_trait;
use bytes::Bytes;

/// Every byte that a node has sent, whatever the connection.
#[derive(Clone, Default)]
pub struct Sent(Arc<Mutex<Vec<u8>>>);

impl Sent {
    pub fn contains(&self, bytes: &[u8]) -> bool {
        self.0.lock().unwrap().windows(bytes.len()).any(|window| window == bytes)
    }
}

/// Sends as another transport does, and notes it.
pub struct Tap<T> {
    pub transport: T,
    pub sent: Sent,
}

#[async_trait]
impl<T: Transport> Transport for Tap<T> {
    fn name(&self) -> &'static str {
        self.transport.name()
    }

    async fn open(&self, at: &NodeAddress) -> Result<Box<dyn Endpoint>, TransportError> {
        let endpoint = self.transport.open(at).await?;
        Ok(Box::new(Tapped { endpoint, sent: self.sent.clone() }))
    }
}

struct Tapped {
    endpoint: Box<dyn Endpoint>,
    sent: Sent,
}

impl Tapped {
    fn tap(&self, Connection { peer, outgoing, incoming, streams }: Connection) -> Connection {
        let outgoing = Box::new(TappedStream { stream: outgoing, sent: self.sent.clone() });
        let streams = Box::new(TappedStreams { streams, sent: self.sent.clone() });
        Connection { peer, outgoing, incoming, streams }
    }
}

#[async_trait]
impl Endpoint for Tapped {
    fn address(&self) -> &NodeAddress {
        self.endpoint.address()
    }

    async fn accept(&self) -> Result<Connection, TransportError> {
        Ok(self.tap(self.endpoint.accept().await?))
    }

    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError> {
        Ok(self.tap(self.endpoint.dial(to).await?))
    }

    async fn close(&self, reason: CloseReason) {
        self.endpoint.close(reason).await;
    }
}

struct TappedStream {
    stream: Box<dyn SendStream>,
    sent: Sent,
}

impl SendStream for TappedStream {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        // Whoever has received something finds it noted: nobody looks in between.
        let mut sent = self.sent.0.lock().unwrap();
        let whole = data.clone();
        let polled = self.stream.poll_send(cx, data);
        sent.extend_from_slice(&whole[..whole.len() - data.len()]);
        polled
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.stream.poll_finish(cx)
    }
}

struct TappedStreams {
    streams: Box<dyn Streams>,
    sent: Sent,
}

#[async_trait]
impl Streams for TappedStreams {
    async fn open(&self) -> Result<Box<dyn SendStream>, TransportError> {
        Ok(Box::new(TappedStream { stream: self.streams.open().await?, sent: self.sent.clone() }))
    }

    async fn next(&self) -> Result<Box<dyn RecvStream>, TransportError> {
        self.streams.next().await
    }

    fn close(&self, reason: CloseReason) {
        self.streams.close(reason);
    }
}
