//! Those who are no nodes.

use std::sync::Arc;

use archipelago_protocol::time::Millis;

use crate::wait::Shared;

/// A client that has connected to an endpoint and says nothing.
pub struct MuteClient {
    shared: Arc<Shared>,
    listener: u64,
    id: u64,
    until: Millis,
}

impl MuteClient {
    pub(crate) fn new(shared: &Arc<Shared>, (listener, id, until): (u64, u64, Millis)) -> Self {
        Self { shared: Arc::clone(shared), listener, id, until }
    }

    /// Completes when the endpoint has dropped this client.
    pub async fn dropped(&self) {
        if self.until == Millis::MAX {
            std::future::pending::<()>().await;
        }
        self.shared.timer.sleep(self.until.since(self.shared.timer.now())).await;
    }
}

impl Drop for MuteClient {
    fn drop(&mut self) {
        self.shared.with(|state, _| {
            if let Some(listener) = state.listeners.get_mut(&self.listener) {
                listener.mutes.remove(&self.id);
            }
        });
    }
}
