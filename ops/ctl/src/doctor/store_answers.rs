//! What stores say to everybody who asks, read without trusting it.

use serde_json::Value;

/// What a NATS server says of itself when somebody connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nats {
    pub(super) version: String,
    pub(super) jetstream: bool,
}

impl Nats {
    /// Reads `INFO {..}`.
    pub(super) fn from_greeting(line: &str) -> Option<Self> {
        let info: Value = serde_json::from_str(line.strip_prefix("INFO ")?).ok()?;
        let version = info["version"].as_str()?.to_owned();
        Some(Self { version, jetstream: info["jetstream"] == true })
    }
}

/// The version in etcd's answer.
pub(super) fn etcd_version(text: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text).ok()?;
    answer["etcdserver"].as_str().map(str::to_owned)
}

/// The coordinators that a cluster file of FoundationDB names: `description:id@host:port,host:port`.
pub(super) fn coordinators(text: &str) -> Option<Vec<String>> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let (name, list) = line.split_once('@')?;
    if !name.contains(':') {
        return None;
    }
    let all: Vec<String> = list.split(',').map(|at| at.trim().trim_end_matches(":tls").to_owned()).collect();
    all.iter().all(|at| at.contains(':')).then_some(all)
}

/// Whether a version begins with numbers that are not smaller.
pub(super) fn is_at_least(version: &str, least: (u64, u64)) -> bool {
    let mut numbers =
        version.trim_start_matches('v').split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= least
}

/// The second since 1970 of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http_date(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? as i64 + 1;
    let (day, year): (i64, i64) = (day.parse().ok()?, year.parse().ok()?);
    let clock: Vec<i64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = clock.as_slice() else { return None };
    let sound = (1..=31).contains(&day) && (1970..=9999).contains(&year) && (0..24).contains(hours);
    let sound = sound && (0..60).contains(minutes) && (0..61).contains(seconds);
    sound.then(|| days_since_1970(year, month, day) * 86_400 + hours * 3_600 + minutes * 60 + seconds)
}

/// The years begin in March, so that the day that comes and goes is the last of one.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_stores_are_read_and_nonsense_is_none() {
        let nats = Nats::from_greeting(r#"INFO {"version":"2.11.0","jetstream":true,"x":1}"#);
        assert_eq!(nats, Some(Nats { version: "2.11.0".to_owned(), jetstream: true }));
        assert_eq!(Nats::from_greeting("HTTP/1.1 400 Bad Request"), None);
        assert_eq!(etcd_version(r#"{"etcdserver":"3.5.9","etcdcluster":"3.5.0"}"#).as_deref(), Some("3.5.9"));
        assert_eq!(etcd_version("<html>"), None);
        let all = coordinators("# a comment\ndocker:docker@10.0.0.1:4500,10.0.0.2:4500:tls\n").unwrap();
        assert_eq!(all, ["10.0.0.1:4500", "10.0.0.2:4500"]);
        assert_eq!(coordinators("nonsense"), None);
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(is_at_least("3.10.0", (3, 4)) && is_at_least("v2.11.0-beta", (2, 11)));
        assert!(!is_at_least("3.3.25", (3, 4)) && !is_at_least("nonsense", (3, 4)));
    }

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for wrong in ["", "yesterday", "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nix 1994 08:49:37 GMT"] {
            assert_eq!(http_date(wrong), None);
        }
    }
}
