//! The events of a node, a line for each.

use std::time::Duration;

use serde_json::Value;

use crate::api::Api;
use crate::screen::Screen;
use crate::trouble::{Ended, Trouble, Verdict};
use crate::{cells, host};

/// For how long to follow them.
pub(crate) struct Until {
    /// None for as long as they come.
    pub(crate) time: Option<Duration>,
    /// None for all that come.
    pub(crate) count: Option<u64>,
}

/// Shows events as they happen. A stream that ends although it was to go on says that the node has gone.
pub(crate) fn follow(api: &Api, screen: &mut Screen, until: &Until) -> Ended {
    let over = until.time.map(|time| host::now() + time);
    let is_over = || over.is_some_and(|over| host::now() >= over);
    let mut stream = api.events(until.time)?;
    let mut shown = 0;
    while until.count.is_none_or(|count| shown < count) {
        match stream.next() {
            Ok(Some(event)) => show(screen, &event)?,
            Ok(None) if until.time.is_some() => break,
            Ok(None) => {
                return Err(Trouble::Unreachable(format!(
                    "{} sends no more events: the node has gone",
                    api.base()
                )));
            }
            Err(_) if is_over() => break,
            Err(trouble) => return Err(trouble),
        }
        shown += 1;
    }
    Ok(Verdict::Yes)
}

fn show(screen: &mut Screen, event: &Value) -> Result<(), Trouble> {
    if screen.is_for_programs() {
        return Ok(screen.json_line(event)?);
    }
    let time = cells::clock_time(host::unix_seconds());
    let fields = event.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let words: Vec<String> = fields.map(|(name, value)| format!("{name}={}", word(value))).collect();
    Ok(screen.line(&format!("{time} {} {}", cells::text(&event["type"]), words.join(" ")))?)
}

/// A value as one word: with quotes if it has spaces.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(char::is_whitespace) || text.is_empty() => value.to_string(),
        other => cells::text(other),
    }
}
