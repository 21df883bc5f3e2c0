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
    /// Those who have shown the token: others cannot use up what they need.
    operators: Mutex<Rate>,
    anybody: Mutex<Rate>,
    /// Members that ask what this node knows: what is asked of the whole cluster counts at each of them.
    members: Mutex<Rate>,
    #[cfg(feature = "prometheus")]
    scrapes: Mutex<Rate>,
    streams: AtomicU32,
}

/// Who wants something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Somebody who has shown the token.
    Operator,
    Anybody,
    Member,
}

/// The place of one who follows the events.
pub(crate) struct StreamPlace {
    state: Arc<AdminState>,
}

impl AdminState {
    pub(crate) fn new(settings: AdminSettings) -> Self {
        let rate = || Mutex::new(Rate::new(settings.rate));
        let (operators, anybody, members) = (rate(), rate(), rate());
        Self {
            settings,
            operators,
            anybody,
            members,
            #[cfg(feature = "prometheus")]
            scrapes: Mutex::new(Rate::new(SCRAPES)),
            streams: AtomicU32::new(0),
        }
    }

    /// That of a node; with default settings if nobody has told it any.
    pub(crate) fn of(node: &Node) -> Arc<Self> {
        node.attached(|| Self::new(AdminSettings::default()))
    }

    /// Lets a request of this weight in.
    pub(crate) fn admit(&self, node: &Node, asker: Asker, weight: u64) -> Result<(), Wait> {
        let rate = match asker {
            Asker::Operator => &self.operators,
            Asker::Anybody => &self.anybody,
            Asker::Member => &self.members,
        };
        rate.lock().unwrap_or_else(PoisonError::into_inner).admit(node.clock(), weight)
    }

    /// Lets one look at the metrics in.
    #[cfg(feature = "prometheus")]
    pub(crate) fn admit_scrape(&self, node: &Node) -> Result<(), Wait> {
        self.scrapes.lock().unwrap_or_else(PoisonError::into_inner).admit(node.clock(), 1)
    }

    pub(crate) const fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    pub(crate) const fn guards_reads(&self) -> bool {
        self.settings.guard_reads
    }

    /// A place for one more who follows the events, if there is one. A quarter is kept for those who have shown the token.
    pub(crate) fn follow(self: Arc<Self>, proven: bool) -> Option<StreamPlace> {
        let all = self.settings.event_streams.get();
        let most = if proven { all } else { all - all / 4 };
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
