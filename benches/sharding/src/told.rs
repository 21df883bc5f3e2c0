//! The moves of shards as the hosts that hand them over tell them to the parent, one line each, with the time of the machine.

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archipelago::prelude::*;
use archipelago::{Event, Notice};

/// What one host has told so far.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<Step>>>);

/// One end of a move.
#[derive(Clone, Copy)]
struct Step {
    at: Duration,
    begins: bool,
}

/// How much moved at a time.
pub(crate) struct Moves {
    /// How many moves began.
    pub(crate) count: usize,
    /// How many were under way at once, as the hosts noticed it.
    pub(crate) in_flight: usize,
    /// How many a round began. A span of time meets one round more than fit into it at most, so this is never more than what a
    /// round really began.
    pub(crate) per_round: f64,
}

/// Tells of the moves of a node, until it is gone. Call it in a host.
pub(crate) async fn tell(node: &Node) {
    let mut events = node.events().subscribe();
    while let Some(notice) = events.next().await {
        let begins = match notice {
            Notice::Event(Event::ShardMoving { .. }) => true,
            Notice::Event(Event::ShardMoved { .. } | Event::ShardStays { .. }) => false,
            Notice::Event(_) => continue,
            Notice::Missed(count) => panic!("{count} events were missed"),
        };
        let mut out = std::io::stdout();
        writeln!(out, "{begins} {}", now().as_nanos()).expect("the parent listens");
        out.flush().expect("the parent listens");
    }
}

impl Told {
    /// Takes down what a host says, until it is gone.
    pub(crate) fn listen(&self, out: impl BufRead + Send + 'static) {
        let told = self.clone();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let (begins, nanos) = line.split_once(' ').expect("a step of a move");
                let at = Duration::from_nanos(nanos.parse().expect("a time"));
                told.steps().push(Step { at, begins: begins == "true" });
            }
        });
    }

    fn steps(&self) -> std::sync::MutexGuard<'_, Vec<Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moves {
    /// What these hosts have told of the time since `since`, where a round is begun every `round`.
    pub(crate) fn of<'a>(told: impl Iterator<Item = &'a Told>, since: Duration, round: Duration) -> Self {
        let mut steps: Vec<Step> = told.flat_map(|host| host.steps().clone()).collect();
        steps.retain(|step| step.at >= since);
        // What ends makes room for what begins.
        steps.sort_by_key(|step| (step.at, step.begins));
        let begun: Vec<Duration> = steps.iter().filter(|step| step.begins).map(|step| step.at).collect();
        let (mut now, mut most) = (0_usize, 0);
        for step in &steps {
            now = if step.begins { now + 1 } else { now.saturating_sub(1) };
            most = most.max(now);
        }
        Self { count: begun.len(), in_flight: most, per_round: most_per_round(&begun, round) }
    }
}

/// The greatest number of moves in any span of time, divided by the rounds that it can have met.
fn most_per_round(begun: &[Duration], round: Duration) -> f64 {
    let spans = begun.iter().enumerate().flat_map(|(first, from)| {
        begun[first..].iter().zip(1_usize..).map(move |(to, count)| (count, *to - *from))
    });
    let rate = |(count, span): (usize, Duration)| {
        count as f64 / ((span.as_secs_f64() / round.as_secs_f64()).floor() + 2.0)
    };
    spans.map(rate).fold(0.0, f64::max)
}

/// The time of the machine, which all its processes share.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}
