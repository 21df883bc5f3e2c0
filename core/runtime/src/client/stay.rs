//! The life of a client on its control arbiter, in place of a session.

use std::sync::Arc;

use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::time::Millis;

use super::contacts::ContactList;
use super::words::Question;
use crate::node::{NodeShared, StartError};
use crate::session::SessionState;

/// Stays until the client is to stop. There is nothing that others could take over from it, so it never has to fall silent.
pub(crate) async fn stay(node: &NodeShared) {
    node.gate().set(Millis::MAX, Millis::MAX);
    node.session().modify(|state| {
        let opening = *state == SessionState::Opening;
        if opening {
            *state = SessionState::Live;
        }
        opening
    });
    if node.session().follow().find(SessionState::if_closing).await == Some(SessionState::Closing) {
        node.wake_arbiters();
        node.session().set(SessionState::Closed);
    }
}

/// Learns from a contact how the cluster divides the kinds that the client knows. A kind that no contact knows stays as it
/// was configured; nothing can be sent to it then.
///
/// # Errors
///
/// [`StartError::NoContact`] if none answered for as long as a session would last.
pub(crate) async fn adopt_layouts(node: &Arc<NodeShared>, contacts: &ContactList) -> Result<(), StartError> {
    let until = node.env().now() + node.settings().session_ttl;
    let question = Question::Layouts(node.kinds().iter().map(|kind| kind.name().to_owned()).collect());
    let layouts: Vec<Option<KindLayout>> = loop {
        match contacts.ask(node, &question).await {
            Ok(layouts) => break layouts,
            Err(error) if node.env().now() >= until => {
                return Err(StartError::NoContact { reason: error.to_string() });
            }
            Err(error) => tracing::info!(%error, "no contact answers yet"),
        }
        node.env().sleep(PAUSE).await;
    };
    for (kind, layout) in node.kinds().iter().zip(layouts) {
        match layout {
            Some(layout) => kind.adopt(layout),
            None => tracing::warn!(kind = kind.name(), "a contact does not know a kind"),
        }
    }
    Ok(())
}

/// Before the contacts are asked again.
const PAUSE: Millis = Millis(100);
