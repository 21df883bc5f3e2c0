//! Whether a node may be who it says it is.
//!
//! A hello names a node by its id, and anybody can say any id. What the transport has proven, the fingerprint of the other side's
//! certificate, is bound to the id when the node is met first, and for as long as it is known; nodes may share a certificate. Over a
//! transport that proves nothing only this is held: a light client has not the id of a member.
//!
//! Invariant: of an id that is known nothing is learnt from anybody who proves to be somebody else.

use archipelago_protocol::contract::PeerIdentity;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::peer::{Hello, PeerKind, Refusal, RefusalReason};

use super::peer::Peer;
use crate::node::NodeShared;

impl NodeShared {
    /// Whether whoever sent this hello, and has proven this, may be the node that it says it is.
    ///
    /// # Errors
    ///
    /// It may not.
    pub(super) fn believe(&self, hello: &Hello, proven: &PeerIdentity) -> Result<(), Refusal> {
        let id = hello.node.id;
        let is_member = self.members().view().members.contains_key(&id);
        let known = self.remoting().book().get(id);
        compare(known.as_deref(), is_member, hello, proven)
    }
}

fn compare(
    known: Option<&Peer>,
    is_member: bool,
    hello: &Hello,
    proven: &PeerIdentity,
) -> Result<(), Refusal> {
    let is_client = hello.kind == PeerKind::Client;
    if is_client && is_member {
        return refuse(hello.node.id, "a member of the cluster, and no client");
    }
    match known {
        Some(known) if known.is_client() != is_client => {
            refuse(hello.node.id, if is_client { "no client" } else { "a client" })
        }
        Some(known) if known.fingerprint() != proven.fingerprint => {
            refuse(hello.node.id, "known with another certificate")
        }
        _ => Ok(()),
    }
}

fn refuse(id: NodeId, what: &str) -> Result<(), Refusal> {
    Err(Refusal::new(RefusalReason::Identity, format!("node {id} is {what}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use archipelago_protocol::identity::{Namespace, NodeAddress, NodeInfo};
    use archipelago_protocol::peer::{AttemptId, LaneEnds, Seat, Versions};

    use super::*;

    fn hello(kind: PeerKind) -> Hello {
        Hello {
            versions: Versions { oldest: 1, newest: 1 },
            cluster: "archipelago".into(),
            namespace: Namespace::new("default").unwrap(),
            datacenter: "local".into(),
            node: NodeInfo {
                id: NodeId::new(7),
                name: "other".into(),
                address: NodeAddress::new("10.0.0.7", 4_000).unwrap(),
                roles: BTreeSet::new(),
                version: "0".into(),
                kinds: Default::default(),
            },
            kind,
            lane: LaneEnds { from: Seat::Control, to: Seat::Control },
            attempt: AttemptId(1),
            expects: None,
            seats: vec![1, 2],
            kinds: vec![],
            store: None,
            extensions: vec![],
        }
    }

    fn holder_of(certificate: Option<u8>) -> PeerIdentity {
        PeerIdentity { names: vec![], fingerprint: certificate.map(|byte| [byte; 32]) }
    }

    fn believes(known: (PeerKind, Option<u8>), met: (PeerKind, Option<u8>)) -> bool {
        let known = Peer::new(hello(known.0), &holder_of(known.1));
        let compared = compare(Some(&known), false, &hello(met.0), &holder_of(met.1));
        compared.inspect_err(|refusal| assert_eq!(refusal.reason, RefusalReason::Identity)).is_ok()
    }

    #[test]
    fn a_known_node_is_not_believed_to_be_somebody_with_another_certificate() {
        use PeerKind::{Client, Datacenter, Member};
        for kind in [Member, Datacenter, Client] {
            assert!(believes((kind, Some(1)), (kind, Some(1))));
            assert!(believes((kind, None), (kind, None)));
            assert!(!believes((kind, Some(1)), (kind, Some(2))), "{kind:?}");
            assert!(!believes((kind, Some(1)), (kind, None)), "{kind:?}");
        }
        assert!(believes((Member, Some(1)), (Datacenter, Some(1))), "one and the same, asked in two ways");
    }

    #[test]
    fn a_client_is_not_believed_to_be_a_member_nor_a_member_a_client() {
        use PeerKind::{Client, Member};
        assert!(!believes((Member, Some(1)), (Client, Some(1))));
        assert!(!believes((Client, Some(1)), (Member, Some(1))));
        let unknown = |kind| compare(None, true, &hello(kind), &holder_of(None)).is_ok();
        assert!(unknown(Member) && !unknown(Client), "known by the directory only");
    }
}
