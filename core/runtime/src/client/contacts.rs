//! The nodes that a client asks. Whom it asks first is [`Contacts`]'s decision.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::peer::Contacts;
use archipelago_protocol::time::Millis;
use metrics::counter;
use serde::de::DeserializeOwned;

use super::words::{Question, decode, encode};
use crate::env::within;
use crate::node::NodeShared;
use crate::remote::{Peer, ask_contact};

/// The contacts of a client.
pub(crate) struct ContactList {
    addresses: Vec<NodeAddress>,
    state: Mutex<State>,
}

struct State {
    order: Contacts,
    /// Who was met last at each address. A contact may call itself by another address than the one it is known by here.
    met: Vec<Option<NodeId>>,
}

impl ContactList {
    /// The nodes at these addresses; `random` decides which one is asked first.
    pub(crate) fn new(addresses: Vec<NodeAddress>, random: u64) -> Self {
        let (order, met) = (Contacts::new(addresses.len(), random), vec![None; addresses.len()]);
        Self { addresses, state: Mutex::new(State { order, met }) }
    }

    /// Asks one contact after the other until one answers.
    ///
    /// # Errors
    ///
    /// What the last one said, or why it could not be asked.
    pub(super) async fn ask<A: DeserializeOwned>(
        &self,
        node: &Arc<NodeShared>,
        question: &Question,
    ) -> Result<A, CallError> {
        let mut trouble = CallError::NoRoute { reason: "the client has no contacts".into() };
        for place in self.order(node) {
            match self.ask_at(place, node, question).await {
                Ok(answer) => {
                    self.lock().order.answered(place);
                    return Ok(answer);
                }
                Err(error) => {
                    counter!("archipelago_contact_failures_total").increment(1);
                    tracing::debug!(contact = %self.addresses[place], %error, "a contact does not answer");
                    self.lock().order.failed(place);
                    trouble = error;
                }
            }
        }
        Err(trouble)
    }

    /// The first contact that can be met.
    ///
    /// # Errors
    ///
    /// Why the last one cannot.
    pub(crate) async fn any(&self, node: &Arc<NodeShared>) -> Result<Arc<Peer>, CallError> {
        let mut trouble = CallError::NoRoute { reason: "the client has no contacts".into() };
        for place in self.order(node) {
            match within(node.env(), ASK_WITHIN, self.meet(place, node)).await {
                Some(Ok(peer)) => return Ok(peer),
                Some(Err(reason)) => trouble = CallError::NoRoute { reason: reason.into() },
                None => trouble = CallError::Timeout { started: false },
            }
            self.lock().order.failed(place);
        }
        Err(trouble)
    }

    fn order(&self, node: &NodeShared) -> Vec<usize> {
        let state = self.lock();
        let book = node.remoting().book();
        state.order.order(|place| state.met[place].is_some_and(|id| book.is_reached(id)))
    }

    async fn ask_at<A: DeserializeOwned>(
        &self,
        place: usize,
        node: &Arc<NodeShared>,
        question: &Question,
    ) -> Result<A, CallError> {
        let (payload, until) = (encode(question)?, node.env().now() + ASK_WITHIN);
        let met = within(node.env(), ASK_WITHIN, self.meet(place, node)).await;
        let peer = met.ok_or(CallError::Timeout { started: false })?;
        let peer = peer.map_err(|reason| CallError::NoRoute { reason: reason.into() })?;
        let left = until.since(node.env().now());
        decode(&ask_contact(node, peer, payload, left).await?)
    }

    /// The contact at a place, dialled if need be.
    async fn meet(&self, place: usize, node: &NodeShared) -> Result<Arc<Peer>, String> {
        let book = node.remoting().book();
        let known = self.lock().met[place].filter(|id| book.is_reached(*id));
        if let Some(peer) = known.and_then(|id| book.get(id)) {
            return Ok(peer);
        }
        let peer = node.remoting().meet_anew(self.addresses[place].clone()).await?;
        self.lock().met[place] = Some(peer.id());
        Ok(peer)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long one contact may take, with everything that it has to find out itself.
const ASK_WITHIN: Millis = Millis(2_000);
