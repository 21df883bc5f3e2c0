//! Waiting, but not for ever.

use std::pin::pin;
use std::sync::Arc;

use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};

use super::Environment;

/// Waits for `work`, `limit` at most; `None` if that was too short.
pub(crate) async fn within<T>(
    env: &Arc<dyn Environment>,
    limit: Millis,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(work), env.sleep(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
