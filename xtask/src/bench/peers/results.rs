//! The medians of the rounds, compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::contestant::Contestant;
use super::line::{Case, Line};

/// What every contestant did in every case, round by round.
#[derive(Debug, Default)]
pub(super) struct Results {
    rounds: BTreeMap<(&'static str, Case), Vec<Line>>,
}

impl Results {
    pub(super) fn add(&mut self, contestant: &Contestant, case: Case, line: Line) {
        self.rounds.entry((contestant.name, case)).or_default().push(line);
    }

    /// The round in the middle of those that came to a figure; else one that says why there is none.
    pub(super) fn median(&self, name: &'static str, case: Case) -> Option<&Line> {
        let lines = self.rounds.get(&(name, case))?;
        let mut figures: Vec<&Line> = lines.iter().filter(|line| line.per_second().is_some()).collect();
        figures.sort_by(|a, b| a.per_second().unwrap_or(0.0).total_cmp(&b.per_second().unwrap_or(0.0)));
        figures.get(figures.len() / 2).copied().or(lines.first())
    }

    pub(super) fn per_second(&self, name: &'static str, case: Case) -> Option<f64> {
        self.median(name, case)?.per_second()
    }

    /// The fastest of the others.
    pub(super) fn best_peer(&self, case: Case) -> Option<(&'static str, f64)> {
        let peers = Contestant::ALL.iter().filter(|contestant| contestant.is_peer());
        let figures = peers.filter_map(|peer| Some((peer.name, self.per_second(peer.name, case)?)));
        figures.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// One line per bar. Where no peer came to a figure nothing was shown, and the bar is short.
    pub(super) fn bars(&self) -> Vec<String> {
        BARS.iter().filter_map(|(road, case, required)| self.bar(road, *case, *required)).collect()
    }

    fn bar(&self, road: &'static str, case: Case, required: f64) -> Option<String> {
        let ours = OURS.iter().find(|(_, short)| *short == road)?.0;
        // A road that does not work is as slow as can be.
        let ours = self.per_second(ours, case).unwrap_or(0.0);
        let measured = self.best_peer(case).map_or(0.0, |(_, best)| ours / best);
        let verdict = if measured >= required { "ok" } else { "short" };
        let case = case.words().join("_");
        Some(format!("bar peers.{road}_{case} measured={measured:.2} required={required} {verdict}"))
    }

    /// How many times as fast as `name` each of ours is.
    pub(super) fn ratios(&self, name: &'static str, case: Case) -> Option<[f64; 3]> {
        let theirs = self.per_second(name, case)?;
        Some(OURS.map(|(ours, _)| self.per_second(ours, case).unwrap_or(0.0) / theirs))
    }

    /// Everything, for the terminal.
    pub(super) fn table(&self) -> String {
        let mut table = String::new();
        for case in Case::ALL {
            let head = format!("{case:<22} {:>10} {:>10} {:>10}", "per second", "p50 µs", "p99 µs");
            // Writing into a string cannot fail.
            let _ = writeln!(table, "{head}   archipelago on quic, tls, tcp");
            for Contestant { name, .. } in Contestant::ALL {
                let _ = writeln!(table, "  {name:<20} {}", self.row(name, case));
            }
        }
        table
    }

    fn row(&self, name: &'static str, case: Case) -> String {
        let ratios = match self.ratios(name, case) {
            Some([tcp, tls, quic]) => format!("{quic:>8.2}x {tls:>7.2}x {tcp:>7.2}x"),
            None => String::new(),
        };
        match self.median(name, case) {
            Some(Line::Asked { per_second, p50_micros, p99_micros, .. }) => {
                format!("{per_second:>10.0} {p50_micros:>10.1} {p99_micros:>10.1} {ratios}")
            }
            Some(Line::Told { per_second, received, sent }) => {
                let kept = if received == sent { String::new() } else { format!("{received}/{sent}") };
                format!("{per_second:>10.0} {kept:>21} {ratios}")
            }
            Some(Line::Cannot(reason)) => format!("cannot: {reason}"),
            None => "not measured".to_owned(),
        }
    }
}

/// Ours, and how they are called in bars.
const OURS: [(&str, &str); 3] =
    [("archipelago-tcp", "tcp"), ("archipelago-tls", "tls"), ("archipelago-quic", "quic")];

/// How many times as fast as the best of the others ours must be.
const BARS: [(&str, Case, f64); 4] = [
    ("quic", Case::Ask(1024), 2.5),
    ("tcp", Case::Ask(1024), 5.0),
    ("quic", Case::Tell, 2.0),
    ("tcp", Case::Tell, 4.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(per_second: f64) -> Line {
        Line::Told { per_second, received: 1, sent: 1 }
    }

    fn results(figures: &[(&str, Line)]) -> Results {
        let mut results = Results::default();
        for (name, line) in figures {
            let contestant = Contestant::ALL.iter().find(|contestant| contestant.name == *name).unwrap();
            results.add(contestant, Case::Tell, line.clone());
        }
        results
    }

    #[test]
    fn bars_compare_the_median_with_the_best_peer() {
        let cannot = Line::Cannot("no".to_owned());
        let results = results(&[
            ("raw-tcp", told(9_000.0)),
            ("archipelago-tcp", told(900.0)),
            ("archipelago-tcp", told(400.0)),
            ("archipelago-tcp", told(100.0)),
            ("archipelago-quic", told(190.0)),
            ("elfo", told(100.0)),
            ("coerce", told(50.0)),
            ("rio-rs", cannot),
        ]);
        assert_eq!(results.best_peer(Case::Tell), Some(("elfo", 100.0)), "the bare transport is no peer");
        assert_eq!(results.ratios("coerce", Case::Tell), Some([8.0, 0.0, 3.8]));
        let expected = [
            "bar peers.quic_ask_1024 measured=0.00 required=2.5 short",
            "bar peers.tcp_ask_1024 measured=0.00 required=5 short",
            "bar peers.quic_tell measured=1.90 required=2 short",
            "bar peers.tcp_tell measured=4.00 required=4 ok",
        ];
        assert_eq!(results.bars(), expected, "nobody asked");
    }

    #[test]
    fn round_that_failed_does_not_hide_those_that_worked() {
        let cannot = || Line::Cannot("lost its connection".to_owned());
        let results = results(&[("elfo", cannot()), ("elfo", told(7.0)), ("coerce", cannot())]);
        assert_eq!(results.median("elfo", Case::Tell), Some(&told(7.0)));
        assert_eq!(results.median("coerce", Case::Tell), Some(&cannot()));
        assert!(results.bars().iter().all(|bar| bar.ends_with("short")), "{:?}", results.bars());
    }
}
