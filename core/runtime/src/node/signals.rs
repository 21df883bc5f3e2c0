//! Serving until the process is told to end.

use archipelago_protocol::time::Millis;

use super::{Node, StopError};
use crate::session::SessionState;

impl Node {
    /// Serves until SIGINT or SIGTERM comes, then stops as [`stop`](Node::stop) does. Ends early if the node loses
    /// its session.
    ///
    /// # Errors
    ///
    /// As `stop`; and [`StopError::SessionLost`] if the node can serve no longer.
    pub async fn run(&self) -> Result<(), StopError> {
        let told = std::pin::pin!(crate::env::told_to_end());
        let lost = std::pin::pin!(self.session_lost());
        match futures_util::future::select(told, lost).await {
            futures_util::future::Either::Left((told, _)) => {
                told.map_err(|error| StopError::Signals { reason: error.to_string() })?;
                self.stop().await
            }
            futures_util::future::Either::Right((reason, _)) => {
                // Nothing can be finished without a session; stopping only tidies up.
                let _ = self.stop().await;
                Err(StopError::SessionLost { reason })
            }
        }
    }

    /// Waits until the node loses its session, and says why.
    pub async fn session_lost(&self) -> String {
        let mut session = self.shared.session().subscribe();
        let found = session.wait_for(|state| matches!(state, SessionState::Lost(_))).await;
        match found.as_deref() {
            Ok(SessionState::Lost(reason)) => reason.clone(),
            _ => std::future::pending().await,
        }
    }

    /// Until when the node may start work under its session, as a length from now; zero if it may not.
    pub fn serving_for(&self) -> Millis {
        self.shared.gate().serve_until().since(self.shared.env().now())
    }
}
