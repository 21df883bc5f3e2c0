//! The dashboard and the alerts in `config/`: they ask for what there is, and for each alert somebody has written what to do.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;

use archipelago_runtime::{METRICS, Metric, MetricKind};
use serde_json::Value;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of metrics in a query, with the suffixes that histograms have there.
fn names(query: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    query.split(|c| !word(c)).filter(|name| name.starts_with(PREFIX)).collect()
}

fn metric_of(name: &str) -> Option<&'static Metric> {
    let series = |metric: &&Metric| match metric.kind {
        MetricKind::Histogram => {
            ["_bucket", "_sum", "_count"].iter().any(|end| format!("{}{end}", metric.name) == name)
        }
        _ => metric.name == name,
    };
    METRICS.iter().find(series)
}

/// What is wrong with a query: metrics that there are not, and labels that they do not have.
fn faults(query: &str) -> Vec<String> {
    let names = names(query);
    let mut faults: Vec<String> = names
        .iter()
        .filter(|name| metric_of(name).is_none())
        .map(|name| format!("no metric {name}"))
        .collect();
    let metrics: Vec<&Metric> = names.iter().filter_map(|name| metric_of(name)).collect();
    let has = |label: &str| {
        ["instance", "job", "le"].contains(&label)
            || metrics.iter().any(|metric| metric.labels.contains(&label))
    };
    faults.extend(
        labels(query).into_iter().filter(|label| !has(label)).map(|label| format!("no label {label}")),
    );
    if names.is_empty() {
        faults.push("no metric at all".to_owned());
    }
    faults
}

/// The labels in `by (..)` and in `{..}`.
fn labels(query: &str) -> BTreeSet<&str> {
    let by = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    let of_by = by.flat_map(|list| list.split(','));
    let matched = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let of_matchers =
        matched.flat_map(|list| list.split(',')).filter_map(|pair| pair.split(['=', '!']).next());
    of_by.chain(of_matchers).map(str::trim).collect()
}

/// Every string under this name, wherever it stands.
fn all_under<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (field, inner) in fields {
                found.extend(inner.as_str().filter(|_| field == name));
                all_under(inner, name, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_under(item, name, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(&text("config/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let rows: Vec<&str> = panels
        .iter()
        .filter(|panel| panel["type"] == "row")
        .map(|row| row["title"].as_str().unwrap())
        .collect();
    assert_eq!(rows, ["Overview", "Messages", "Sessions", "Membership", "Lanes", "Shards", "Datacenters"]);
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            assert_eq!(faults(query), Vec::<String>::new(), "{title}: {query}");
        }
    }
    let mut variables = Vec::new();
    all_under(&dashboard["templating"], "definition", &mut variables);
    assert!(
        variables.iter().all(|query| names(query).iter().all(|name| metric_of(name).is_some())),
        "{variables:?}"
    );
    let mut numbers: Vec<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), panels.len(), "panels have numbers of their own");
}

/// An alert of the file.
#[derive(Debug, Default)]
struct Alert {
    name: String,
    expr: String,
    hold: String,
    severity: String,
    summary: String,
    runbook: String,
}

/// Reads the file, whose lines have few forms; one of another form is not let through.
fn alerts() -> Vec<Alert> {
    let file = text("config/prometheus-alerts.yaml");
    let mut alerts: Vec<Alert> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("      - alert: ") {
            alerts.push(Alert { name: name.to_owned(), ..Alert::default() });
            continue;
        }
        let frame =
            ["groups:", "  - name: archipelago", "    rules:", "        labels:", "        annotations:"];
        if frame.contains(&line) {
            continue;
        }
        let (field, value) =
            line.trim_start().split_once(": ").unwrap_or_else(|| panic!("what is {line:?}?"));
        let alert = alerts.last_mut().unwrap();
        let place = match (line.len() - line.trim_start().len(), field) {
            (8, "expr") => &mut alert.expr,
            (8, "for") => &mut alert.hold,
            (10, "severity") => &mut alert.severity,
            (10, "summary") => &mut alert.summary,
            (10, "runbook_url") => &mut alert.runbook,
            _ => panic!("what is {line:?}?"),
        };
        assert!(place.is_empty(), "{line:?} stands there twice");
        *place = value.to_owned();
    }
    alerts
}

#[test]
fn each_alert_asks_for_metrics_that_there_are() {
    for Alert { name, expr, hold, severity, summary, .. } in alerts() {
        assert_eq!(faults(&expr), Vec::<String>::new(), "{name}: {expr}");
        assert!(hold.ends_with('m') && hold[..hold.len() - 1].parse::<u32>().is_ok(), "{name}: for {hold}");
        assert!(["warning", "critical"].contains(&severity.as_str()), "{name}: {severity}");
        assert!(summary.starts_with('"') && summary.ends_with('"') && summary.len() > 2, "{name}: {summary}");
    }
    let asked: BTreeSet<String> = alerts()
        .iter()
        .flat_map(|alert| names(&alert.expr))
        .map(|name| name[PREFIX.len()..].to_owned())
        .collect();
    for wanted in MUST_BE_WATCHED {
        assert!(asked.contains(wanted), "nobody is told of {wanted}: {asked:?}");
    }
}

#[test]
fn for_each_alert_it_is_written_what_to_do_and_for_nothing_else() {
    let page = text("docs/alerts.md");
    let entries: Vec<(&str, &str)> = page
        .split("\n## ")
        .skip(1)
        .map(|entry| entry.split_once('\n').unwrap_or_else(|| panic!("{entry:?} says nothing")))
        .collect();
    let alerts = alerts();
    let names: Vec<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(entries.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for (name, entry) in entries {
        assert!(entry.lines().any(|line| line.starts_with("- ")), "{name} says nothing to do");
    }
    for Alert { name, runbook, .. } in &alerts {
        assert_eq!(*runbook, format!("docs/alerts.md#{}", name.to_lowercase()));
    }
}

#[test]
fn a_query_that_asks_for_nothing_is_found() {
    assert_eq!(
        faults("sum by (kind, instance) (rate(archipelago_messages_total{kind=~\"a\"}[5m]))"),
        [""; 0]
    );
    assert_eq!(faults("archipelago_handle_seconds_bucket"), [""; 0]);
    assert_eq!(faults("archipelago_handle_seconds"), ["no metric archipelago_handle_seconds"]);
    assert_eq!(faults("archipelago_members{actor=\"a\"}"), ["no label actor"]);
    assert_eq!(faults("sum by (seat) (archipelago_members)"), ["no label seat"]);
    assert_eq!(faults("up"), ["no metric at all"]);
}

const PREFIX: &str = "archipelago_";

/// What somebody has to be told of.
const MUST_BE_WATCHED: [&str; 9] = [
    "session_remaining_seconds",
    "duplicate_activations_total",
    "members_unreachable",
    "stuck_arbiters_total",
    "dead_letters_total",
    "remote_dead_letters_total",
    "datacenters_age_seconds",
    "lane_waiting",
    "state_saves_total",
];
