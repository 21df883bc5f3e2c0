//! The rules of [`Transport`](archipelago_protocol::contract::Transport), each as a function that panics when it is broken.

mod cancel;
mod closing;
mod dialling;
mod flow;
mod order;
mod silence;
mod sizes;
mod strangers;
mod streams;
mod trust;

pub use cancel::cancel_safe;
pub use closing::close_says_why;
pub use dialling::dials_again;
pub use flow::full_means_wait;
pub use order::{at_most_once, lane_keeps_order};
pub use silence::silence_is_noticed;
pub use sizes::{large_stream, messages_of_every_size};
pub use strangers::{garbage_is_refused, slow_dialers_block_nobody};
pub use streams::streams_stand_beside;
pub use trust::peer_is_proven;

use std::time::Duration;

use archipelago_protocol::contract::{Endpoint, TransportError};

use crate::party::{Party, connect};
use crate::testbed::{Cable, Testbed};
use crate::time::within;

/// Two endpoints with a connection from `a` to `b`, over a cable.
struct Pair {
    a: Box<dyn Endpoint>,
    b: Box<dyn Endpoint>,
    cable: Box<dyn Cable>,
    dialler: Party,
    acceptor: Party,
}

impl Pair {
    async fn new(bed: &dyn Testbed) -> Self {
        let (a, b) = (bed.endpoint().await, bed.endpoint().await);
        let cable = bed.cable(b.address()).await;
        let (dialler, acceptor) = connect(&*a, cable.address(), &*b).await;
        Self { a, b, cable, dialler, acceptor }
    }

    /// Gives up the connection for another one between the same endpoints.
    async fn connect_again(&mut self) {
        (self.dialler, self.acceptor) = connect(&*self.a, self.cable.address(), &*self.b).await;
    }

    /// Waits until both sides have found out that the connection is lost.
    async fn both_lost(&mut self, limit: Duration) {
        let (Self { dialler, acceptor, .. }, what) = (self, "both sides notice that the connection is lost");
        let ends = futures_util::future::join(dialler.end(), acceptor.end());
        let ((_, at_dialler), (_, at_acceptor)) = within(limit, what, ends).await;
        for (side, error) in [("dialler", at_dialler), ("acceptor", at_acceptor)] {
            assert!(is_lost(&error), "the {side} answers that it is lost: {error}");
        }
    }
}

/// Within which time silence is noticed, with some room for a busy machine.
fn silence(bed: &dyn Testbed) -> Duration {
    bed.silence_limit() + bed.silence_limit() / 2 + SLACK
}

fn is_lost(error: &TransportError) -> bool {
    matches!(error, TransportError::Lost { reason } if !reason.is_empty())
}

/// What a busy machine may take longer.
const SLACK: Duration = Duration::from_secs(1);
/// For how long something is watched that must not happen.
const A_WHILE: Duration = Duration::from_millis(200);
