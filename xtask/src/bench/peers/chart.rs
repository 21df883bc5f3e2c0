//! `docs/peers.svg`: one panel of bars per case.

use std::fmt::Write as _;

use super::contestant::{Contestant, Side};
use super::line::Case;
use super::page::thousands;
use super::results::Results;

/// Draws all cases, two panels beside each other.
pub(super) fn draw(results: &Results) -> String {
    let height = MARGIN + 2 * PANEL_HEIGHT;
    let width = 2 * PANEL_WIDTH;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (place, case) in (0..).zip(Case::ALL) {
        panel(&mut svg, results, case, place % 2 * PANEL_WIDTH, MARGIN + place / 2 * PANEL_HEIGHT);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, results: &Results, case: Case, left: u32, top: u32) {
    let figures = Contestant::ALL.iter().map(|contestant| results.per_second(contestant.name, case));
    let longest = figures.flatten().fold(1.0, f64::max);
    // Writing into a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\" fill=\"#222222\">{case}, per second</text>",
        left + MARGIN,
        top + 14,
    );
    for (row, contestant) in (0..).zip(Contestant::ALL) {
        let figure = results.per_second(contestant.name, case);
        bar(svg, contestant, figure.map(|figure| (figure, figure / longest)), left, top + 28 + row * ROW);
    }
}

/// The bar of one contestant: its figure, and what part of the longest bar that is.
fn bar(svg: &mut String, contestant: &Contestant, figure: Option<(f64, f64)>, left: u32, top: u32) {
    let middle = top + ROW / 2 + 3;
    let start = left + LABELS;
    let (text, length) = match figure {
        Some((figure, part)) => (thousands(figure), part * f64::from(LONGEST)),
        None => ("cannot".to_owned(), 0.0),
    };
    let colour = match contestant.side {
        Side::Ours => "#1f6f8b",
        Side::Raw => "#e2e2e2",
        Side::Peer(_) => "#b8b8b8",
    };
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\n\
         <rect x=\"{start}\" y=\"{}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\n\
         <text x=\"{:.1}\" y=\"{middle}\" fill=\"#222222\">{text}</text>",
        start - 6,
        contestant.name,
        top + 2,
        ROW - 4,
        f64::from(start) + length + 5.0,
    );
}

const MARGIN: u32 = 14;
const ROW: u32 = 20;
const LABELS: u32 = 130;
const LONGEST: u32 = 230;
const PANEL_WIDTH: u32 = LABELS + LONGEST + 90;
const PANEL_HEIGHT: u32 = 28 + Contestant::ALL.len() as u32 * ROW + 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::peers::line::Line;

    #[test]
    fn longest_bar_is_that_of_the_fastest() {
        let mut results = Results::default();
        for (contestant, per_second) in Contestant::ALL.iter().zip([1000.0, 500.0]) {
            results.add(contestant, Case::Tell, Line::Told { per_second, received: 1, sent: 1 });
        }
        let svg = draw(&results);
        let bars = |length: &str| svg.matches(&format!("width=\"{length}\" height=\"16\"")).count();
        assert_eq!((bars("230.0"), bars("115.0")), (1, 1));
        assert_eq!(svg.matches("cannot").count(), 4 * Contestant::ALL.len() - 2);
    }

    #[test]
    fn panel_has_room_for_all() {
        assert!(PANEL_HEIGHT >= 28 + ROW * u32::try_from(Contestant::ALL.len()).unwrap());
    }
}
