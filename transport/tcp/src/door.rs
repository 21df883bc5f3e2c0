//! The listener of an endpoint: lets diallers in, each with its own handshake and time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::contract::{Connection, TransportError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::endpoint::House;
use crate::handshake::Failure;

/// What `accept` answers.
pub(crate) type Arrival = Result<Connection, TransportError>;

/// Lets diallers in until it is stopped.
pub(crate) async fn keep(listener: TcpListener, house: Arc<House>, arrivals: mpsc::Sender<Arrival>) {
    let mut guests = Guests::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => {
                    guests.make_room(house.settings.handshakes.get());
                    guests.add(welcome(house.clone(), socket, from, arrivals.clone()));
                }
                Err(error) => {
                    // Mostly too many open files: trying again at once would only burn the processor.
                    tracing::warn!(%error, address = %house.address, "accepting a connection failed");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = guests.tasks.join_next() => {}
        }
    }
}

/// Those whose handshake is under way, or who were not accepted yet.
#[derive(Default)]
struct Guests {
    tasks: JoinSet<()>,
    /// The oldest first.
    order: VecDeque<AbortHandle>,
}

impl Guests {
    fn add(&mut self, guest: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks.spawn(guest);
        self.order.push_back(handle);
    }

    /// Drops the oldest, if there are too many.
    fn make_room(&mut self, limit: usize) {
        self.order.retain(|guest| !guest.is_finished());
        while self.order.len() >= limit {
            if let Some(oldest) = self.order.pop_front() {
                tracing::warn!("too many handshakes at once, the oldest is dropped");
                oldest.abort();
            }
        }
    }
}

async fn welcome(house: Arc<House>, socket: TcpStream, from: SocketAddr, arrivals: mpsc::Sender<Arrival>) {
    let _ = socket.set_nodelay(true);
    let limit = house.settings.handshake_limit;
    let arrival = match tokio::time::timeout(limit, house.handshake.accept(socket)).await {
        Ok(Ok(proven)) => match house.connect(proven) {
            Ok(connection) => Ok(connection),
            Err(_) => return,
        },
        Ok(Err(failure)) => Err(refusal(failure, from)),
        Err(_) => Err(TransportError::Lost { reason: format!("{from} said nothing within {limit:?}") }),
    };
    match arrival {
        Err(error) => {
            tracing::debug!(%error, %from, "a dialler was not let in");
            // Nobody has to listen to complaints.
            let _ = arrivals.try_send(Err(error));
        }
        connection => {
            let _ = arrivals.send(connection).await;
        }
    }
}

fn refusal(failure: Failure, from: SocketAddr) -> TransportError {
    match failure {
        Failure::Refused(reason) => TransportError::Refused { reason: format!("{from}: {reason}") },
        Failure::HungUp => TransportError::Lost { reason: format!("{from} hung up during the handshake") },
        Failure::Broken(error) => TransportError::Lost { reason: format!("{from}: {error}") },
    }
}

/// How many arrivals wait for `accept`.
pub(crate) const ARRIVALS: usize = 64;
const PAUSE: Duration = Duration::from_millis(50);
