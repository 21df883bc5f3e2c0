//! The engine's own time to live: etcd leases under records that ask for one.
//!
//! They only clean up after everybody is gone, so they need not be exact, and nothing keeps them alive: a lease is granted
//! for twice the time, and serves all writes of the same time to live until half of that is over. Then the next write gets
//! a new one, and moves its record there. A lease that nothing hangs on any more runs out by itself. There is no keepalive
//! stream that could stall, and nothing to revoke: a record that is replaced leaves its lease with that very write.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use archipelago_protocol::time::Millis;

use crate::endpoint::Connection;
use crate::failure::Failure;
use crate::wires::Wires;

/// The leases granted to this store.
#[derive(Default)]
pub(crate) struct EngineLeases {
    granted: Mutex<BTreeMap<Millis, Granted>>,
}

#[derive(Clone, Copy)]
struct Granted {
    id: i64,
    at: Millis,
}

impl EngineLeases {
    /// A lease that lives for at least `ttl` more; asked for before `until`.
    pub(crate) async fn lasting(&self, wires: &Wires, ttl: Millis, until: Millis) -> Result<i64, Failure> {
        let now = wires.timer.now();
        if let Some(granted) = self.known(ttl).filter(|granted| now - granted.at <= ttl) {
            return Ok(granted.id);
        }
        let seconds = i64::try_from(ttl.0.saturating_mul(2).div_ceil(1_000)).unwrap_or(i64::MAX);
        let seconds = seconds.clamp(1, LONGEST_SECONDS);
        let grant =
            |mut connection: Connection| async move { Ok(connection.lease.grant(seconds, None).await?.id()) };
        let id = wires.call_until(until, grant).await.map_err(nothing_written)?;
        self.keep(ttl, Granted { id, at: now });
        Ok(id)
    }

    /// Forgets a lease that the server does not know.
    pub(crate) fn forget(&self, ttl: Millis, id: i64) {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.get(&ttl).is_some_and(|known| known.id == id) {
            granted.remove(&ttl);
        }
    }

    fn known(&self, ttl: Millis) -> Option<Granted> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).get(&ttl).copied()
    }

    fn keep(&self, ttl: Millis, lease: Granted) {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.len() >= MAX_KNOWN {
            granted.clear();
        }
        granted.insert(ttl, lease);
    }
}

/// A grant without an answer is no harm: the record that was to hang on it has not been sent.
fn nothing_written(failure: Failure) -> Failure {
    match failure {
        Failure::Broken { endpoint, cause } => Failure::NotSent { endpoint, cause },
        Failure::TooLate { endpoint, within } => {
            Failure::NotSent { endpoint, cause: format!("no answer to a lease grant within {within}") }
        }
        failure => failure,
    }
}

/// Times to live are constants of the protocol and settings of a cluster: there are few.
const MAX_KNOWN: usize = 64;
/// etcd's own bound is 9,000,000,000; a century will do.
const LONGEST_SECONDS: i64 = 3_153_600_000;
