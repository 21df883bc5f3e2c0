//! Where actors live, as the contacts of a client say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use archipelago_protocol::contract::DirectoryError;
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, OwnedKey};
use async_trait::async_trait;

use super::contacts::ContactList;
use super::words::{Question, Whereabouts};
use crate::node::NodeShared;
use crate::remote::{Connector, Location, Locator, Place};

/// Asks contacts instead of a directory. What nobody owns they give an owner, so the answer is none only if that failed.
pub(crate) struct ContactLocator {
    contacts: Arc<ContactList>,
    /// The client itself.
    client: Connector,
    /// Where the owners listen that contacts have named.
    addresses: Mutex<BTreeMap<NodeId, NodeAddress>>,
}

impl ContactLocator {
    pub(crate) fn new(contacts: Arc<ContactList>, client: Connector) -> Self {
        Self { contacts, client, addresses: Mutex::default() }
    }

    fn note(&self, owner: NodeId, address: NodeAddress) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= MOST_ADDRESSES {
            // Whoever is still needed is named again with the next look-up.
            addresses.clear();
        }
        addresses.insert(owner, address);
    }
}

#[async_trait]
impl Locator for ContactLocator {
    fn fixed_place(&self, _: &Kind) -> Option<&NodeAddress> {
        None
    }

    async fn look_up(&self, key: &OwnedKey) -> Result<Option<Location>, DirectoryError> {
        let node = self.client.node().ok_or_else(|| unavailable("the client does not run"))?;
        let layout = key.kind().and_then(|kind| layout_of(&node, kind));
        let layout = layout.ok_or_else(|| unavailable("the client does not know the kind"))?;
        let question = Question::Where(key.clone(), layout);
        let answer: Option<Whereabouts> =
            self.contacts.ask(&node, &question).await.map_err(|error| unavailable(&error.to_string()))?;
        Ok(answer.map(|Whereabouts { owner, generation, address }| {
            self.note(owner, address);
            Location { at: Place::Node(owner), generation }
        }))
    }

    async fn address_of(&self, node: NodeId) -> Result<Option<NodeAddress>, DirectoryError> {
        Ok(self.addresses.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned())
    }
}

fn layout_of(node: &NodeShared, kind: &Kind) -> Option<archipelago_protocol::placement::KindLayout> {
    let index = node.kind_index(kind)?;
    node.kinds().get(index as usize).map(|kind| kind.layout())
}

fn unavailable(reason: &str) -> DirectoryError {
    DirectoryError::Unavailable { backend: "contacts", source: reason.into() }
}

/// How many addresses are remembered; clusters are smaller.
const MOST_ADDRESSES: usize = 4_096;
