//! Killing a node in the middle of something: while it starts, or while it leaves.

use std::pin::pin;
use std::time::Duration;

use archipelago_runtime::{Node, StartError};
use futures_util::future::{Either, select};

use super::World;
use crate::clock::TrueClock;
use crate::env::SimEnvironment;

impl World {
    /// Starts a node that is down, and kills it after `length` if it has not started by then: `None`.
    ///
    /// # Errors
    ///
    /// As [`NodeBuilder::start`](archipelago_runtime::NodeBuilder::start).
    pub async fn start_and_kill(&self, index: usize, length: Duration) -> Option<Result<Node, StartError>> {
        let (env, starting) = self.beginning(index);
        match select(Box::pin(starting), pin!(TrueClock::sleep(length))).await {
            Either::Left((started, _)) => Some(self.begun(index, env, started)),
            Either::Right(((), starting)) => {
                self.record("killed at its start", index as u64, 0);
                self.kill(index, &env).await;
                // What it was about to do is gone with its process, and says farewell to nobody.
                drop(starting);
                None
            }
        }
    }

    /// Stops a node in an orderly way, and kills it after `length` if it has not stopped by then; true if it was killed.
    pub async fn stop_and_kill(&self, index: usize, length: Duration) -> bool {
        let Some(life) = self.take(index) else { return false };
        self.record("stop", index as u64, 1);
        let stopping = life.node.stop();
        let killed = matches!(select(pin!(stopping), pin!(TrueClock::sleep(length))).await, Either::Right(_));
        if killed {
            self.record("killed as it left", index as u64, 0);
            self.kill(index, &life.env).await;
        }
        killed
    }

    /// Drops everything that runs on a node. First the network: what is dropped must not say farewell.
    pub(super) async fn kill(&self, index: usize, env: &SimEnvironment) {
        self.on_network(|network| network.crash(index));
        env.switch().crash();
        while !env.switch().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
