//! Every metric of the library: its name, its type, its labels, and what it says.
//!
//! This is the one place where that stands. [`describe_metrics`] tells it to the recorder of the process, and `docs/metrics.md`
//! is held against it by a test. What the code counts is held against it by `cargo xtask test`, and what running nodes
//! show by a test of the admin API.
//!
//! Invariant: no label is an actor's id, or anything else of which there is no end.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// A metric of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// How it is counted.
    pub kind: MetricKind,
    /// The names of its labels. A series may lack none of them.
    pub labels: &'static [&'static str],
    /// What it says.
    pub says: &'static str,
}

/// How a metric is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It is as it is now.
    Gauge,
    /// It is a distribution of lengths of time.
    Histogram,
}

impl Metric {
    const fn counter(name: &'static str, labels: &'static [&'static str], says: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, labels, says }
    }

    const fn gauge(name: &'static str, labels: &'static [&'static str], says: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, labels, says }
    }

    const fn histogram(name: &'static str, labels: &'static [&'static str], says: &'static str) -> Self {
        Self { name, kind: MetricKind::Histogram, labels, says }
    }

    fn describe(&self) {
        let unit = match self.name.rsplit('_').next() {
            Some("seconds") => Unit::Seconds,
            Some("bytes") => Unit::Bytes,
            _ => Unit::Count,
        };
        match self.kind {
            MetricKind::Counter => describe_counter!(self.name, unit, self.says),
            MetricKind::Gauge => describe_gauge!(self.name, unit, self.says),
            MetricKind::Histogram => describe_histogram!(self.name, unit, self.says),
        }
    }
}

/// Tells the recorder of the process what the metrics of the library say, for its users to read. Call it once the recorder is
/// installed.
pub fn describe_metrics() {
    METRICS.iter().for_each(Metric::describe);
}

/// Every metric of the library, in the order of `docs/metrics.md`.
pub const METRICS: &[Metric] = &[
    // ---- messages and actors ----
    Metric::counter("archipelago_messages_total", &["kind"], "messages accepted into an inbox"),
    Metric::histogram(
        "archipelago_handle_seconds",
        &["kind"],
        "how long a handler took, from its start to its reply: of one message in 64, so that the others cost nothing",
    ),
    Metric::counter("archipelago_activations_total", &["kind"], "actors that came to life"),
    Metric::counter(
        "archipelago_activation_failures_total",
        &["kind"],
        "factories and `on_activate`s that failed",
    ),
    Metric::histogram(
        "archipelago_activation_seconds",
        &["kind"],
        "how long loading the state and `on_activate` took, of actors that have either",
    ),
    Metric::counter(
        "archipelago_deactivations_total",
        &["kind", "reason"],
        "actors that went, failed activations included",
    ),
    Metric::gauge("archipelago_active_actors", &["kind"], "actors that are active, coming or going"),
    Metric::gauge(
        "archipelago_actors_over_bound",
        &["arbiter"],
        "active actors that `actors.max_active` has no room for",
    ),
    Metric::counter("archipelago_room_looks_total", &["arbiter"], "actors looked at to make room"),
    Metric::counter(
        "archipelago_duplicate_activations_total",
        &[],
        "times that the directory contradicted what this node serves: always 0",
    ),
    Metric::gauge("archipelago_open_jobs", &["arbiter"], "messages accepted and not yet ended"),
    Metric::gauge("archipelago_running_jobs", &["arbiter"], "messages whose handlers run"),
    Metric::gauge(
        "archipelago_ingress_entries",
        &["arbiter"],
        "messages from other threads that wait to enter",
    ),
    Metric::gauge("archipelago_pending_calls", &["arbiter"], "calls that await their answer"),
    Metric::counter("archipelago_call_timeouts_total", &["arbiter"], "calls ended by their deadline"),
    Metric::counter(
        "archipelago_cancelled_calls_total",
        &["arbiter"],
        "calls dropped by their caller before they started",
    ),
    Metric::counter(
        "archipelago_late_replies_total",
        &["arbiter"],
        "replies that came after their call had ended; `remote` for those of other nodes",
    ),
    Metric::counter(
        "archipelago_dead_letters_total",
        &[],
        "messages nobody waits for that were not delivered",
    ),
    Metric::gauge("archipelago_watches", &[], "watches that this node keeps"),
    Metric::counter("archipelago_state_loads_total", &["kind", "outcome"], "states loaded: `ok`, or why not"),
    Metric::counter("archipelago_state_saves_total", &["kind", "outcome"], "states saved: `ok`, or why not"),
    Metric::counter(
        "archipelago_unknown_codecs_total",
        &[],
        "messages and replies in a codec that this node does not know for them",
    ),
    // ---- sessions ----
    Metric::gauge(
        "archipelago_session_remaining_seconds",
        &[],
        "how long this node may still serve if no beat is confirmed",
    ),
    Metric::counter(
        "archipelago_clock_jumps_total",
        &[],
        "times that the wall clock ran ahead and the node waited for its next beat",
    ),
    Metric::counter(
        "archipelago_stuck_arbiters_total",
        &[],
        "threads that a handler blocked when the session was over",
    ),
    // ---- membership ----
    Metric::gauge("archipelago_members", &[], "members of the cluster, as this node sees it"),
    Metric::gauge("archipelago_members_unreachable", &[], "members of the cluster that do not answer"),
    Metric::counter(
        "archipelago_membership_dropped_total",
        &[],
        "gossip dropped because too much came at once",
    ),
    // ---- lanes to other nodes ----
    Metric::gauge("archipelago_connections", &[], "connections of lanes that stand"),
    Metric::gauge("archipelago_lanes", &["seat"], "lanes to other nodes, connected or not"),
    Metric::gauge("archipelago_lane_bytes", &["seat"], "bytes that wait to be written to other nodes"),
    Metric::gauge("archipelago_lane_calls", &["seat"], "calls to other nodes that await their answer"),
    Metric::gauge(
        "archipelago_lane_waiting",
        &["seat"],
        "calls to other nodes that wait for room in a full lane",
    ),
    Metric::gauge(
        "archipelago_lane_large_waiting",
        &["seat"],
        "messages too large for a frame that wait for their turn",
    ),
    Metric::counter(
        "archipelago_replies_refused_total",
        &[],
        "replies too large for a frame that were dropped because the caller's node does not read those before",
    ),
    Metric::gauge(
        "archipelago_parked_messages",
        &["seat"],
        "messages that wait until it is known where they go",
    ),
    Metric::gauge(
        "archipelago_parked_bytes",
        &["seat"],
        "bytes of messages to actors that wait so, without what these point to",
    ),
    Metric::counter(
        "archipelago_parked_refused_total",
        &[],
        "messages refused because too much waits so on the node",
    ),
    Metric::counter(
        "archipelago_remote_dead_letters_total",
        &[],
        "messages nobody waits for that were lost on the way to another node",
    ),
    Metric::counter(
        "archipelago_messages_returned_total",
        &[],
        "messages sent back because their actor is not here",
    ),
    Metric::counter("archipelago_peers_refused_total", &[], "diallers that were not let in"),
    Metric::counter(
        "archipelago_protocol_errors_total",
        &[],
        "connections closed because of what the peer said",
    ),
    Metric::gauge("archipelago_clients", &[], "light clients that are connected to this node"),
    Metric::counter(
        "archipelago_clients_refused_total",
        &[],
        "light clients that were turned away because there are too many",
    ),
    Metric::counter(
        "archipelago_contact_failures_total",
        &[],
        "questions of a light client that a contact did not answer",
    ),
    // ---- shards and places ----
    Metric::counter(
        "archipelago_shard_moves_total",
        &["outcome"],
        "orders to hand a shard over: `moved`, `stays`, `refused`",
    ),
    Metric::counter(
        "archipelago_shard_orders_total",
        &[],
        "orders that this node gave to keep shards in balance",
    ),
    Metric::gauge("archipelago_shard_coordinator", &[], "1 on the node that keeps shards in balance"),
    Metric::counter(
        "archipelago_shards_moved_cold_total",
        &[],
        "shards that moved without the state of their actors",
    ),
    Metric::counter(
        "archipelago_carried_states_total",
        &["outcome"],
        "states that came along with their shard: `taken`, or why not",
    ),
    Metric::gauge(
        "archipelago_carried_state_bytes",
        &["kind"],
        "states of actors that moved and wait for their first message",
    ),
    Metric::gauge("archipelago_parcel_bytes", &[], "state that came ahead of its shard"),
    Metric::counter(
        "archipelago_parcels_refused_total",
        &[],
        "parts of state that came ahead of its shard and were not taken",
    ),
    Metric::counter(
        "archipelago_placements_total",
        &["decision"],
        "what became of those who looked for a place: `already_placed` was there when they looked, `placed` and `raced` are claims won and lost, `granted` is for ranges",
    ),
    Metric::counter("archipelago_placement_lookups_total", &[], "look-ups of owners in the directory"),
    Metric::counter(
        "archipelago_records_given_up_total",
        &[],
        "records of single actors that have ended, released",
    ),
    Metric::gauge(
        "archipelago_placement_cache_entries",
        &["arbiter"],
        "places of single actors that are remembered",
    ),
    Metric::counter(
        "archipelago_placement_cache_given_up_total",
        &["why"],
        "places given up: `idle`, `full`, `changed`",
    ),
    Metric::counter(
        "archipelago_hash_collisions_total",
        &[],
        "messages refused because another actor has the same hash",
    ),
    // ---- ranges ----
    Metric::gauge("archipelago_ranges_served", &["kind"], "ranges whose actors this node runs"),
    Metric::counter(
        "archipelago_ranges_given_up_total",
        &["how"],
        "ranges given up: `released` to others, `retired` for ever",
    ),
    Metric::counter(
        "archipelago_range_changes_total",
        &["outcome"],
        "wishes to divide, merge or move ranges: `done`, `refused`, `not_yet`, `unknown`",
    ),
    Metric::gauge("archipelago_range_manager", &[], "1 on the node that decides the tables of ranges"),
    Metric::gauge(
        "archipelago_table_listeners",
        &[],
        "who waits for a newer table of a range-partitioned kind",
    ),
    Metric::counter("archipelago_tables_pushed_total", &[], "tables passed on to those who wait for them"),
    // ---- datacenters ----
    Metric::gauge("archipelago_datacenters", &[], "datacenters that are active"),
    Metric::gauge("archipelago_datacenters_age_seconds", &[], "how old what is known of the datacenters is"),
    Metric::gauge("archipelago_datacenter_controller", &[], "1 on the node that speaks for its datacenter"),
    Metric::counter(
        "archipelago_datacenter_heartbeats_failed_total",
        &[],
        "heartbeats of the datacenter that were not written",
    ),
    Metric::counter(
        "archipelago_datacenter_refreshes_failed_total",
        &[],
        "looks at the control plane that were in vain",
    ),
    Metric::gauge(
        "archipelago_datacenter_round_trip_seconds",
        &["datacenter"],
        "how long another datacenter takes to answer, NaN if it does not; where a policy looks at it",
    ),
    Metric::counter(
        "archipelago_datacenter_searches_total",
        &["outcome"],
        "searches for actors in other datacenters",
    ),
    Metric::counter(
        "archipelago_datacenter_placements_total",
        &["outcome"],
        "actors placed in other datacenters: `placed`, `refused`, `unreachable`",
    ),
    Metric::gauge(
        "archipelago_datacenter_left_out",
        &["what"],
        "how many are more than the bound and are left out: `datacenters` of the map (256), `endpoints` of the own one (64), `islands` that this node has ever told apart (1,024)",
    ),
    // ---- the admin api ----
    Metric::gauge("archipelago_admin_event_streams", &[], "readers of the admin API's events"),
    Metric::counter(
        "archipelago_admin_refused_total",
        &["code"],
        "requests to the admin API that were refused",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn row(metric: &Metric) -> String {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {kind} | {} | {} |", metric.name, labels.join(", "), metric.says)
    }

    #[test]
    fn the_page_lists_what_is_described_and_nothing_else() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = std::fs::read_to_string(page).unwrap();
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `archipelago_")).collect();
        let described: Vec<String> = METRICS.iter().map(row).collect();
        assert_eq!(listed, described);
    }

    #[test]
    fn names_differ_and_say_how_they_are_counted() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for Metric { name, kind, .. } in METRICS {
            assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
            assert!(*kind != MetricKind::Histogram || name.ends_with("_seconds"), "{name}");
        }
    }
}
