//! A UDP proxy that can be cut: a cut direction throws its datagrams away.
#![expect(clippy::disallowed_methods, reason = "the network under a transport")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use archipelago_protocol::identity::NodeAddress;
use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::watch;

use super::{Direction, Passage, socket_address};
use crate::testbed::{Cable, Cut};
use crate::time::{Task, spawn};

/// A [`Cable`] for transports over UDP on loopback.
pub struct UdpCable {
    address: NodeAddress,
    passage: watch::Sender<Passage>,
    /// The sockets that stand for a client each, as the endpoint sees them.
    outlets: Outlets,
    _proxy: Task,
}

type Outlets = Arc<Mutex<BTreeMap<SocketAddr, Arc<UdpSocket>>>>;

impl UdpCable {
    /// Lays a cable to the endpoint at `to`.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn new(to: &NodeAddress) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address").into();
        let (passage, watched) = watch::channel(Passage::default());
        let outlets = Outlets::default();
        let proxy = proxy(socket, socket_address(to), watched, Arc::clone(&outlets));
        Self { address, passage, outlets, _proxy: spawn(Box::pin(proxy)) }
    }
}

impl Cable for UdpCable {
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
        for outlet in self.outlets.lock().unwrap_or_else(PoisonError::into_inner).values() {
            // A datagram may be lost at any time.
            let _ = outlet.try_send(&bytes);
        }
    }
}

async fn proxy(socket: UdpSocket, to: SocketAddr, passage: watch::Receiver<Passage>, outlets: Outlets) {
    let socket = Rc::new(socket);
    let mut ways_back = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        // An error is the echo of a datagram that nobody took; the next one may fare better.
        let Ok((len, client)) = socket.recv_from(&mut buffer).await else { continue };
        let known = outlets.lock().unwrap_or_else(PoisonError::into_inner).get(&client).cloned();
        let outlet = match known {
            Some(outlet) => outlet,
            None => {
                let outlet = outlet(to).await;
                let back = way_back(Rc::clone(&socket), Arc::clone(&outlet), client, passage.clone());
                ways_back.push(spawn(Box::pin(back)));
                outlets.lock().unwrap_or_else(PoisonError::into_inner).insert(client, Arc::clone(&outlet));
                outlet
            }
        };
        if !passage.borrow().blocked(Direction::Towards) {
            let _ = outlet.send(&buffer[..len]).await;
        }
    }
}

async fn outlet(to: SocketAddr) -> Arc<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    socket.connect(to).await.expect("loopback is reachable");
    Arc::new(socket)
}

async fn way_back(
    socket: Rc<UdpSocket>,
    outlet: Arc<UdpSocket>,
    client: SocketAddr,
    passage: watch::Receiver<Passage>,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(len) = outlet.recv(&mut buffer).await else {
            // The endpoint's port is closed: such errors come one per datagram, so this does not spin.
            continue;
        };
        if !passage.borrow().blocked(Direction::Back) {
            let _ = socket.send_to(&buffer[..len], client).await;
        }
    }
}
