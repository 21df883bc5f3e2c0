//! The start: waiting for an etcd that answers, and saying why there is none.

use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};
use futures_util::pin_mut;

use crate::config::EtcdConfig;
use crate::endpoint::Connection;
use crate::failure::Failure;
use crate::store::{EtcdError, EtcdStore};

/// Asks again and again, until a member answers or the time is up.
pub(crate) async fn wait_until_reached(store: &EtcdStore, config: &EtcdConfig) -> Result<(), EtcdError> {
    let within = Millis::from_duration(config.connect_timeout);
    let mut causes = format!("{}: no answer", config.endpoints.join(", "));
    let deadline = store.wires.timer.sleep(within);
    let reached = {
        let attempts = ask_until_reached(store, within, &mut causes);
        pin_mut!(attempts);
        match select(attempts, deadline).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(((), _)) => None,
        }
    };
    reached.unwrap_or(Err(EtcdError::Unreachable { within, causes }))
}

async fn ask_until_reached(store: &EtcdStore, within: Millis, causes: &mut String) -> Result<(), EtcdError> {
    while let Err(failures) = ask(store, within).await {
        if let Some(fatal) = failures.iter().find(|failure| matches!(failure, Failure::Fatal { .. })) {
            return Err(EtcdError::Refused { cause: fatal.to_string() });
        }
        *causes = failures.iter().map(Failure::to_string).collect::<Vec<_>>().join("; ");
        store.wires.timer.sleep(PAUSE).await;
    }
    Ok(())
}

/// Reads a key that is never written: whether we may is not the question.
async fn ask(store: &EtcdStore, within: Millis) -> Result<(), Vec<Failure>> {
    let key = store.keys.prefix();
    let read = |mut connection: Connection| async move { connection.kv.get(key, None).await.map(|_| ()) };
    let members = store.wires.endpoints.len() as u64;
    // So that each member's own reason is known before the time is up.
    let patience = Millis(within.0 / (members + 1)).min(store.wires.request_timeout);
    match store.wires.ask_everybody(patience, read).await {
        Err(failures) if failures.iter().any(is_denied) => Ok(()),
        result => result,
    }
}

const fn is_denied(failure: &Failure) -> bool {
    matches!(failure, Failure::Fatal { denied: true, .. })
}

/// Between rounds.
const PAUSE: Millis = Millis(100);
