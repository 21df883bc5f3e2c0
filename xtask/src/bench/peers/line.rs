//! The lines that the contestants print.

use std::fmt;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    Ask(u64),
    Tell,
}

impl Case {
    pub(super) const ALL: [Self; 4] = [Self::Ask(1), Self::Ask(64), Self::Ask(1024), Self::Tell];

    /// How a contestant is told.
    pub(super) fn words(self) -> Vec<String> {
        match self {
            Self::Ask(in_flight) => vec!["ask".to_owned(), in_flight.to_string()],
            Self::Tell => vec!["tell".to_owned()],
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(in_flight) => write!(f, "ask, {in_flight} in flight"),
            Self::Tell => f.write_str("tell"),
        }
    }
}

/// What one call of a contestant came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// Answers per second, and how long they took. Some callers may still wait for their last.
    Asked { per_second: f64, p50_micros: f64, p99_micros: f64, unanswered: u64 },
    /// Messages per second that were received, and how many of how many.
    Told { per_second: f64, received: u64, sent: u64 },
    /// Why there is no figure.
    Cannot(String),
}

impl Line {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (asks, rest) = match words.as_slice() {
            [_, "ask", in_flight, rest @ ..] => (in_flight.parse::<u64>().is_ok().then_some(true)?, rest),
            [_, "tell", rest @ ..] => (false, rest),
            _ => return None,
        };
        match rest {
            ["cannot:", reason @ ..] => Some(Self::Cannot(reason.join(" "))),
            rest if asks => Self::asked(rest),
            rest => Self::told(rest),
        }
    }

    fn asked(words: &[&str]) -> Option<Self> {
        let [rate, "p50", p50, "p99", p99, "µs", rest @ ..] = words else { return None };
        let unanswered = match rest {
            [] => 0,
            ["unanswered", count] => count.parse().ok()?,
            _ => return None,
        };
        let (p50_micros, p99_micros) = (p50.parse().ok()?, p99.parse().ok()?);
        Some(Self::Asked { per_second: per_second(rate)?, p50_micros, p99_micros, unanswered })
    }

    fn told(words: &[&str]) -> Option<Self> {
        let [rate, "received", received, "of", sent] = words else { return None };
        let (received, sent) = (received.parse().ok()?, sent.parse().ok()?);
        Some(Self::Told { per_second: per_second(rate)?, received, sent })
    }

    /// Nothing for a case that cannot be done.
    pub(super) fn per_second(&self) -> Option<f64> {
        match self {
            Self::Asked { per_second, .. } | Self::Told { per_second, .. } => Some(*per_second),
            Self::Cannot(_) => None,
        }
    }
}

fn per_second(word: &str) -> Option<f64> {
    word.strip_suffix("/s")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_contestants_are_understood() {
        let asked = Line::Asked { per_second: 234_567.0, p50_micros: 4.5, p99_micros: 9.0, unanswered: 0 };
        assert_eq!(Line::parse("elfo   ask  1024     234567/s p50    4.5 p99    9.0 µs"), Some(asked));
        let told = Line::Told { per_second: 6e5, received: 7, sent: 8 };
        assert_eq!(Line::parse("elfo   tell     600000/s received 7 of 8"), Some(told));
        let cannot = Line::Cannot("there is no tell".to_owned());
        assert_eq!(Line::parse("rio-rs tell      cannot: there is no tell"), Some(cannot));
        let waiting = Line::parse("x ask 64 10/s p50 1.0 p99 1.0 µs unanswered 3");
        assert!(matches!(waiting, Some(Line::Asked { unanswered: 3, .. })), "{waiting:?}");
    }

    #[test]
    fn other_lines_are_not_taken_for_figures() {
        for line in
            ["", "elfo ask many 1/s", "elfo tell 1/s", "elfo ask 1 fast p50 1 p99 1 µs", "elfo heard 1/s"]
        {
            assert_eq!(Line::parse(line), None, "{line}");
        }
    }
}
