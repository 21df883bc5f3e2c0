//! Durations as text, and the idle time of an actor.

use std::fmt;
use std::time::Duration;

use humantime_serde::re::humantime::{format_duration, parse_duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How long an actor may be idle before it is deactivated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Idle {
    /// Deactivated when no message came for this long.
    After(Duration),
    /// Never deactivated for being idle.
    Never,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => format_duration(*time).fmt(f),
            Self::Never => f.write_str("never"),
        }
    }
}

impl Serialize for Idle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Idle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "never" {
            return Ok(Self::Never);
        }
        parse::<D::Error>(&text).map(Self::After)
    }
}

/// A duration of at least a millisecond, written as text; the form in which durations cross serde.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::<D::Error>(&String::deserialize(deserializer)?).map(Self)
    }
}

/// A duration that may be none at all, written as text such as "3s" or "0s".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pause(pub Duration);

impl Serialize for Pause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// For `#[serde(with = "span")]`.
pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_duration(*time))
}

/// For `#[serde(with = "span")]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Span::deserialize(deserializer).map(|span| span.0)
}

fn parse<E: serde::de::Error>(text: &str) -> Result<Duration, E> {
    let time = parse_duration(text).map_err(E::custom)?;
    if time < SHORTEST {
        return Err(E::custom("less than a millisecond"));
    }
    Ok(time)
}

/// The nodes count in milliseconds; less would be no time at all.
const SHORTEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use figment::value::Value;

    use super::*;

    fn idle(text: &str) -> Option<Idle> {
        Value::from(text).deserialize().ok()
    }

    #[test]
    fn idle_time_is_a_duration_or_never() {
        assert_eq!(idle("10min"), Some(Idle::After(Duration::from_secs(600))));
        assert_eq!(idle("never"), Some(Idle::Never));
        assert_eq!(idle("sometimes"), None);
    }

    #[test]
    fn durations_without_a_unit_or_below_a_millisecond_are_refused() {
        for text in ["5", "", "0s", "999us", "-1s", "5 parsecs"] {
            assert!(Value::from(text).deserialize::<Span>().is_err(), "{text:?}");
        }
    }
}
