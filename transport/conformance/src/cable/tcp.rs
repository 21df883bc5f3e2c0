//! A TCP proxy that can be cut.
//!
//! While it is cut it reads nothing and writes nothing in that direction, but keeps every socket open and goes on to let
//! clients connect: as a network does that swallows everything. What the kernel has taken waits and passes when healed.
#![expect(clippy::disallowed_methods, reason = "the network under a transport")]

use archipelago_protocol::identity::NodeAddress;
use bytes::Bytes;
use futures_util::future::join;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};

use super::{Direction, Passage, open_passage, socket_address};
use crate::testbed::{Cable, Cut};
use crate::time::{Task, spawn};

/// A [`Cable`] for transports over TCP on loopback.
pub struct TcpCable {
    address: NodeAddress,
    passage: watch::Sender<Passage>,
    garbage: broadcast::Sender<Bytes>,
    _proxy: Task,
}

impl TcpCable {
    /// Lays a cable to the endpoint at `to`.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn new(to: &NodeAddress) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address").into();
        let (passage, watched) = watch::channel(Passage::default());
        let (garbage, _) = broadcast::channel(16);
        let proxy = proxy(listener, to.clone(), watched, garbage.clone());
        Self { address, passage, garbage, _proxy: spawn(Box::pin(proxy)) }
    }
}

impl Cable for TcpCable {
    fn address(&self) -> &NodeAddress {
        &self.address
    }

    fn cut(&self, cut: Cut) {
        self.passage.send_replace(cut.into());
    }

    fn heal(&self) {
        self.passage.send_replace(Passage::default());
    }

    fn inject(&self, bytes: Bytes) {
        // An error means that there is no connection to slip them into.
        let _ = self.garbage.send(bytes);
    }
}

async fn proxy(
    listener: TcpListener,
    to: NodeAddress,
    passage: watch::Receiver<Passage>,
    garbage: broadcast::Sender<Bytes>,
) {
    let mut wires = Vec::new();
    while let Ok((client, _)) = listener.accept().await {
        wires.push(spawn(Box::pin(wire(client, to.clone(), passage.clone(), garbage.subscribe()))));
    }
}

/// One connection through the proxy, until both directions have ended.
async fn wire(
    client: TcpStream,
    to: NodeAddress,
    mut passage: watch::Receiver<Passage>,
    garbage: broadcast::Receiver<Bytes>,
) {
    open_passage(&mut passage, Direction::Towards).await;
    let Ok(server) = TcpStream::connect(socket_address(&to)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let towards = forward(from_client, to_server, passage.clone(), Direction::Towards, Some(garbage));
    let back = forward(from_server, to_client, passage, Direction::Back, None);
    join(towards, back).await;
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passage: watch::Receiver<Passage>,
    direction: Direction,
    mut garbage: Option<broadcast::Receiver<Bytes>>,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        open_passage(&mut passage, direction).await;
        let next = next_piece(&mut from, &mut buffer, &mut passage, garbage.as_mut());
        let piece = match next.await {
            Piece::Bytes(0) => break,
            Piece::Bytes(len) => Bytes::copy_from_slice(&buffer[..len]),
            Piece::Garbage(bytes) => bytes,
            Piece::PassageChanged => continue,
        };
        // It may have been cut while these bytes were awaited.
        open_passage(&mut passage, direction).await;
        if to.write_all(&piece).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

enum Piece {
    Bytes(usize),
    Garbage(Bytes),
    PassageChanged,
}

async fn next_piece(
    from: &mut OwnedReadHalf,
    buffer: &mut [u8],
    passage: &mut watch::Receiver<Passage>,
    garbage: Option<&mut broadcast::Receiver<Bytes>>,
) -> Piece {
    use futures_util::future::{Either, pending, select};
    let read = Box::pin(async { Piece::Bytes(from.read(buffer).await.unwrap_or(0)) });
    let changed = Box::pin(async {
        match passage.changed().await {
            Ok(()) => Piece::PassageChanged,
            Err(_) => pending().await,
        }
    });
    let injected = Box::pin(async {
        match garbage {
            Some(garbage) => match garbage.recv().await {
                Ok(bytes) => Piece::Garbage(bytes),
                Err(_) => pending().await,
            },
            None => pending().await,
        }
    });
    match select(select(changed, injected), read).await {
        Either::Left((Either::Left((piece, _)) | Either::Right((piece, _)), _))
        | Either::Right((piece, _)) => piece,
    }
}
