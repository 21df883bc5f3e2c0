//! A stretch of network between a store and its server that a test can hold up and cut.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes on what goes between its clients and one server.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    holds: bool,
    /// Connections of an earlier time are cut.
    time: u64,
}

impl Proxy {
    /// Listens on loopback for connections to the server on `port`.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("has an address");
        let state = watch::Sender::new(State { holds: false, time: 0 });
        let seen = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pass(from_client, to_server, seen.subscribe()));
                tokio::spawn(pass(from_server, to_client, seen.subscribe()));
            }
        });
        Self { address, state }
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Passes nothing on any more; connections stay open.
    pub(crate) fn hold(&self) {
        self.state.send_modify(|state| state.holds = true);
    }

    /// Cuts all connections, with what is on its way, and lets new ones through.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| *state = State { holds: false, time: state.time + 1 });
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: watch::Receiver<State>,
) {
    let mut buffer = vec![0; 4_096];
    let time = state.borrow().time;
    loop {
        let now = *state.borrow_and_update();
        if now.time != time {
            return;
        }
        tokio::select! {
            changed = state.changed() => if changed.is_err() { return },
            read = from.read(&mut buffer), if !now.holds => match read {
                Ok(length) if length > 0 => if to.write_all(&buffer[..length]).await.is_err() { return },
                _ => return,
            },
        }
    }
}
