//! Cables for transports on loopback: proxies that can stop forwarding without closing anything.

mod tcp;
mod udp;

pub use tcp::TcpCable;
pub use udp::UdpCable;

use std::net::SocketAddr;

use archipelago_protocol::identity::NodeAddress;
use tokio::sync::watch;

use crate::testbed::Cut;

/// What a cut leaves, as the tasks of a proxy watch it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Passage {
    towards_blocked: bool,
    back_blocked: bool,
}

impl Passage {
    const fn blocked(self, direction: Direction) -> bool {
        match direction {
            Direction::Towards => self.towards_blocked,
            Direction::Back => self.back_blocked,
        }
    }
}

impl From<Cut> for Passage {
    fn from(cut: Cut) -> Self {
        Self { towards_blocked: cut.towards(), back_blocked: cut.back() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Towards,
    Back,
}

/// Waits until this direction is not blocked.
async fn open_passage(passage: &mut watch::Receiver<Passage>, direction: Direction) {
    // An error means that the cable is gone, and this task with it.
    let _ = passage.wait_for(|now| !now.blocked(direction)).await;
}

/// The socket address of an endpoint on loopback.
fn socket_address(of: &NodeAddress) -> SocketAddr {
    of.to_string().parse().expect("a cable leads to an IP address")
}
