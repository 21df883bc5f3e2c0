//! What a member is asked about datacenters, and what it answers: a line of JSON each.

use std::time::{Duration, Instant};

use archipelago::CallOptions;
use archipelago::datacenter::{DataCenterId, DataCenterMap, DataCenterState};
use archipelago::prelude::*;
use archipelago_protocol::identity::{NodeAddress, NodeId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::account::{Account, Visit};
use crate::member::{MemberProcess, say};

/// What came of a visit that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The node that the account is on.
    pub node: NodeId,
    /// The how-manieth visit it was.
    pub visits: u64,
    /// How long the answer took, in microseconds.
    pub micros: u64,
}

/// What a member tells about itself and its datacenter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Who leads its datacenter.
    pub leader: Option<NodeId>,
    /// Where others are told to dial it.
    pub address: NodeAddress,
    /// How many members it sees in its own datacenter.
    pub members: usize,
    /// The datacenters as it sees them.
    pub map: DataCenterMap,
}

impl Report {
    /// Where a datacenter stands.
    pub fn standing(&self, datacenter: &str) -> Option<DataCenterState> {
        let id = DataCenterId::new(datacenter).ok()?;
        self.map.get(&id).map(|entry| entry.standing)
    }
}

impl MemberProcess {
    /// Has it visit an account.
    ///
    /// # Errors
    ///
    /// Why the visit failed.
    ///
    /// # Panics
    ///
    /// If it has gone.
    pub fn visit(&mut self, account: u64) -> Result<Heard, CallError> {
        self.asked(&format!("visit {account}"))
    }

    /// Has it place an account; in which datacenter that was.
    ///
    /// # Errors
    ///
    /// Why it was not placed, in its words.
    ///
    /// # Panics
    ///
    /// If it has gone.
    pub fn place(&mut self, target: &str, account: u64) -> Result<String, String> {
        self.asked(&format!("place {account} {target}"))
    }

    /// Has it look around.
    ///
    /// # Panics
    ///
    /// If it has gone.
    pub fn report(&mut self) -> Report {
        self.asked("report")
    }

    pub(crate) fn asked<T: DeserializeOwned>(&mut self, order: &str) -> T {
        self.tell(order);
        let line = self.next_word();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("to {order:?} the member said {line:?}"))
    }
}

/// Carries out an order that is about datacenters; whether it was one.
pub(crate) async fn obey(node: &Node, order: &str, rest: &str) -> bool {
    match order {
        "visit" => answer(&visit(node, rest).await),
        "place" => {
            let (account, target) = rest.split_once(' ').expect("an account and a target");
            let placed = node.spawn_in(target, Account::KIND, account).await;
            answer(&placed.map(|placed| placed.datacenter).map_err(|error| error.to_string()));
        }
        "report" => answer(&Report {
            leader: node.leader(),
            address: node.address(),
            members: node.members().len(),
            map: DataCenterMap::clone(&node.datacenters()),
        }),
        _ => return false,
    }
    true
}

async fn visit(node: &Node, account: &str) -> Result<Heard, CallError> {
    let began = Instant::now();
    let soon = CallOptions::new().timeout(VISIT_LIMIT);
    let visited = node.actor::<Account>(account).send_with(Visit, soon).await;
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    visited.map(|visited| Heard { node: visited.node, visits: visited.visits, micros })
}

pub(crate) fn answer(what: &impl Serialize) {
    say(&serde_json::to_string(what).expect("an answer can be written"));
}

/// How long a visit may take.
pub const VISIT_LIMIT: Duration = Duration::from_secs(3);
