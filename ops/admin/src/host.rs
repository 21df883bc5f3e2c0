//! The time and the tasks of the web server. It runs beside the node and not in it: no simulator ever runs it, so this file alone
//! takes both from the machine.
#![expect(clippy::disallowed_methods, reason = "a web server is no part of a node")]

#[cfg(feature = "prometheus")]
use std::io;
#[cfg(feature = "prometheus")]
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use actix_web::rt;

/// Waits for a length of time.
pub(crate) async fn sleep(length: Duration) {
    rt::time::sleep(length).await;
}

/// Does something to its end, also if nobody waits for it any more. Nothing if it panicked.
pub(crate) async fn to_the_end<T: 'static>(work: impl Future<Output = T> + 'static) -> Option<T> {
    rt::spawn(work).await.ok()
}

/// Runs a task beside the present one.
pub(crate) fn spawn(task: impl Future<Output = ()> + 'static) {
    drop(rt::spawn(task));
}

/// Does something again and again on a thread of its own, until what this answers is dropped.
#[cfg(feature = "prometheus")]
pub(crate) fn every(
    pause: Duration,
    name: &str,
    mut work: impl FnMut() + Send + 'static,
) -> io::Result<SyncSender<()>> {
    let (lives, dropped) = sync_channel(0);
    let rounds = move || {
        while dropped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            work();
        }
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(rounds)?;
    Ok(lives)
}
