//! A node on a thread of its own, on which everything of it runs: ending the thread kills the node as a power cut would,
//! without a word to anybody.

use std::thread::JoinHandle;

use archipelago::Builder;
use archipelago::prelude::*;
use tokio::sync::oneshot;

use crate::node::Watched;

pub(crate) struct NodeThread {
    pub(crate) node: Watched,
    /// Dropped, it ends the thread.
    power: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NodeThread {
    pub(crate) async fn start(
        name: &str,
        build: impl FnOnce() -> Builder + Send + 'static,
    ) -> Result<Self, BoxError> {
        let (tell, told) = oneshot::channel::<Result<Watched, String>>();
        let (power, cut) = oneshot::channel::<()>();
        let main = move || {
            actix::System::new().block_on(async move {
                let started = build().start().await.map(Watched::new).map_err(|error| error.to_string());
                let runs = started.is_ok();
                if tell.send(started).is_ok() && runs {
                    // Never sent, only dropped.
                    cut.await.unwrap_or_default();
                }
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(main)?;
        let node = told.await.map_err(|_| format!("the thread of {name} has ended"))??;
        Ok(Self { node, power: Some(power), thread: Some(thread) })
    }

    /// Cuts the power.
    pub(crate) fn kill(mut self) {
        drop(self.power.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked is as dead as one that ended.
            drop(thread.join());
        }
    }
}
