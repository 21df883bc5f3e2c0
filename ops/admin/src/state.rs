//! What all workers of a web server share about the admin API of one node.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use archipelago_runtime::Node;
use metrics::gauge;

use crate::rate::{Rate, Wait};
use crate::settings::AdminSettings;
use crate::token::Token;

/// The settings, and what is counted against them.
pub(crate) struct AdminState {
    settings: AdminSettings,
    rate: Mutex<Rate>,
    #[cfg(feature = "prometheus")]
    scrapes: Mutex<Rate>,
    streams: AtomicU32,
}

/// The place of one who follows the events.
pub(crate) struct StreamPlace {
    state: Arc<AdminState>,
}

impl AdminState {
    pub(crate) fn new(settings: AdminSettings) -> Self {
        let rate = Mutex::new(Rate::new(settings.rate));
        Self {
            settings,
            rate,
            #[cfg(feature = "prometheus")]
            scrapes: Mutex::new(Rate::new(SCRAPES)),
            streams: AtomicU32::new(0),
        }
    }

    /// That of a node; with default settings if nobody has told it any.
    pub(crate) fn of(node: &Node) -> Arc<Self> {
        node.attached(|| Self::new(AdminSettings::default()))
    }

    /// Lets one request in.
    pub(crate) fn admit(&self, node: &Node) -> Result<(), Wait> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).admit(node.clock())
    }

    /// Lets one look at the metrics in.
    #[cfg(feature = "prometheus")]
    pub(crate) fn admit_scrape(&self, node: &Node) -> Result<(), Wait> {
        self.scrapes.lock().unwrap_or_else(PoisonError::into_inner).admit(node.clock())
    }

    pub(crate) const fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    pub(crate) const fn guards_reads(&self) -> bool {
        self.settings.guard_reads
    }

    /// A place for one more who follows the events, if there is one.
    pub(crate) fn follow(self: Arc<Self>) -> Option<StreamPlace> {
        let most = self.settings.event_streams.get();
        let more = |count: u32| (count < most).then_some(count + 1);
        let before = self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        gauge!("archipelago_admin_event_streams").set(f64::from(before + 1));
        Some(StreamPlace { state: self })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let before = self.state.streams.fetch_sub(1, Ordering::AcqRel);
        gauge!("archipelago_admin_event_streams").set(f64::from(before.saturating_sub(1)));
    }
}

/// Looks at the metrics in a second: Prometheus takes one in some seconds, and there may be a pair of them.
#[cfg(feature = "prometheus")]
const SCRAPES: std::num::NonZeroU32 = match std::num::NonZeroU32::new(10) {
    Some(scrapes) => scrapes,
    None => std::num::NonZeroU32::MIN,
};
