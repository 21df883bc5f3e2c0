//! The operating system's wish that the process ends.

use std::io;

/// Waits for SIGINT or SIGTERM (for ctrl-c where there are no signals).
pub(crate) async fn told_to_end() -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::pin::pin;
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        futures_util::future::select(pin!(interrupt.recv()), pin!(terminate.recv())).await;
        Ok(())
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
