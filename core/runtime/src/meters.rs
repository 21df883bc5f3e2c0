//! The numbers a node counts, through the `metrics` facade: prefix `archipelago_`, base units, no ids as labels.
//!
//! Handles are made once per arbiter and kind, so a recorder must be installed before the node starts.

use archipelago_protocol::activation::DeactivateReason;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// Counters of one arbiter.
pub(crate) struct ArbiterMeters {
    pub(crate) late_replies: Counter,
    pub(crate) cancelled_calls: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) open_jobs: Gauge,
    pub(crate) running_jobs: Gauge,
    pub(crate) pending_calls: Gauge,
    pub(crate) ingress: Gauge,
    /// Active actors that `actors.max_active` has no room for and that have work.
    pub(crate) over_bound: Gauge,
    pub(crate) room_looks: Counter,
}

impl ArbiterMeters {
    pub(crate) fn new(index: u16) -> Self {
        let arbiter = index.to_string();
        Self {
            late_replies: counter!("archipelago_late_replies_total", "arbiter" => arbiter.clone()),
            cancelled_calls: counter!("archipelago_cancelled_calls_total", "arbiter" => arbiter.clone()),
            timeouts: counter!("archipelago_call_timeouts_total", "arbiter" => arbiter.clone()),
            open_jobs: gauge!("archipelago_open_jobs", "arbiter" => arbiter.clone()),
            running_jobs: gauge!("archipelago_running_jobs", "arbiter" => arbiter.clone()),
            pending_calls: gauge!("archipelago_pending_calls", "arbiter" => arbiter.clone()),
            ingress: gauge!("archipelago_ingress_entries", "arbiter" => arbiter.clone()),
            over_bound: gauge!("archipelago_actors_over_bound", "arbiter" => arbiter.clone()),
            room_looks: counter!("archipelago_room_looks_total", "arbiter" => arbiter),
        }
    }
}

/// Counters of one kind on one arbiter.
pub(crate) struct KindMeters {
    kind: String,
    pub(crate) messages: Counter,
    pub(crate) activations: Counter,
    pub(crate) activation_failures: Counter,
    pub(crate) active: Gauge,
    /// From the first message until it can be handled, of actors that load their state or have an `on_activate`.
    pub(crate) activating: Histogram,
    /// From the start of a handler to its reply, of one message in so many.
    pub(crate) handling: Histogram,
}

impl KindMeters {
    pub(crate) fn new(kind: &str) -> Self {
        let kind = kind.to_owned();
        Self {
            messages: counter!("archipelago_messages_total", "kind" => kind.clone()),
            activations: counter!("archipelago_activations_total", "kind" => kind.clone()),
            activation_failures: counter!("archipelago_activation_failures_total", "kind" => kind.clone()),
            active: gauge!("archipelago_active_actors", "kind" => kind.clone()),
            activating: histogram!("archipelago_activation_seconds", "kind" => kind.clone()),
            handling: histogram!("archipelago_handle_seconds", "kind" => kind.clone()),
            kind,
        }
    }

    pub(crate) fn deactivated(&self, reason: Option<DeactivateReason>) {
        let reason = match reason {
            Some(DeactivateReason::Idle) => "idle",
            Some(DeactivateReason::Requested) => "requested",
            Some(DeactivateReason::StoppedItself) => "stopped_itself",
            Some(DeactivateReason::Panicked) => "panicked",
            Some(DeactivateReason::NodeStopping) => "node_stopping",
            Some(DeactivateReason::Moving) => "moving",
            Some(DeactivateReason::ActivationFailed) => "activation_failed",
            Some(DeactivateReason::Evicted) => "evicted",
            _ => "other",
        };
        counter!("archipelago_deactivations_total", "kind" => self.kind.clone(), "reason" => reason)
            .increment(1);
    }
}
