//! What is shown of the cluster: members, the busiest kinds, the busiest messages.

use serde_json::json;

use super::sample::{Fared, Sample};
use crate::cells::{self, text};
use crate::screen::clean;
use crate::table::Table;

/// One frame. Rates are those since the sample before; without one, those since the nodes began.
pub(super) fn lines(before: Option<&Sample>, now: &Sample) -> Vec<String> {
    let node = &now.node;
    let head = format!(
        "archipelago, namespace {}, seen by {} {}, session {}, {}",
        text(&node["namespace"]),
        text(&node["id"]),
        text(&node["name"]),
        text(&node["session"]["standing"]),
        since(before, now)
    );
    let mut lines = vec![clean(&head).into_owned(), String::new()];
    lines.extend(cells::members(&now.members).lines());
    lines.push(String::new());
    lines.extend(kinds(before, now).lines());
    lines.push(String::new());
    lines.extend(messages(before, now).lines());
    lines
}

fn since(before: Option<&Sample>, now: &Sample) -> String {
    match before {
        Some(before) => format!("rates of the last {:.1}s", (now.at - before.at).as_secs_f64()),
        None => "rates since the start".to_owned(),
    }
}

fn kinds(before: Option<&Sample>, now: &Sample) -> Table {
    let rates = rates(before, now);
    let of_kind =
        |kind: &str| -> f64 { rates.iter().filter(|one| one.kind == kind).map(|one| one.rate).sum() };
    let mut all: Vec<(String, u64, f64)> =
        now.active().into_iter().map(|(kind, active)| (kind.clone(), active, of_kind(&kind))).collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2).then(b.1.cmp(&a.1)).then(a.0.cmp(&b.0)));
    let mut table = Table::new(&["kind", "active", "messages/s"]);
    for (kind, active, rate) in all.into_iter().take(MOST) {
        let rate = if now.messages.is_some() { format!("{rate:.1}") } else { "-".to_owned() };
        table.row([kind, active.to_string(), rate]);
    }
    table
}

fn messages(before: Option<&Sample>, now: &Sample) -> Table {
    let mut table = Table::new(&["message", "kind", "messages/s", "mean", "slowest"]);
    let mut rates = rates(before, now);
    rates.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(a.message.cmp(&b.message)));
    for Rate { kind, message, rate, fared } in rates.into_iter().take(MOST) {
        let (mean, slowest) = (cells::seconds(&json!(fared.mean)), cells::seconds(&json!(fared.slowest)));
        table.row([message, kind, format!("{rate:.1}"), mean, slowest]);
    }
    if now.messages.is_none() {
        table.note("the nodes do not count their messages");
    }
    table
}

struct Rate {
    kind: String,
    message: String,
    rate: f64,
    fared: Fared,
}

fn rates(before: Option<&Sample>, now: &Sample) -> Vec<Rate> {
    let earlier = before.map(|before| (before.fared(), (now.at - before.at).as_secs_f64().max(1e-3)));
    let rate_of = |key: &(String, String), fared: &Fared| match &earlier {
        // A node that has gone takes its counts along.
        Some((all, seconds)) => {
            fared.started.saturating_sub(all.get(key).map_or(0, |old| old.started)) as f64 / seconds
        }
        None => fared.rate,
    };
    let all = now.fared().into_iter();
    all.map(|(key, fared)| {
        let rate = rate_of(&key, &fared);
        Rate { kind: key.0, message: key.1, rate, fared }
    })
    .collect()
}

/// How many kinds and messages are shown.
const MOST: usize = 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::tests::sample;
    use super::*;

    #[test]
    fn rates_are_those_since_the_look_before() {
        let before = sample([30, 10]);
        let mut now = sample([50, 30]);
        now.at = before.at + Duration::from_secs(2);
        let rates = rates(Some(&before), &now);
        assert_eq!((rates.len(), rates[0].rate), (1, 20.0));
        let shown = lines(Some(&before), &now).join("\n");
        assert!(shown.contains("rates of the last 2.0s") && shown.contains("20.0"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn nodes_that_count_nothing_are_shown_all_the_same() {
        let mut now = sample([0, 0]);
        now.messages = None;
        let shown = lines(None, &now).join("\n");
        assert!(shown.contains("Guest") && shown.contains("do not count"), "{shown}");
    }
}
