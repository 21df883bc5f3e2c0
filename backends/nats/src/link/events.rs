//! What the client tells beside its answers: breaks of the connection, and refused rights.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Event, ServerError};
use tokio::sync::watch;

/// Collects the events of one connection.
#[derive(Clone, Debug)]
pub(super) struct Events {
    breaks: watch::Sender<u64>,
    denials: watch::Sender<u64>,
    denied: Arc<Mutex<Denied>>,
}

/// The subjects last denied, each with its number.
#[derive(Debug, Default)]
struct Denied {
    count: u64,
    last: VecDeque<(u64, String)>,
}

impl Default for Events {
    fn default() -> Self {
        Self { breaks: watch::Sender::new(0), denials: watch::Sender::new(0), denied: Arc::default() }
    }
}

impl Events {
    pub(super) fn handle(&self, event: &Event) {
        match event {
            Event::Disconnected => {
                tracing::warn!("connection to NATS lost");
                self.breaks.send_modify(|breaks| *breaks += 1);
            }
            Event::ServerError(ServerError::Other(said)) => self.on_error(said),
            Event::Connected => tracing::info!("connected to NATS"),
            other => tracing::debug!(event = %other, "NATS client"),
        }
    }

    fn on_error(&self, said: &str) {
        tracing::warn!(said, "NATS server reports an error");
        let Some(subject) = denied_subject(said) else { return };
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        denied.count += 1;
        let count = denied.count;
        denied.last.push_back((count, subject.to_owned()));
        if denied.last.len() > KEPT_DENIALS {
            denied.last.pop_front();
        }
        drop(denied);
        self.denials.send_replace(count);
    }

    /// Tells when the connection breaks after this call.
    pub(super) fn breaks(&self) -> Breaks {
        Breaks(self.breaks.subscribe())
    }

    /// Completes if the server denies the use of `subject` after this call, and never otherwise.
    pub(super) fn denied(&self, subject: &str) -> impl Future<Output = ()> {
        let (events, mut denials) = (self.clone(), self.denials.subscribe());
        let (subject, before) = (subject.to_owned(), *denials.borrow());
        async move {
            while denials.changed().await.is_ok() {
                if events.was_denied(&subject, before) {
                    return;
                }
            }
            std::future::pending().await
        }
    }

    fn was_denied(&self, subject: &str, before: u64) -> bool {
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        denied.last.iter().any(|(count, name)| *count > before && name == subject)
    }
}

/// Waits for the connection to break.
#[derive(Debug)]
pub(crate) struct Breaks(watch::Receiver<u64>);

impl Breaks {
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// `Permissions Violation for Publish to "subject"`, and whatever may follow.
fn denied_subject(said: &str) -> Option<&str> {
    let lower = said.to_ascii_lowercase();
    let (_, rest) = lower.starts_with("permissions violation").then(|| said.split_once('"'))??;
    rest.split_once('"').map(|(subject, _)| subject)
}

const KEPT_DENIALS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn deny(events: &Events, subject: &str) {
        let said = format!("Permissions Violation for Publish to \"{subject}\"");
        events.handle(&Event::ServerError(ServerError::Other(said)));
    }

    #[test]
    fn only_the_denied_subject_is_told() {
        let events = Events::default();
        deny(&events, "mine");
        let (mut mine, mut other) = (Box::pin(events.denied("mine")), Box::pin(events.denied("other")));
        assert!(mine.as_mut().now_or_never().is_none(), "what was denied before is another's");
        deny(&events, "mine");
        assert!(mine.as_mut().now_or_never().is_some());
        assert!(other.as_mut().now_or_never().is_none());
    }

    #[test]
    fn other_errors_deny_nothing() {
        assert_eq!(denied_subject("Stale Connection"), None);
        assert_eq!(denied_subject("maximum \"x\" reached"), None);
        assert_eq!(denied_subject("Permissions Violation for Publish to \"a.b\""), Some("a.b"));
    }

    #[test]
    fn a_break_is_told_to_whoever_waits() {
        let events = Events::default();
        let mut breaks = events.breaks();
        assert!(breaks.next().now_or_never().is_none());
        events.handle(&Event::Disconnected);
        assert!(breaks.next().now_or_never().is_some());
        assert!(breaks.next().now_or_never().is_none());
    }
}
