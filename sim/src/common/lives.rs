//! The lives of all nodes, and until when each of them may act, as the store itself knows it.

use std::sync::{Arc, Mutex, PoisonError};

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;

use crate::env::SimEnvironment;
use crate::world::Beats;

/// All lives, numbered from 1 in the order of their birth.
pub(crate) struct Lives {
    beats: Arc<Beats>,
    born: Mutex<Vec<Born>>,
}

#[derive(Clone)]
struct Born {
    node: NodeId,
    env: Arc<SimEnvironment>,
}

impl Lives {
    pub(crate) const fn new(beats: Arc<Beats>) -> Self {
        Self { beats, born: Mutex::new(Vec::new()) }
    }

    pub(crate) fn born(&self, node: NodeId, env: Arc<SimEnvironment>) {
        self.born.lock().unwrap_or_else(PoisonError::into_inner).push(Born { node, env });
    }

    /// The number of the life with this id; 0 if it has not been announced.
    pub(crate) fn number(&self, node: NodeId) -> u64 {
        let born = self.born.lock().unwrap_or_else(PoisonError::into_inner);
        born.iter().position(|born| born.node == node).map_or(0, |place| place as u64 + 1)
    }

    pub(crate) fn env(&self, life: u64) -> Option<Arc<SimEnvironment>> {
        self.find(life).map(|born| born.env)
    }

    /// Whether a job may start in this life now.
    pub(crate) fn may_start(&self, life: u64) -> bool {
        self.before(life, times::serve_until)
    }

    /// Whether anything may run in this life now.
    pub(crate) fn is_live(&self, life: u64) -> bool {
        self.before(life, times::fence_at)
    }

    fn before(&self, life: u64, deadline: fn(Millis, Millis) -> Millis) -> bool {
        let Some(born) = self.find(life) else { return false };
        let Some(sent_at) = self.beats.confirmable(born.node) else { return false };
        born.env.clock().now() < deadline(sent_at, TTL)
    }

    fn find(&self, life: u64) -> Option<Born> {
        let born = self.born.lock().unwrap_or_else(PoisonError::into_inner);
        place(life).and_then(|place| born.get(place)).cloned()
    }
}

fn place(life: u64) -> Option<usize> {
    usize::try_from(life).ok()?.checked_sub(1)
}

/// T of every session in the workloads.
pub(crate) const TTL: Millis = Millis(3_000);
