//! Serving until the process is told to end.

use archipelago_protocol::time::Millis;
use futures_util::future::{Either, select};

use super::{Node, StopError};
use crate::env::within;

impl Node {
    /// Serves until SIGINT or SIGTERM comes, then stops as [`stop`](Node::stop) does. Ends early if somebody else stops the node,
    /// or if it loses its session and may not rejoin.
    ///
    /// # Errors
    ///
    /// As `stop`; and [`StopError::SessionLost`] if the node can serve no longer.
    pub async fn run(&self) -> Result<(), StopError> {
        self.run_closing(async || ()).await
    }

    /// The same for a program with a door of its own, a web server for instance: `close` closes it, once, when the end has come,
    /// and before the node stops, because the last requests still need actors. It has `node.stop_budget` for that, and the stop has as
    /// much again. If somebody else has stopped the node, it is closed while the node stops.
    ///
    /// A server of actix-web must not listen for signals itself (`disable_signals`): it would stop the whole actix system, with
    /// the arbiters of the node.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn run_closing(&self, close: impl AsyncFnOnce()) -> Result<(), StopError> {
        let told = std::pin::pin!(crate::env::told_to_end());
        let lost = std::pin::pin!(self.session_lost());
        let stopped = std::pin::pin!(self.shared().lives().stop_wanted());
        let end = select(select(told, stopped), lost).await;
        self.close_within_budget(close()).await;
        match end {
            Either::Left((Either::Left((told, _)), _)) => {
                told.map_err(|error| StopError::Signals { reason: error.to_string() })?;
                self.stop_or_see_it_stopped().await
            }
            Either::Left((Either::Right(((), _)), _)) => {
                self.stopped().await;
                Ok(())
            }
            Either::Right((reason, _)) => {
                // Nothing can be finished without a session; stopping only tidies up.
                let _ = self.stop().await;
                Err(StopError::SessionLost { reason })
            }
        }
    }

    /// A door that does not close must not keep the node for ever.
    async fn close_within_budget(&self, closing: impl Future<Output = ()>) {
        let (node, limit) = (self.shared(), self.shared().settings().stop_budget);
        if within(node.env(), limit, closing).await.is_none() {
            tracing::warn!(node = %node.id(), "the program's door is not closed in time");
        }
    }

    async fn stop_or_see_it_stopped(&self) -> Result<(), StopError> {
        match self.stop().await {
            Err(StopError::Twice) => {
                self.stopped().await;
                Ok(())
            }
            stopped => stopped,
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
