//! The time and the tasks of the web server. It runs beside the node and not in it: no simulator ever runs it, so this file alone
//! takes both from the machine.
#![expect(clippy::disallowed_methods, reason = "a web server is no part of a node")]

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
