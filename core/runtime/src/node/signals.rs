//! Serving until the process is told to end.

use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};

use super::{Node, StopError};

impl Node {
    /// Serves until SIGINT or SIGTERM comes, then stops as [`stop`](Node::stop) does. Ends early if somebody else stops the node,
    /// or if it loses its session and may not rejoin.
    ///
    /// # Errors
    ///
    /// As `stop`; and [`StopError::SessionLost`] if the node can serve no longer.
    pub async fn run(&self) -> Result<(), StopError> {
        let told = std::pin::pin!(crate::env::told_to_end());
        let lost = std::pin::pin!(self.session_lost());
        let stopped = std::pin::pin!(self.stopped());
        match select(select(told, stopped), lost).await {
            Either::Left((Either::Left((told, _)), _)) => {
                told.map_err(|error| StopError::Signals { reason: error.to_string() })?;
                match self.stop().await {
                    Err(StopError::Twice) => {
                        self.stopped().await;
                        Ok(())
                    }
                    stopped => stopped,
                }
            }
            Either::Left((Either::Right(((), _)), _)) => Ok(()),
            Either::Right((reason, _)) => {
                // Nothing can be finished without a session; stopping only tidies up.
                let _ = self.stop().await;
                Err(StopError::SessionLost { reason })
            }
        }
    }

    /// Waits until the node has lost its session for good, and says why: it is not to rejoin, or is being stopped. A loss
    /// that the node comes back from shows in its [events](Node::events) only.
    pub async fn session_lost(&self) -> String {
        self.shared().lives().session_lost().await
    }

    /// Until when the node may start work under its session, as a length from now; zero if it may not.
    pub fn serving_for(&self) -> Millis {
        self.shared().gate().remaining(self.shared().env().now())
    }
}
