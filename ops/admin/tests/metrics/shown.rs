//! Reads the text that Prometheus reads: as much of its format as a recorder writes, and nothing that it does not know goes
//! unnoticed.

use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

/// Everything that a scrape has shown, by name.
#[derive(Debug, Default)]
pub(crate) struct Shown(pub(crate) BTreeMap<String, Metric>);

/// One metric.
#[derive(Debug, Default)]
pub(crate) struct Metric {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// Of a histogram how many it was told.
    pub(crate) values: BTreeMap<Labels, f64>,
}

impl Shown {
    /// The sum over all series with this label.
    pub(crate) fn sum(&self, name: &str, (label, value): (&str, &str)) -> f64 {
        let series = self.0.get(name).into_iter().flat_map(|metric| &metric.values);
        let wanted = series.filter(|(labels, _)| labels.get(label).is_some_and(|own| own == value));
        wanted.map(|(_, value)| value).sum()
    }
}

/// Reads a whole scrape.
pub(crate) fn read(text: &str) -> Shown {
    let mut shown = Shown::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a text");
            shown.0.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            shown.0.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else {
            read_series(&mut shown, line);
        }
    }
    shown
}

fn read_series(shown: &mut Shown, line: &str) {
    let (series, value) = line.rsplit_once(' ').expect("a series and a value");
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("labels end")),
        None => (series, ""),
    };
    let mut labels = read_labels(labels);
    let of_histogram = |suffix: &str| {
        let base = name.strip_suffix(suffix)?;
        shown.0.get(base).is_some_and(|metric| metric.kind == "histogram").then(|| base.to_owned())
    };
    if let Some(base) = of_histogram("_bucket") {
        let bound = labels.remove("le").expect("a bucket has a bound");
        assert!(bound == "+Inf" || bound.parse::<f64>().is_ok(), "{line}");
        shown.0.entry(base).or_default().values.entry(labels).or_default();
    } else if of_histogram("_sum").is_some() {
        assert!(value.parse::<f64>().is_ok(), "{line}");
    } else {
        let name = of_histogram("_count").unwrap_or_else(|| name.to_owned());
        let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
        shown.0.entry(name).or_default().values.insert(labels, value);
    }
}

/// `a="b",c="d"`; no value of ours has a quote or a comma.
fn read_labels(text: &str) -> Labels {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("a label has a value");
        (name.to_owned(), value.trim_matches('"').to_owned())
    };
    pairs.map(pair).collect()
}

#[test]
fn a_scrape_is_read() {
    let text = "# HELP a_total How often.\n# TYPE a_total counter\na_total{kind=\"x\"} 3\na_total{kind=\"y\"} 4\n\n\
                # TYPE b_seconds histogram\nb_seconds_bucket{kind=\"x\",le=\"0.1\"} 1\n\
                b_seconds_bucket{kind=\"x\",le=\"+Inf\"} 2\nb_seconds_sum{kind=\"x\"} 0.3\n\
                b_seconds_count{kind=\"x\"} 2\n# TYPE c gauge\nc -1.5\n";
    let shown = read(text);
    assert_eq!(shown.0["a_total"].help, "How often.");
    assert_eq!((shown.sum("a_total", ("kind", "y")), shown.sum("b_seconds", ("kind", "x"))), (4.0, 2.0));
    assert_eq!(shown.0["c"].values[&Labels::new()], -1.5);
    assert_eq!(shown.0.keys().collect::<Vec<_>>(), ["a_total", "b_seconds", "c"]);
}
