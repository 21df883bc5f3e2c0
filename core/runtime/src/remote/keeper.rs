//! Opening the control arbiter's side of the network, and staying in touch with the nodes named in the configuration.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::peer::{Backoff, Seat};
use archipelago_protocol::time::Millis;

use super::control::ControlSink;
use super::seat::SeatLocal;
use crate::node::{NodeShared, StartError};

/// Opens the endpoint of the control arbiter, if the node has a transport, and looks for its peers from there.
///
/// # Errors
///
/// [`StartError::Transport`] if the endpoint cannot be opened.
pub(crate) async fn open_control(node: &Arc<NodeShared>) -> Result<Option<Rc<SeatLocal>>, StartError> {
    let sink = ControlSink::new(Arc::clone(node));
    let Some(seat) = SeatLocal::open(node, Seat::Control, Rc::clone(&sink) as _).await? else {
        return Ok(None);
    };
    sink.sits_at(&seat);
    for address in node.settings().remote.peers.clone() {
        node.env().spawn(Box::pin(stay_in_touch(Arc::clone(node), address)));
    }
    Ok(Some(seat))
}

/// Meets whoever is at `address`, again and again: another process may take its place.
async fn stay_in_touch(node: Arc<NodeShared>, address: NodeAddress) {
    let mut backoff = Backoff::default();
    loop {
        let pause = match node.remoting().meet(address.clone()).await {
            Ok(_) => {
                backoff.reset();
                LOOK_EVERY
            }
            Err(error) => {
                tracing::info!(%address, error, "a configured peer does not answer");
                backoff.next(node.env().random())
            }
        };
        node.env().sleep(pause).await;
    }
}

/// How often to look whether the same process is still at an address.
const LOOK_EVERY: Millis = Millis(2_000);
